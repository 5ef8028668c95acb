"""The table of measurements: what a study can ask of a trained model, by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from ..attacks.presets import ATTACKS
from ..corruptions.families import CORRUPTIONS
from ..errors import SurefootError
from ..registry import Own, Registry
from ..schemas import check_options, defaults_of
from .jobs import Measure

HERE = "surefoot.studies."


def is_measurement(target: Any) -> bool:
    return inspect.isfunction(target) and next(iter(inspect.signature(target).parameters), None) == "subject"


MEASUREMENTS = Registry(
    "measurement",
    [
        ("clean", HERE + "answer_measurements:clean", "Accuracy, ECE, NLL, Brier and RMS calibration error on the test split"),
        (
            "temperature",
            HERE + "answer_measurements:temperature",
            "The same after temperature scaling on the calibration split",
        ),
        ("validation", HERE + "answer_measurements:validation", "Accuracy, ECE and NLL on the validation split, never test"),
        ("logits", HERE + "answer_measurements:logit_statistics", "Norm of the logits, largest logit, margin (macs Table 6)"),
        ("feature-scaling", HERE + "answer_measurements:scaled_features", "ECE before and after feature scaling (Fig. 25)"),
        ("corruptions", HERE + "corruption_measurements:corruptions", "Accuracy and calibration under corruptions"),
        ("noise", HERE + "corruption_measurements:noise_levels", "Accuracy at levels of noise, over draws"),
        ("occlusions", HERE + "corruption_measurements:occlusions", "Occlusion, down/up-sampling, stripes and their chains"),
        ("attacks", HERE + "attack_measurements:attacks", "Success of attacks among images that were right"),
        ("transfer", HERE + "attack_measurements:transfers", "Success of attacks made on another model"),
        ("cost", HERE + "cost_measurements:step_cost", "Time of a training step relative to cross-entropy"),
        ("probe", HERE + "probe_measurements:linear_probe", "Accuracy of a linear classifier on the features of other data"),
        ("sensitivity", HERE + "geometry_measurements:sensitivities", "Margin, sensitivity and their ratio (macs Table 10)"),
        ("curvature", HERE + "geometry_measurements:curvature", "Input-loss curvature (discriminative-noise Eq. 21)"),
        (
            "curvature-noise",
            HERE + "geometry_measurements:curvature_and_noise",
            "Accuracy under noise by curvature (Fig. 8, 9)",
        ),
        ("loss-surface", HERE + "geometry_measurements:loss_surface", "Rise of the loss around an image (Fig. 11)"),
        ("features", HERE + "geometry_measurements:features", "Feature RMS and cosine to the class centre (Table 2, Fig. 7)"),
        ("centres", HERE + "geometry_measurements:centres", "Correlation of confidence and cosine to centres (Table 1)"),
        (
            "centre-stability",
            HERE + "geometry_measurements:centre_searches",
            "The same by how centres are sought (Table 9)",
        ),
        ("cosine-attacks", HERE + "geometry_measurements:cosine_attacks", "Attack success by cosine to the centre (Fig. 3)"),
        ("cone", HERE + "geometry_measurements:cone", "First change of class on the way to the origin (Table 5)"),
        ("plane-start", HERE + "start_measurements:plane_start", "Cones from starts far from the origin (Fig. 12)"),
        ("bias", HERE + "geometry_measurements:bias", "Size of the bias and the answers that depend on it (Table 6)"),
    ],
    Own("a function whose first argument is subject", is_measurement),
)

TABLES = {"corruptions": CORRUPTIONS, "attacks": ATTACKS, "transfer": ATTACKS, "cosine-attacks": ATTACKS}  # of their names


def validation_only() -> tuple[str, ...]:
    """Measurements that never see the test split."""
    return ("validation", "cost")


def check_measure(label: str, given: Mapping[str, Any] | None) -> Measure:
    """A measurement and its options, complete; `measurement` names it where the label is another word."""
    if not isinstance(given, Mapping | None):
        raise SurefootError(f"measure.{label} must be a mapping of options, got {given!r}.")
    options = dict(given or {})
    name = str(options.pop("measurement", label))
    function = MEASUREMENTS.load(name)
    checked = check_options(f"measure.{label}", function, options, ("subject",))
    for each in checked.get("names") or () if name in TABLES else ():
        TABLES[name].load(each)  # before anything is trained for it
    return name, checked


def default_options(name: str) -> dict[str, Any]:
    return defaults_of(MEASUREMENTS.load(name), ("subject",))
