"""Write what the papers claim, and what the committed cells say of it, into docs/results/README.md: `python scripts/claims.py`.

A verdict is the interval's: it lies on the side that the paper claims, on the other side, or has 0 in it.
"""

import re
from pathlib import Path
from statistics import fmean

from surefoot.metrics import SHARE, of_column
from surefoot.studies.cells import cells_of
from surefoot.studies.reading import read_study
from surefoot.studies.rendering import line, number
from surefoot.studies.results import Results
from surefoot.studies.statistics import Difference, paired_difference

RESULTS = Path(__file__).parent.parent / "docs" / "results"
STUDY = "docs/results/checks/first-generator.yaml"
MARK = "<!-- claims: written by scripts/claims.py -->"
CE, LS, CAN = "cross-entropy", "label-smoothing", "clean-and-noisy"
ONE, MIXUP = "(`samples=1`)", "mixup (alpha 0.2; paper: 1)"
CLEAN, BAD, NOISY = "clean.accuracy", "corruptions.accuracy", "noise.accuracy.16"
CURVED = "curvature.lowest90.50"
SETS = {  # our own means over some of the 19 corruptions
    "corruptions.accuracy.of 18": {"gaussian_noise"},
    "corruptions.accuracy.of 15": {"speckle_noise", "gaussian_blur", "spatter", "saturate"},
}
MCA, DROP15, LOST = "corruptions.accuracy.of 18", "corruptions.drop.of 15", "noise.drop.16"
SHOWN = {  # what other studies show of the same cells
    ("macs", "logits"): "macs-table6 --seeds 5",
    ("macs", "sensitivity"): "macs-table10 --seeds 5",
    ("discriminative", "curvature"): "discriminative-figure10",
    ("clean-and-noisy", "curvature"): "discriminative-figure10",
}
# (where, claim, method, against, number, whether the claim is that the difference is above 0)
CLAIMS = [
    ("macs Tab. 1", "MaCS gains on clean images", "macs", CE, CLEAN, True),
    ("macs Tab. 1, 5", "MaCS gains under corruption", "macs", CE, BAD, True),
    ("macs Tab. 7", "MaCS gains under noise", "macs", CE, f"{BAD}.noise", True),
    ("macs Tab. 7", "MaCS gains under blur", "macs", CE, f"{BAD}.blur", True),
    ("macs Tab. 7", "MaCS gains under weather", "macs", CE, f"{BAD}.weather", True),
    ("macs Tab. 7", "MaCS gains under digital corruptions", "macs", CE, f"{BAD}.digital", True),
    ("macs Tab. 7", "MaCS gains without noise and blur (paper: +1.1)", "macs", CE, f"{BAD}.no_overlap", True),
    ("macs Tab. 3", "MaCS lowers ECE", "macs", CE, "clean.ece", False),
    ("macs Tab. 3", "MaCS lowers NLL", "macs", CE, "clean.nll", False),
    ("macs Tab. 4", "MaCS lowers ECE after a temperature", "macs", CE, "temperature.ece", False),
    ("macs Tab. 4", "MaCS lowers NLL after a temperature", "macs", CE, "temperature.nll", False),
    ("macs Tab. 6", "MaCS raises the margin (paper: 2.31 to 3.64)", "macs", CE, "logits.margin", True),
    ("macs Tab. 6", "MaCS raises the logit norm a little (paper: 12.4 to 13.1)", "macs", CE, "logits.norm", True),
    ("macs Tab. 6", "MaCS raises the largest logit a little (paper: 8.7 to 9.2)", "macs", CE, "logits.largest", True),
    ("macs Tab. 10", "MaCS lowers sensitivity", "macs", CE, "sensitivity.sensitivity", False),
    ("macs Tab. 10", "MaCS raises the margin", "macs", CE, "sensitivity.margin", True),
    ("macs Tab. 10", "MaCS raises margin / sensitivity", "macs", CE, "sensitivity.ratio", True),
    ("macs Tab. 5", "AugMix gains under corruption", "augmix", CE, BAD, True),
    ("macs Tab. 5", "MaCS + AugMix beats AugMix under corruption", "macs-augmix", "augmix", BAD, True),
    ("macs Tab. 5", "MaCS + AugMix beats MaCS under corruption", "macs-augmix", "macs", BAD, True),
    ("macs Tab. 1", "label smoothing gains under corruption", LS, CE, BAD, True),
    ("macs Tab. 1", "focal loss gains under corruption", "focal", CE, BAD, True),
    ("macs Tab. 1", "mixup gains under corruption", "mixup", CE, BAD, True),
    ("macs Tab. 3", "label smoothing lowers ECE", LS, CE, "clean.ece", False),
    ("macs Tab. 3", "focal loss lowers ECE", "focal", CE, "clean.ece", False),
    ("macs Tab. 3", "mixup lowers ECE", "mixup", CE, "clean.ece", False),
    ("macs Tab. 9", "a step of MaCS costs less than AugMix's (paper: 1.96, 2.97)", "macs", "augmix", "cost.relative", False),
    ("magnma Tab. 3", f"MAGNMA {ONE} beats AugMix, 18 corruptions", "magnma", "augmix", MCA, True),
    ("magnma Tab. 3", f"MAGNMA {ONE} beats cross-entropy, 18 corruptions", "magnma", CE, MCA, True),
    ("magnma Tab. 3", f"noise term {ONE} beats cross-entropy, 18 corruptions", "magnma-noise", CE, MCA, True),
    ("magnma Tab. 3", f"mixed term {ONE} beats cross-entropy, 18 corruptions", "magnma-mix", CE, MCA, True),
    ("magnma Tab. 3", f"MAGNMA {ONE} beats its noise term, 18 corruptions", "magnma", "magnma-noise", MCA, True),
    ("magnma Tab. 3", f"MAGNMA {ONE} beats its mixed term, 18 corruptions", "magnma", "magnma-mix", MCA, True),
    ("magnma Tab. 3", f"mixed term {ONE} beats noise term, 18 corruptions", "magnma-mix", "magnma-noise", MCA, True),
    ("magnma, ours", f"MAGNMA {ONE} beats AugMix, 19 corruptions", "magnma", "augmix", BAD, True),
    ("magnma, ours", f"MAGNMA {ONE} beats cross-entropy, 19 corruptions", "magnma", CE, BAD, True),
    ("magnma, ours", f"noise term {ONE} beats cross-entropy, 19 corruptions", "magnma-noise", CE, BAD, True),
    ("magnma, ours", f"mixed term {ONE} beats cross-entropy, 19 corruptions", "magnma-mix", CE, BAD, True),
    ("magnma Tab. 3", f"MAGNMA {ONE} keeps clean accuracy", "magnma", CE, CLEAN, True),
    ("magnma Tab. 3", f"mixed term {ONE} keeps clean accuracy", "magnma-mix", CE, CLEAN, True),
    ("magnma Tab. 1", f"MAGNMA {ONE} lowers the RMS calibration error, clean", "magnma", CE, "clean.rms", False),
    ("magnma Tab. 1", f"MAGNMA {ONE} lowers the RMS calibration error, 19 corruptions", "magnma", CE, "corruptions.rms", False),
    (
        "magnma Tab. 1",
        f"MAGNMA {ONE} is below AugMix in RMS error, 19 corruptions",
        "magnma",
        "augmix",
        "corruptions.rms",
        False,
    ),
    ("discriminative-noise Tab. 1", "discriminative keeps clean accuracy", "discriminative", CE, CLEAN, True),
    ("discriminative-noise Tab. 1", "discriminative loses less from clean to 16/255", "discriminative", CE, LOST, False),
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
    ("discriminative-noise Tab. 1", "noisy gains at 16/255", "noisy", CE, NOISY, True),
    ("discriminative-noise Tab. 1", "clean-and-noisy gains at 16/255", CAN, CE, NOISY, True),
    ("discriminative-noise Tab. 1", "stability gains at 16/255", "stability", CE, NOISY, True),
    ("discriminative-noise Fig. 10", "discriminative lowers curvature", "discriminative", CE, CURVED, False),
    ("discriminative-noise Fig. 10", "clean-and-noisy lowers curvature", CAN, CE, CURVED, False),
    ("discriminative-noise Fig. 10", "discriminative is below clean-and-noisy", "discriminative", CAN, CURVED, False),
    ("representation-space Tab. 2", "label smoothing lowers feature RMS", LS, CE, "features.feature_rms", False),
    ("representation-space Tab. 2", f"{MIXUP} lowers feature RMS", "mixup", CE, "features.feature_rms", False),
    ("representation-space Tab. 2", "CutMix lowers feature RMS", "cutmix", CE, "features.feature_rms", False),
    ("representation-space Tab. 2", "label smoothing raises the cosine to the centre", LS, CE, "features.cosine", True),
    ("representation-space Tab. 2", f"{MIXUP} raises the cosine to the centre", "mixup", CE, "features.cosine", True),
    ("representation-space Tab. 2", "CutMix raises the cosine to the centre", "cutmix", CE, "features.cosine", True),
    ("representation-space Tab. 2", "label smoothing lowers the success of FGSM", LS, CE, "attacks.success.fgsm", False),
    ("representation-space Tab. 2", f"{MIXUP} lowers the success of FGSM", "mixup", CE, "attacks.success.fgsm", False),
    ("representation-space Tab. 2", "CutMix lowers the success of FGSM", "cutmix", CE, "attacks.success.fgsm", False),
    (
        "representation-space Tab. 2",
        "label smoothing lowers the success of weak PGD",
        LS,
        CE,
        "attacks.success.pgd-weak",
        False,
    ),
    ("representation-space Tab. 2", f"{MIXUP} lowers the success of weak PGD", "mixup", CE, "attacks.success.pgd-weak", False),
    ("representation-space Tab. 2", "CutMix lowers the success of weak PGD", "cutmix", CE, "attacks.success.pgd-weak", False),
    (
        "representation-space Tab. 2",
        "label smoothing lowers the success of strong PGD",
        LS,
        CE,
        "attacks.success.pgd-strong",
        False,
    ),
    (
        "representation-space Tab. 2",
        f"{MIXUP} lowers the success of strong PGD",
        "mixup",
        CE,
        "attacks.success.pgd-strong",
        False,
    ),
    (
        "representation-space Tab. 2",
        "CutMix lowers the success of strong PGD",
        "cutmix",
        CE,
        "attacks.success.pgd-strong",
        False,
    ),
    ("representation-space Tab. 3", "label smoothing lowers the relative drop, 15 corruptions", LS, CE, DROP15, False),
    ("representation-space Tab. 3", f"{MIXUP} lowers the relative drop, 15 corruptions", "mixup", CE, DROP15, False),
    ("ours", "MaCS lowers ECE under corruption", "macs", CE, "corruptions.ece", False),
    ("ours", "AugMix lowers ECE under corruption", "augmix", CE, "corruptions.ece", False),
    ("ours", "MaCS + AugMix lowers ECE under corruption", "macs-augmix", CE, "corruptions.ece", False),
    ("ours", f"MAGNMA {ONE} lowers ECE under corruption", "magnma", CE, "corruptions.ece", False),
    ("ours", "label smoothing lowers ECE under corruption", LS, CE, "corruptions.ece", False),
    ("ours", "focal loss lowers ECE under corruption", "focal", CE, "corruptions.ece", False),
    ("ours", "mixup lowers ECE under corruption", "mixup", CE, "corruptions.ece", False),
    ("ours", "CutMix lowers ECE under corruption", "cutmix", CE, "corruptions.ece", False),
    ("ours", "AugMix lowers ECE", "augmix", CE, "clean.ece", False),
    ("ours", "MaCS + AugMix lowers ECE", "macs-augmix", CE, "clean.ece", False),
    ("ours", "MaCS lowers the mean curvature", "macs", CE, "curvature.curvature", False),
    ("ours", "AugMix lowers the mean curvature", "augmix", CE, "curvature.curvature", False),
    ("ours", f"MAGNMA {ONE} lowers the mean curvature", "magnma", CE, "curvature.curvature", False),
    ("ours", "discriminative lowers the mean curvature", "discriminative", CE, "curvature.curvature", False),
]


