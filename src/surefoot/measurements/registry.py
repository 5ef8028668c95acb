"""The table of measurements: what an audit, a study and a gate can ask of a model, by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from ..errors import SurefootError
from ..registry import Own as OwnRule
from ..registry import Registry
from ..schemas import check_options, defaults_of
from .base import Measurement, Own

HERE = "surefoot.measurements."
VERSIONS = ("generator", "version")  # options that say which draws or definition: always part of a result's name
FIRST = ("context", "subject")  # what the first argument of a function of one's own is called


def is_measurement(target: Any) -> bool:
    if inspect.isclass(target):
        return issubclass(target, Measurement)
    return inspect.isfunction(target) and next(iter(inspect.signature(target).parameters), None) in FIRST


MEASUREMENTS = Registry(
    "measurement",
    [
        ("clean", HERE + "predictions:Clean", "Accuracy, ECE, NLL, Brier and RMS calibration error on the test split"),
        ("temperature", HERE + "predictions:Temperature", "The same after temperature scaling on the calibration split"),
        ("validation", HERE + "predictions:Validation", "Accuracy, ECE and NLL on the validation split, never test"),
        ("feature-scaling", HERE + "predictions:FeatureScaling", "ECE before and after feature scaling (Fig. 25)"),
        ("corruptions", HERE + "corruptions:Corruptions", "Accuracy and calibration under corruptions"),
        ("noise", HERE + "noise:Noise", "Accuracy at levels of noise, over draws"),
        ("occlusions", HERE + "noise:Occlusions", "Occlusion, down/up-sampling, stripes and their chains"),
        ("pictures", HERE + "pictures:Pictures", "Confident mistakes, and a few images under every corruption"),
        ("foreign", HERE + "foreign:Foreign", "How well foreign pictures are told from known ones, by every score"),
        ("members", HERE + "members:Members", "What the members of an ensemble say apart"),
        ("attacks", HERE + "attacks:Attacks", "Success of attacks among images that were right"),
        ("security-curve", HERE + "attacks:SecurityCurve", "What PGD leaves in balls of growing size"),
        ("patch", HERE + "patch:Patch", "Success of one patch, trained on other images, wherever it is put"),
        ("masking", HERE + "attacks:Masking", "Signs that gradients mislead"),
        ("transfer", HERE + "attacks:Transfer", "Success of attacks made on another model"),
        ("cosine-attacks", HERE + "attacks:CosineAttacks", "Attack success by cosine to the centre (Fig. 3)"),
        ("logits", HERE + "predictions:LogitStatistics", "Norm of the logits, largest logit, margin (macs Table 6)"),
        ("sensitivity", HERE + "sensitivity:Sensitivity", "Margin, sensitivity and their ratio (macs Table 10)"),
        ("radius", HERE + "sensitivity:Radius", "Estimated distance to another class (macs Thm 4.5)"),
        ("stability", HERE + "sensitivity:Stability", "Features and loss under noise (discriminative-noise Thm 6.1)"),
        ("curvature", HERE + "curvature:Curvature", "Input-loss curvature (discriminative-noise Eq. 21)"),
        ("curvature-noise", HERE + "curvature:CurvatureNoise", "Accuracy under noise by curvature (Fig. 8, 9)"),
        ("hessian", HERE + "curvature:Hessian", "Curvature by second derivatives, change of the loss (magnma Thm 1)"),
        ("fisher", HERE + "curvature:Fisher", "Trace of the Fisher information of an image (magnma Eq. 7)"),
        ("slopes", HERE + "curvature:Slopes", "Slopes towards other classes (macs Thm 4.5, small r)"),
        ("loss-surface", HERE + "curvature:LossSurface", "Rise of the loss around an image (Fig. 11)"),
        ("landscape", HERE + "curvature:Landscape", "Maps of the loss around two images (Fig. 11)"),
        ("features", HERE + "features:Features", "Feature RMS and cosine to the class centre (Table 2, Fig. 7)"),
        ("displacement", HERE + "features:Displacement", "How far FGSM moves the features (Fig. 7)"),
        ("cone", HERE + "features:Cone", "First change of class on the way to the origin (Table 5)"),
        ("bias", HERE + "features:Bias", "Size of the bias and the predictions that depend on it (Table 6)"),
        ("centres", HERE + "classes:Centres", "Correlation of confidence and cosine to centres (Table 1)"),
        ("centre-stability", HERE + "classes:CentreSearches", "The same by how centres are sought (Table 9)"),
        ("classes", HERE + "classes:ClassShapes", "Widths and margins of classes (discriminative-noise Def. 3.1, 5.1)"),
        ("collapse", HERE + "classes:Collapse", "Neural collapse (Papyan et al. 2020)"),
        ("complexity", HERE + "bounds:Complexity", "Spectral complexity and the margin term (macs Thm 4.2)"),
        ("mapping", HERE + "bounds:MappingBound", "The mapping bound (discriminative-noise Thm 6.2)"),
        ("layers", HERE + "layers:Layers", "Classes by layer: t-SNE and separation (discriminative-noise Thm 6.3)"),
        ("plane", HERE + "plane:Plane", "Decision regions of a model with two or three features"),
        ("plane-start", HERE + "plane:PlaneStart", "Cones from starts far from the origin (Fig. 12)"),
        ("certificates", HERE + "bounds:Certificates", "Certified accuracy by randomised smoothing (Cohen et al. 2019)"),
        ("probe", HERE + "features:LinearProbe", "Accuracy of a linear classifier on the features of other data"),
        ("cost", HERE + "cost:StepCost", "Time of a training step relative to cross-entropy"),
    ],
    OwnRule("a Measurement, or a function whose first argument is context", is_measurement),
    "surefoot.measurements",
)


def options_of(name: str) -> Any:
    """What takes the options of a measurement, and which of its arguments are none."""
    return MEASUREMENTS.load(name), (() if inspect.isclass(MEASUREMENTS.load(name)) else FIRST)


def check_measure(label: str, given: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """A measurement and its options, complete; `measurement` names it where the label is another word.

    Options that cannot be met are refused before anything is trained for them; not so an earlier `generator` or `version`,
    whose results can still be shown.
    """
    if not isinstance(given, Mapping | None):
        raise SurefootError(f"measure.{label} must be a mapping of options, got {given!r}.")
    options = dict(given or {})
    name = str(options.pop("measurement", label))
    target, left_out = options_of(name)
    checked = check_options(f"measure.{label}", target, options, left_out)
    build(name, {key: value for key, value in checked.items() if key not in VERSIONS})
    return name, checked


def build(name: str, options: Mapping[str, Any]) -> Measurement:
    """The measurement with its options."""
    target: Any = MEASUREMENTS.load(name)
    if not inspect.isclass(target):
        return Own(target, options)
    measurement: Any = target(**options)
    assert isinstance(measurement, Measurement)
    return measurement


def default_options(name: str) -> dict[str, Any]:
    return defaults_of(*options_of(name))


def validation_only() -> tuple[str, ...]:
    """Measurements that never see the test split."""
    return ("validation", "cost")
