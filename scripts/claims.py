"""Write what the committed cells say into the tables of docs/results/README.md: `python scripts/claims.py`.

The claims of the papers and how many of them hold, numbers seed by seed, and both generators of corruptions side by side.
A verdict is the interval's: it lies on the side that the paper claims, on the other side, or has 0 in it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from surefoot.corruptions.families import COMMON15, FAMILIES, NAMES
from surefoot.metrics import SHARE, of_column
from surefoot.studies.cells import Cell, cells_of
from surefoot.studies.results import Results
from surefoot.studies.schema import Study
from surefoot.studies.statistics import Difference, paired_difference
from surefoot.studies.study_files import read_study
from surefoot.studies.table_formats import line, number

RESULTS = Path(__file__).parent.parent / "docs" / "results"
FIRST, SECOND, TUNED = "first-generator", "main", "fine-tuning"
STUDIES = {FIRST: "docs/results/checks/first-generator.yaml", SECOND: "main"}  # by the folder of their cells
ENOUGH = 3  # seeds with the second generator, for a claim to be judged by it
MARK = "<!-- {}: written by scripts/claims.py -->"
CE, LS, CAN = "cross-entropy", "label-smoothing", "clean-and-noisy"
ONE, MIXUP = "(`samples=1`)", "mixup (alpha 0.2; paper: 1)"
CLEAN, BAD, NOISY = "clean.accuracy", "corruptions.accuracy", "noise.accuracy.16"
CURVED = "curvature.lowest90.50"
MCA, NOISE3, LOST = "corruptions.accuracy.of 18", "corruptions.accuracy.of 3", "noise.drop.16"
MISSED, DROP15 = "corruptions.rms", "corruptions.drop.of 15"
FOREIGN = "corruptions.accuracy.without noise, blur, contrast"
SETS = {  # our own means over some of the 19 corruptions
    FOREIGN: set(FAMILIES["weather"]) | set(FAMILIES["digital"]) - {"contrast"},
    MCA: set(NAMES) - {"gaussian_noise"},
    NOISE3: {"shot_noise", "impulse_noise", "speckle_noise"},
    "corruptions.accuracy.of 15": set(COMMON15),
}
SHOWN = {  # what other studies show of the same cells
    ("macs", "logits"): "macs-table6 --seeds 5",
    ("macs", "sensitivity"): "macs-table10 --seeds 5",
    ("discriminative", "curvature"): "discriminative-figure10",
    ("clean-and-noisy", "curvature"): "discriminative-figure10",
}
SHOWN_WHEN_TUNED = (
    CLEAN,
    "clean.ece",
    "clean.nll",
    "temperature.ece",
    "temperature.nll",
    BAD,
    "corruptions.ece",
    "logits.margin",
)
# (where, claim, method, against, number, whether the claim is that the difference is above 0)
Claim = tuple[str, str, str, str, str, bool]
TAB1, TAB3, TAB4, TAB5, TAB6, TAB7, TAB10 = (f"macs Tab. {number}" for number in (1, 3, 4, 5, 6, 7, 10))
FGSM, WEAK, STRONG = "attacks.success.fgsm", "attacks.success.pgd-weak", "attacks.success.pgd-strong"
RMS, COSINE, SIGNED = "features.feature_rms", "features.cosine", "clean.signed_error"
BASELINES = {"label smoothing": LS, "focal loss": "focal", "mixup": "mixup"}
SOFT = {"label smoothing": LS, MIXUP: "mixup", "CutMix": "cutmix"}
MACS: list[Claim] = [
    (TAB1, "MaCS gains on clean images", "macs", CE, CLEAN, True),
    *((TAB1, f"MaCS beats {label} on clean images", "macs", name, CLEAN, True) for label, name in BASELINES.items()),
    (TAB1, "label smoothing gains on clean images", LS, CE, CLEAN, True),
    (TAB1, "mixup gains on clean images", "mixup", CE, CLEAN, True),
    ("macs Tab. 1, 5", "MaCS gains under corruption", "macs", CE, BAD, True),
    *((TAB1, f"MaCS beats {label} under corruption", "macs", name, BAD, True) for label, name in BASELINES.items()),
    *((TAB1, f"{label} gains under corruption", name, CE, BAD, True) for label, name in BASELINES.items()),
    (TAB3, "MaCS lowers ECE", "macs", CE, "clean.ece", False),
    *((TAB3, f"MaCS is below {label} in ECE", "macs", name, "clean.ece", False) for label, name in BASELINES.items()),
    *((TAB3, f"{label} lowers ECE", name, CE, "clean.ece", False) for label, name in BASELINES.items()),
    (TAB3, "MaCS lowers NLL", "macs", CE, "clean.nll", False),
    *((TAB3, f"MaCS is below {label} in NLL", "macs", name, "clean.nll", False) for label, name in BASELINES.items()),
    *((TAB3, f"{label} lowers NLL", name, CE, "clean.nll", False) for label, name in BASELINES.items()),
    (TAB4, "MaCS is below AugMix in ECE", "macs", "augmix", "clean.ece", False),
    (TAB4, "MaCS is below AugMix in NLL", "macs", "augmix", "clean.nll", False),
    (TAB4, "MaCS lowers ECE after a temperature", "macs", CE, "temperature.ece", False),
    (TAB4, "MaCS lowers NLL after a temperature", "macs", CE, "temperature.nll", False),
    *(
        (TAB4, f"MaCS is below {label} in {score} after a temperature", "macs", name, f"temperature.{score.lower()}", False)
        for score in ("ECE", "NLL")
        for label, name in {**BASELINES, "AugMix": "augmix"}.items()
    ),
    (TAB5, "AugMix gains under corruption", "augmix", CE, BAD, True),
    (TAB5, "MaCS + AugMix gains under corruption", "macs-augmix", CE, BAD, True),
    (TAB5, "MaCS + AugMix beats AugMix under corruption", "macs-augmix", "augmix", BAD, True),
    (TAB5, "MaCS + AugMix beats MaCS under corruption", "macs-augmix", "macs", BAD, True),
    (TAB6, "MaCS raises the margin (paper: 2.31 to 3.64)", "macs", CE, "logits.margin", True),
    (TAB6, "MaCS raises the logit norm a little (paper: 12.4 to 13.1)", "macs", CE, "logits.norm", True),
    (TAB6, "MaCS raises the largest logit a little (paper: 8.7 to 9.2)", "macs", CE, "logits.largest", True),
    (TAB7, "MaCS gains under noise", "macs", CE, f"{BAD}.noise", True),
    (TAB7, "MaCS gains under blur", "macs", CE, f"{BAD}.blur", True),
    (TAB7, "MaCS gains under weather (paper: +0.8)", "macs", CE, f"{BAD}.weather", True),
    (TAB7, "MaCS gains under digital corruptions (paper: +1.3)", "macs", CE, f"{BAD}.digital", True),
    (TAB7, "MaCS gains without noise and blur (paper: +1.1)", "macs", CE, f"{BAD}.no_overlap", True),
    (TAB7, "AugMix gains under weather (paper: +1.5)", "augmix", CE, f"{BAD}.weather", True),
    (TAB7, "AugMix gains under digital corruptions (paper: +2.1)", "augmix", CE, f"{BAD}.digital", True),
    ("macs Tab. 9", "a step of MaCS costs less than AugMix's (paper: 1.96, 2.97)", "macs", "augmix", "cost.relative", False),
    (TAB10, "MaCS lowers sensitivity", "macs", CE, "sensitivity.sensitivity", False),
    (TAB10, "MaCS raises the margin", "macs", CE, "sensitivity.margin", True),
    (TAB10, "MaCS raises margin / sensitivity", "macs", CE, "sensitivity.ratio", True),
]
MAGNMA: list[Claim] = [
    ("magnma Tab. 3", f"MAGNMA {ONE} beats AugMix, 18 corruptions", "magnma", "augmix", MCA, True),
    ("magnma Tab. 3", f"MAGNMA {ONE} beats cross-entropy, 18 corruptions", "magnma", CE, MCA, True),
    ("magnma Tab. 3", f"noise term {ONE} beats cross-entropy, 18 corruptions", "magnma-noise", CE, MCA, True),
    ("magnma Tab. 3", f"mixed term {ONE} beats cross-entropy, 18 corruptions", "magnma-mix", CE, MCA, True),
    ("magnma Tab. 3", f"MAGNMA {ONE} beats its noise term, 18 corruptions", "magnma", "magnma-noise", MCA, True),
    ("magnma Tab. 3", f"MAGNMA {ONE} beats its mixed term, 18 corruptions", "magnma", "magnma-mix", MCA, True),
    ("magnma Tab. 3", f"mixed term {ONE} beats noise term, 18 corruptions", "magnma-mix", "magnma-noise", MCA, True),
    ("magnma Tab. 3", f"MAGNMA {ONE} beats diverse noise, 18 corruptions", "magnma", "diverse-noise", MCA, True),
    ("magnma Tab. 3", "diverse noise beats cross-entropy, 18 corruptions", "diverse-noise", CE, MCA, True),
    ("magnma Tab. 3", f"noise term {ONE} gains under shot, impulse and speckle noise", "magnma-noise", CE, NOISE3, True),
    ("magnma Tab. 3", f"mixed term {ONE} gains under blur", "magnma-mix", CE, f"{BAD}.blur", True),
    ("magnma Tab. 3", f"mixed term {ONE} gains under contrast", "magnma-mix", CE, f"{BAD}.contrast", True),
    ("magnma Tab. 3", f"MAGNMA {ONE} keeps clean accuracy", "magnma", CE, CLEAN, True),
    ("magnma Tab. 3", f"mixed term {ONE} keeps clean accuracy", "magnma-mix", CE, CLEAN, True),
    ("magnma Tab. 3", f"noise term {ONE} loses clean accuracy", "magnma-noise", CE, CLEAN, False),
    ("magnma Tab. 3", "diverse noise loses clean accuracy", "diverse-noise", CE, CLEAN, False),
    ("magnma Tab. 1", f"MAGNMA {ONE} lowers the RMS calibration error, clean", "magnma", CE, "clean.rms", False),
    ("magnma Tab. 1", f"MAGNMA {ONE} lowers the RMS calibration error, 19 corruptions", "magnma", CE, MISSED, False),
    ("magnma Tab. 1", f"MAGNMA {ONE} is below AugMix in RMS error, 19 corruptions", "magnma", "augmix", MISSED, False),
    ("magnma, ours", f"MAGNMA {ONE} beats AugMix, 19 corruptions", "magnma", "augmix", BAD, True),
    ("magnma, ours", f"MAGNMA {ONE} beats MaCS, 19 corruptions", "magnma", "macs", BAD, True),
    ("magnma, ours", f"MAGNMA {ONE} beats cross-entropy, 19 corruptions", "magnma", CE, BAD, True),
    ("magnma, ours", f"noise term {ONE} beats cross-entropy, 19 corruptions", "magnma-noise", CE, BAD, True),
    ("magnma, ours", f"mixed term {ONE} beats cross-entropy, 19 corruptions", "magnma-mix", CE, BAD, True),
]
DISCRIMINATIVE: list[Claim] = [
    ("discriminative-noise Tab. 1", "discriminative keeps clean accuracy", "discriminative", CE, CLEAN, True),
    ("discriminative-noise Tab. 1", "discriminative loses less from clean to 16/255", "discriminative", CE, LOST, False),
    ("discriminative-noise Tab. 1", "discriminative gains at 8/255", "discriminative", CE, "noise.accuracy.8", True),
    ("discriminative-noise Tab. 1", "discriminative gains at 16/255", "discriminative", CE, NOISY, True),
    ("discriminative-noise Tab. 1", "discriminative beats noisy at 16/255", "discriminative", "noisy", NOISY, True),
    ("discriminative-noise Tab. 1", "discriminative beats clean-and-noisy at 16/255", "discriminative", CAN, NOISY, True),
    ("discriminative-noise Tab. 1", "discriminative beats stability at 16/255", "discriminative", "stability", NOISY, True),
    ("discriminative-noise Tab. 1", "discriminative beats noisy, clean", "discriminative", "noisy", CLEAN, True),
    ("discriminative-noise Tab. 1", "discriminative beats clean-and-noisy, clean", "discriminative", CAN, CLEAN, True),
    ("discriminative-noise Tab. 1", "discriminative beats stability, clean", "discriminative", "stability", CLEAN, True),
    ("discriminative-noise Tab. 1", "noisy loses clean accuracy", "noisy", CE, CLEAN, False),
    ("discriminative-noise Tab. 1", "clean-and-noisy loses clean accuracy", CAN, CE, CLEAN, False),
    ("discriminative-noise Tab. 1", "stability loses clean accuracy", "stability", CE, CLEAN, False),
    ("discriminative-noise Tab. 1", "noisy gains at 8/255", "noisy", CE, "noise.accuracy.8", True),
    ("discriminative-noise Tab. 1", "clean-and-noisy gains at 8/255", CAN, CE, "noise.accuracy.8", True),
    ("discriminative-noise Tab. 1", "stability gains at 8/255", "stability", CE, "noise.accuracy.8", True),
    ("discriminative-noise Tab. 1", "noisy gains at 16/255", "noisy", CE, NOISY, True),
    ("discriminative-noise Tab. 1", "clean-and-noisy gains at 16/255", CAN, CE, NOISY, True),
    ("discriminative-noise Tab. 1", "stability gains at 16/255", "stability", CE, NOISY, True),
    ("discriminative-noise Fig. 10", "discriminative lowers curvature", "discriminative", CE, CURVED, False),
    ("discriminative-noise Fig. 10", "clean-and-noisy lowers curvature", CAN, CE, CURVED, False),
    ("discriminative-noise Fig. 10", "discriminative is below clean-and-noisy", "discriminative", CAN, CURVED, False),
]
REPRESENTATION: list[Claim] = [
    *(
        ("representation-space Tab. 2", f"{label} {claim}", name, CE, number, above)
        for claim, number, above in (
            ("gains on clean images", CLEAN, True),
            ("lowers feature RMS", RMS, False),
            ("raises the cosine to the centre", COSINE, True),
            ("lowers confidence minus accuracy", SIGNED, False),
            ("lowers the success of FGSM", FGSM, False),
            ("lowers the success of weak PGD", WEAK, False),
            ("lowers the success of strong PGD", STRONG, False),
        )
        for label, name in SOFT.items()
    ),
    ("representation-space Tab. 3", "label smoothing lowers the relative drop, 15 corruptions", LS, CE, DROP15, False),
    ("representation-space Tab. 3", f"{MIXUP} lowers the relative drop, 15 corruptions", "mixup", CE, DROP15, False),
    (
        "representation-space Tab. 3",
        "CutMix lowers the relative drop, 15 corruptions (paper: in one net of three)",
        "cutmix",
        CE,
        DROP15,
        False,
    ),
]
OURS: list[Claim] = [
    ("ours", "MaCS lowers ECE under corruption", "macs", CE, "corruptions.ece", False),
    ("ours", "AugMix lowers ECE under corruption", "augmix", CE, "corruptions.ece", False),
    ("ours", "MaCS + AugMix lowers ECE under corruption", "macs-augmix", CE, "corruptions.ece", False),
    ("ours", f"MAGNMA {ONE} lowers ECE under corruption", "magnma", CE, "corruptions.ece", False),
    ("ours", "label smoothing lowers ECE under corruption", LS, CE, "corruptions.ece", False),
    ("ours", "focal loss lowers ECE under corruption", "focal", CE, "corruptions.ece", False),
    ("ours", "mixup lowers ECE under corruption", "mixup", CE, "corruptions.ece", False),
    ("ours", "CutMix lowers ECE under corruption", "cutmix", CE, "corruptions.ece", False),
    ("ours", "AugMix beats MaCS under corruption (macs Tab. 5 and 7 disagree)", "augmix", "macs", BAD, True),
    (TAB4, "AugMix lowers ECE", "augmix", CE, "clean.ece", False),
    *(
        ("ours", f"{label} lowers ECE under corruption after a temperature", name, CE, "corruptions.ece_scaled", False)
        for label, name in (("MaCS", "macs"), ("AugMix", "augmix"))
    ),
    ("ours", "MaCS + AugMix lowers ECE", "macs-augmix", CE, "clean.ece", False),
    ("ours", "discriminative keeps clean accuracy, 2,000 images", "discriminative", CE, "noise.accuracy.0", True),
    ("ours", "MaCS lowers the mean curvature", "macs", CE, "curvature.curvature", False),
    ("ours", "AugMix lowers the mean curvature", "augmix", CE, "curvature.curvature", False),
    ("ours", f"MAGNMA {ONE} lowers the mean curvature", "magnma", CE, "curvature.curvature", False),
    ("ours", "discriminative lowers the mean curvature", "discriminative", CE, "curvature.curvature", False),
    *(("ours", f"{label} lowers the mean curvature", name, CE, "curvature.curvature", False) for label, name in SOFT.items()),
    *(("ours", f"{label} lowers the curvature of Fig. 10", name, CE, CURVED, False) for label, name in SOFT.items()),
]
CBAR, CBAR_ECE = "c-bar.accuracy", "c-bar.ece"
NEW: list[Claim] = [  # of the second generator alone
    *(
        ("ours", f"{label} {claim}", name, CE, number, above)
        for label, name in {"MaCS": "macs", "AugMix": "augmix", "surefoot": "surefoot"}.items()
        for claim, number, above in (("gains under C-bar", CBAR, True), ("lowers ECE under C-bar", CBAR_ECE, False))
    ),
    *(
        (
            "ours",
            f"MaCS on every {nth} image, clean batch-norm statistics, {claim}",
            f"macs-stride-{stride}",
            against,
            number,
            above,
        )
        for nth, stride in {"fourth": 4, "eighth": 8}.items()
        for claim, against, number, above in (
            ("gains under corruption", CE, BAD, True),
            ("gains without noise and blur", CE, f"{BAD}.no_overlap", True),
            ("gains under C-bar", CE, CBAR, True),
            ("lowers ECE", CE, "clean.ece", False),
            ("lowers ECE under corruption", CE, "corruptions.ece", False),
            ("gains on clean images", CE, CLEAN, True),
        )
    ),
    ("magnma Tab. 2, 3", "AugMix gains on clean images", "augmix", CE, CLEAN, True),
    ("ours", "AugMix beats MaCS under C-bar", "augmix", "macs", CBAR, True),
    ("ours", "surefoot gains on clean images", "surefoot", CE, CLEAN, True),
    ("ours", "surefoot gains under corruption", "surefoot", CE, BAD, True),
    ("ours", "surefoot gains without noise and blur", "surefoot", CE, f"{BAD}.no_overlap", True),
    ("ours", "surefoot gains without noise, blur and contrast", "surefoot", CE, FOREIGN, True),
    ("ours", "surefoot lowers ECE after a temperature", "surefoot", CE, "temperature.ece", False),
    ("ours", "surefoot lowers ECE under corruption after a temperature", "surefoot", CE, "corruptions.ece_scaled", False),
    *(
        ("ours", f"surefoot is below {label} in ECE{where}", "surefoot", name, number, False)
        for label, name in (("MaCS", "macs"), ("AugMix", "augmix"))
        for where, number in (("", "clean.ece"), (" under corruption", "corruptions.ece"), (" under C-bar", CBAR_ECE))
    ),
    ("ours", "surefoot lowers ECE", "surefoot", CE, "clean.ece", False),
    ("ours", "surefoot lowers ECE under corruption", "surefoot", CE, "corruptions.ece", False),
    ("ours", "surefoot beats MaCS under corruption", "surefoot", "macs", BAD, True),
    ("ours", "surefoot beats AugMix on clean images", "surefoot", "augmix", CLEAN, True),
    ("ours", "surefoot beats AugMix under corruption", "surefoot", "augmix", BAD, True),
    ("ours", "surefoot beats AugMix under C-bar", "surefoot", "augmix", CBAR, True),
    ("ours", "surefoot beats MaCS under C-bar", "surefoot", "macs", CBAR, True),
    ("ours", "surefoot beats MaCS on clean images", "surefoot", "macs", CLEAN, True),
    *(
        ("ours", f"surefoot {claim} MaCS on every fourth image{where}", "surefoot", "macs-stride-4", number, above)
        for claim, where, number, above in (
            ("beats", " on clean images", CLEAN, True),
            ("beats", " under corruption", BAD, True),
            ("beats", " under C-bar", CBAR, True),
            ("has a lower ECE than", "", "clean.ece", False),
            ("has a lower ECE than", " under corruption", "corruptions.ece", False),
        )
    ),
    *(
        (
            "ours",
            f"MaCS on every {nth} image, clean batch-norm statistics, {claim}",
            f"macs-stride-{stride}",
            "macs",
            number,
            above,
        )
        for nth, stride in {"fourth": 4, "eighth": 8}.items()
        for claim, number, above in (
            ("beats MaCS on clean images", CLEAN, True),
            ("beats MaCS under corruption", BAD, True),
            ("beats MaCS under C-bar", CBAR, True),
            ("is below MaCS in ECE", "clean.ece", False),
            ("is below MaCS in ECE under corruption", "corruptions.ece", False),
        )
    ),
]
STATISTICS = "MaCS with clean batch-norm statistics", "macs-clean-statistics"
TUNING: list[Claim] = [  # MaCS in its paper's regime
    *(
        (where, f"{label} {claim}", name, CE, number, above)
        for label, name in (("MaCS", "macs"), STATISTICS)
        for where, claim, number, above in (
            (TAB1, "gains on clean images", CLEAN, True),
            (TAB1, "gains under corruption", BAD, True),
            (TAB3, "lowers ECE", "clean.ece", False),
            (TAB3, "lowers NLL", "clean.nll", False),
            (TAB4, "lowers ECE after a temperature", "temperature.ece", False),
            (TAB4, "lowers NLL after a temperature", "temperature.nll", False),
            (TAB6, "raises the margin", "logits.margin", True),
            ("ours", "lowers ECE under corruption", "corruptions.ece", False),
        )
    ),
    *(
        (TAB7, f"MaCS gains {where}", "macs", CE, f"{BAD}.{family}", True)
        for where, family in {"under noise": "noise", "under blur": "blur", "without noise and blur": "no_overlap"}.items()
    ),
    *(
        ("ours", f"{STATISTICS[0]} {claim} than MaCS", STATISTICS[1], "macs", number, above)
        for claim, number, above in (
            ("is better on clean images", CLEAN, True),
            ("is better under corruption", BAD, True),
            ("is better under noise", f"{BAD}.noise", True),
            ("has a lower ECE", "clean.ece", False),
            ("has a lower ECE under corruption", "corruptions.ece", False),
        )
    ),
    *(
        (where, claim.format(label), *numbers)
        for label, name, wheres in (
            ("label smoothing", LS, (TAB1, TAB1, TAB3, TAB1, TAB1, TAB3, TAB3)),
            ("mixup", "mixup", (TAB1, TAB1, TAB3, TAB1, TAB1, TAB3, TAB3)),
            ("AugMix", "augmix", ("ours", TAB5, "ours", "ours", "ours", TAB4, TAB4)),
        )
        for where, (claim, *numbers) in zip(
            wheres,
            (
                ("{} gains on clean images", name, CE, CLEAN, True),
                ("{} gains under corruption", name, CE, BAD, True),
                ("{} lowers ECE", name, CE, "clean.ece", False),
                ("MaCS beats {} on clean images", "macs", name, CLEAN, True),
                ("MaCS beats {} under corruption", "macs", name, BAD, True),
                ("MaCS is below {} in ECE", "macs", name, "clean.ece", False),
                ("MaCS is below {} in NLL", "macs", name, "clean.nll", False),
            ),
            strict=True,
        )
    ),
]
AUTHORS = "discriminative-authors"
RATIO = "classes.boundary_ratio"
BY_NOISE = (("at 8/255", "noise.accuracy.8"), ("at 16/255", NOISY))
LONG: list[Claim] = [  # the discriminative loss with its linear layer, over 100 epochs
    *(
        (where, f"{label} {claim}", name, against, number, above)
        for label, name in (("discriminative", "discriminative"), ("discriminative as its authors' code", AUTHORS))
        for where, claim, against, number, above in (
            ("discriminative-noise Tab. 1", "keeps clean accuracy", CE, CLEAN, True),
            *(("discriminative-noise Tab. 1", f"gains {at}", CE, number, True) for at, number in BY_NOISE),
            ("discriminative-noise Tab. 1", "loses less from clean to 16/255", CE, LOST, False),
            ("discriminative-noise Tab. 1", "beats noisy, clean", "noisy", CLEAN, True),
            *(("discriminative-noise Tab. 1", f"beats noisy {at}", "noisy", number, True) for at, number in BY_NOISE),
            *(("discriminative-noise Tab. 1", f"beats clean-and-noisy {at}", CAN, number, True) for at, number in BY_NOISE),
            ("discriminative-noise Fig. 10", "lowers curvature", CE, CURVED, False),
            *(
                ("ours", f"has a longer distance to a boundary over the spread within a class than {label}", name, RATIO, True)
                for label, name in (("cross-entropy", CE), ("noisy", "noisy"))
            ),
        )
    ),
    *(
        ("ours", f"discriminative as its authors' code beats its text {at}", AUTHORS, "discriminative", number, True)
        for at, number in BY_NOISE
    ),
    ("discriminative-noise Tab. 1", "noisy gains at 16/255", "noisy", CE, NOISY, True),
    ("discriminative-noise Tab. 1", "clean-and-noisy gains at 16/255", CAN, CE, NOISY, True),
]
PARTS = {  # of the data, to the study
    "a twentieth": "docs/results/checks/discriminative-long.yaml",
    "a quarter": "docs/results/checks/discriminative-quarter.yaml",
}
CLAIMS = [*MACS, *MAGNMA, *DISCRIMINATIVE, *REPRESENTATION, *OURS, *NEW]
VERDICTS = ("holds", "**does not hold**", "cannot be told")
Rows = list[list[str]]
Values = dict[tuple[str, str], dict[int, float]]  # method and number to the value of each seed

LAYER = "discriminative, 128 features"
BY_SEED = [  # what the text says of single seeds: (label, number, methods)
    ("accuracy, clean, %", CLEAN, [CE, "macs", "cutmix", "discriminative"]),
    ("accuracy at 16/255, %", NOISY, [CE, "discriminative"]),
    ("margin", "logits.margin", [CE, "macs"]),
    ("logit norm", "logits.norm", [CE, "macs"]),
    ("confidence minus accuracy, clean, %", SIGNED, ["macs-augmix"]),
    ("curvature of Fig. 10", CURVED, [CE, "discriminative"]),
    ("feature RMS over cross-entropy's with the same net", "features.share", ["discriminative", LAYER]),
    ("cross-entropy of the last epoch", "training.cross_entropy", [CE, "macs"]),
    ("mixed cross-entropy of the last epoch", "training.mixed_cross_entropy", ["cutmix"]),
    ("margin term of the last epoch", "training.margin", ["discriminative", LAYER]),
]
OF_ALL = "success of strong PGD, %", STRONG  # of every method
LONG_BY_SEED = {  # the same for the long study, of every method that has it
    "margin term of the last epoch": "training.margin",
    "distance to a boundary over the spread within a class": RATIO,
    "accuracy, clean, %": CLEAN,
    "accuracy at 16/255, %": NOISY,
    "feature RMS": RMS,
}
UNCHANGED = ("clean", "temperature", "logits", "noise", "sensitivity", "curvature", "features")
OWN = {*SETS, LOST, DROP15, "features.share"}  # computed here, not in the cells
TWICE = [CE, "macs", "augmix"]  # seed 0 of these has been computed with both generators
CHANGED = ["zoom_blur", "frost", "snow", "spatter", "glass_blur"]


def main() -> None:
    page = RESULTS / "README.md"
    text = page.read_text(encoding="utf-8")
    for mark, table in tables().items():
        assert mark in text, mark
        before, after = re.split(re.escape(mark) + r"(?:\n\|.*)*", text)
        text = f"{before}{mark}\n{table}{after}"
    page.write_text(text, encoding="utf-8")


def tables() -> dict[str, str]:
    """Every table of the page by the comment that stands above it, as Markdown."""
    values = {folder: values_of(study, folder) for folder, study in STUDIES.items()}
    add_shares(values[FIRST])
    judged = {
        folder: claim_rows(values[folder], of_generator(folder, values), commands_of(STUDIES[folder])) for folder in STUDIES
    }
    tuned = claim_rows(fine_tuned(), TUNING, dict.fromkeys(SHOWN_WHEN_TUNED, "docs/results/checks/fine-tuning.yaml"), TUNED)
    long = {part: found for part, study in PARTS.items() if (found := values_of(study, "checks"))}
    head = [["paper", "claim", "our number", "verdict", "scale", "command"], ["---"] * 6]
    rows = {
        "generators": generator_rows(values[FIRST], values[SECOND]),
        "seeds": seed_rows(
            values[FIRST], [*BY_SEED, (*OF_ALL, [method for method, name in values[FIRST] if name == STRONG])], 5
        ),
        **{f"seeds on {part} of the data": seed_rows(found, every_method(found), 3) for part, found in long.items()},
        "papers": paper_rows([*judged[SECOND], *judged[FIRST]]),
        "claims": [*head, *judged[SECOND]],
        "claims of fine-tuning": [*head, *tuned],
        **{
            f"claims on {part} of the data": [*head, *claim_rows(found, LONG, commands_of(PARTS[part]), f"{part} of the data")]
            for part, found in long.items()
        },
        "claims of the first generator": [*head, *judged[FIRST]],
    }
    return {MARK.format(name): "\n".join(map(line, body)) for name, body in rows.items()}


def of_generator(folder: str, values: dict[str, Values]) -> list[Claim]:
    """The claims that are judged by the cells of a folder: by the second generator where it has seeds enough."""

    def seeds(folder: str, claim: Claim) -> int:
        method, against, name = claim[2:5]
        return len(values[folder].get((method, name), {}).keys() & values[folder].get((against, name), {}).keys())

    second = [claim for claim in CLAIMS if seeds(SECOND, claim) >= ENOUGH]
    return second if folder == SECOND else [claim for claim in CLAIMS if claim not in second and seeds(FIRST, claim)]


def commands_of(study: str) -> dict[str, str]:
    """The study that shows a number against cross-entropy, by the number."""
    return dict.fromkeys(study_of(study).table.columns, study)


def claim_rows(values: Values, claims: list[Claim], commands: dict[str, str], scale: str = "cpu") -> Rows:
    """A row for each claim that two seeds can tell of: its numbers, its verdict and the command that shows them."""
    rows, known_numbers = [], {number for _, number in values}
    for where, claim, method, against, name, above in claims:
        assert name in known_numbers, name
        mine, base = values.get((method, name), {}), values.get((against, name), {})
        found = paired_difference(mine, base)
        if found is None or found.count < 2:
            continue
        both = sorted(mine.keys() & base.keys())
        shown = in_words(fmean(mine[seed] for seed in both), fmean(base[seed] for seed in both), found, name)
        known = commands.get(name) or SHOWN.get((method, name.partition(".")[0]))
        command = f"`{known}`" if known and against == CE else "`claims.py`"
        rows.append([where, claim, shown, verdict(found, above), f"{scale}, {found.count} seeds", command])
    return rows


def fine_tuned() -> Values:
    """Every number of the finished cells of `fine-tuning.yaml`, whose weights need not be at hand."""
    values: Values = {}
    for path in sorted((RESULTS / "checks" / "cells").glob("*.json")):
        cell = json.loads(path.read_text(encoding="utf-8"))
        objective = cell["recipe"]["objective"]
        if cell["recipe"]["model"]["name"] == "lite0":
            assert (cell["recipe"]["data"]["image_size"], cell["recipe"]["training"]["epochs"]) == (64, 5), path
            method = STATISTICS[1] if objective.get("batch_norm") == "clean" else objective["name"]
            for each in cell["measurements"].values():
                for key, value in each["metrics"].items():
                    name = f"{each['measurement']}.{key}"
                    of_seed = values.setdefault((method, name), {})
                    assert cell["recipe"]["seed"] not in of_seed, path
                    of_seed[cell["recipe"]["seed"]] = value * of_column(name).factor
    return values


def study_of(name: str) -> Study:
    """A study of ours by its file in the repo, or a shipped one by its name."""
    return read_study(str(RESULTS.parents[1] / name) if "/" in name else name, "cpu")


def paper_rows(claims: Rows) -> Rows:
    """How many claims of each paper have which verdict; rows of our own are no claims of a paper."""
    counts = Counter((row[0].split()[0], row[3]) for row in claims if "ours" not in row[0])
    papers = list(dict.fromkeys(paper for paper, _ in counts))
    rows = [[paper, *(str(counts[paper, said]) for said in VERDICTS)] for paper in papers]
    return [["paper", "holds", "does not hold", "cannot be told"], ["---"] + ["---:"] * 3, *rows]


def seed_rows(values: Values, shown: list[tuple[str, str, list[str]]], seeds: int) -> Rows:
    """Numbers of single seeds: (label, number, methods)."""
    rows = [["number", "method", *(f"seed {seed}" for seed in range(seeds))], ["---"] * 2 + ["---:"] * seeds]
    for label, name, methods in shown:
        for method in methods:
            of_seed, metric = values[method, name], of_column(name)
            rows.append([label, method, *(number(of_seed[seed], metric) if seed in of_seed else "" for seed in range(seeds))])
    return rows


def every_method(values: Values) -> list[tuple[str, str, list[str]]]:
    """What `seed_rows` shows of the long study."""
    return [(label, name, [method for method, other in values if other == name]) for label, name in LONG_BY_SEED.items()]


def generator_rows(first: Values, second: Values) -> Rows:
    """Cells of seed 0 that both generators have: accuracy under what changed, and how many numbers are equal."""
    rows = [["", *(f"{method}, {order}" for method in TWICE for order in ("first", "second"))], ["---"] + ["---:"] * 6]
    shown = {"19 corruptions": BAD, **{name.replace("_", " "): f"{BAD}.{name}" for name in CHANGED}}
    for label, name in {**shown, "ten of ImageNet-C-bar": CBAR}.items():
        pairs = [values.get((method, name), {}).get(0) for method in TWICE for values in (first, second)]
        rows.append([label, *("" if value is None else number(value, of_column(name)) for value in pairs)])
    for label, parts in {
        "equal, of all numbers": (*UNCHANGED, "corruptions", "attacks", "cost"),
        "equal, of those on clean images, under noise and of geometry": UNCHANGED,
    }.items():
        row = [label]
        for method in TWICE:
            names = [name for other, name in first if other == method and name.partition(".")[0] in parts and name not in OWN]
            equal = sum(first[method, name][0] == second[method, name][0] for name in names)
            row += ["", f"{equal} of {len(names)}"]
        rows.append(row)
    return rows


def values_of(study: str, folder: str) -> Values:
    """Every number of the finished cells of a study in the unit that is shown, with those that are ours."""
    values: Values = {}
    for cell, found in cell_values(study_of(study), folder):
        if BAD in found:
            for name, kept in SETS.items():
                found[name] = fmean(found[f"{BAD}.{each}"] for each in kept)
            found[DROP15] = 1 - found["corruptions.accuracy.of 15"] / found["corruptions.clean_accuracy"]
        found[LOST] = found["noise.accuracy.0"] - found[NOISY]
        for name, value in found.items():
            values.setdefault((str(cell.labels["method"]), name), {})[cell.seed] = value * of_column(name).factor
    return values


def cell_values(study: Study, folder: str) -> Iterator[tuple[Cell, dict[str, float]]]:
    """The finished cells with all that was measured, and the terms of their last epoch."""
    results = Results(RESULTS / folder)
    for cell in cells_of(study):
        measured = results.measured(cell)
        if measured:
            every = {f"{label}.{name}": value for label, all in measured.items() for name, value in all.items()}
            found = {name: value for name, value in every.items() if value is not None}
            ended = results.read(cell.name).get("training", {}).get("last_epoch", {})
            yield cell, found | {f"training.{name}": value for name, value in ended.items()}


def add_shares(values: Values) -> None:
    """The feature RMS of the discriminative loss over cross-entropy's, without and with the layer of the paper."""
    layered = study_of("docs/results/checks/discriminative-loss.yaml")
    with_layer = {
        str(cell.labels["method"]): found
        for cell, found in cell_values(layered, "checks")
        if cell.labels["model"] == "128-features"
    }
    mine, base = values["discriminative", RMS], values[CE, RMS]
    values["discriminative", "features.share"] = {seed: mine[seed] / base[seed] for seed in mine}
    values[LAYER, "features.share"] = {0: with_layer["discriminative"][RMS] / with_layer[CE][RMS]}
    values[LAYER, "training.margin"] = {0: with_layer["discriminative"]["training.margin"]}


def verdict(found: Difference, above: bool) -> str:
    """What the interval says of a claim; one that has 0 says nothing."""
    if found.within_noise is not False:
        return "cannot be told"
    return "holds" if (found.mean > 0) == above else "**does not hold**"


def in_words(mine: float, base: float, found: Difference, name: str) -> str:
    """Both means over the seeds that both have, and the difference with its interval."""
    metric = of_column(name)
    unit = f" {SHARE}" if metric.unit == SHARE else ""
    most = max(map(abs, (mine, base)))
    ends = [number(value, metric, "+", most) for value in (found.mean, found.low, found.high)]
    return f"{number(mine, metric)} against {number(base, metric)}{unit}: {ends[0]} ({ends[1]} to {ends[2]})"


if __name__ == "__main__":
    main()