def main() -> None:
    page = RESULTS / "README.md"
    text = page.read_text(encoding="utf-8")
    assert MARK in text
    page.write_text(re.sub(re.escape(MARK) + r"(\n\|.*)*", lambda _: f"{MARK}\n{claims_table()}", text), encoding="utf-8")


def claims_table() -> str:
    """The claims as a Markdown table."""
    study = read_study(str(RESULTS / "checks" / "first-generator.yaml"), "cpu")
    values = read_values(study)
    rows = [["paper", "claim", "our number", "verdict", "scale", "command"], ["---"] * 6]
    for where, claim, method, against, name, above in CLAIMS:
        mine, base = values[method, name], values[against, name]
        found = paired_difference(mine, base)
        assert found is not None
        both = sorted(mine.keys() & base.keys())
        shown = in_words(fmean(mine[seed] for seed in both), fmean(base[seed] for seed in both), found, name)
        known = STUDY if name in study.table.columns else SHOWN.get((method, name.partition(".")[0]))
        command = f"`{known}`" if known and against == CE else "`claims.py`"
        rows.append([where, claim, shown, verdict(found, above), f"cpu, {found.count} seeds", command])
    return "\n".join(map(line, rows))


def read_values(study) -> dict[tuple[str, str], dict[int, float]]:
    """Method and number to the value of each seed, in the unit that is shown, with the three numbers that are ours."""
    results = Results(RESULTS / "first-generator")
    values: dict[tuple[str, str], dict[int, float]] = {}
    for cell in cells_of(study):
        found = {f"{label}.{name}": value for label, all in results.measured(cell).items() for name, value in all.items()}
        for name, left_out in SETS.items():
            names = set(cell.measure["corruptions"][1]["names"]) - left_out
            found[name] = fmean(found[f"{BAD}.{each}"] for each in names)
        found[LOST] = found["noise.accuracy.0"] - found[NOISY]
        found[DROP15] = 1 - found["corruptions.accuracy.of 15"] / found["corruptions.clean_accuracy"]
        for name, value in found.items():
            values.setdefault((str(cell.labels["method"]), name), {})[cell.seed] = value * of_column(name).factor
    return values


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
