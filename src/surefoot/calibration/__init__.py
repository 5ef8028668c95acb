"""Does a confidence of 0.8 mean right in 8 of 10 cases?"""

from ..types import Predictions
from .bins import ReliabilityBins, reliability
from .calibrators import Calibrated, Calibrator, Repair, load_calibrator, load_repair
from .class_scaling import ClassBias, ClassScaling, fit_bias, fit_vector
from .feature_scaling import FeatureScaling, scale_features
from .isotonic import Isotonic, fit_isotonic
from .scoring import Scores, difference, scores
from .temperature import CrossFit, Temperature, cross_fit_temperature, fit_temperature

__all__ = [
    "Calibrated",
    "Calibrator",
    "ClassBias",
    "ClassScaling",
    "CrossFit",
    "FeatureScaling",
    "Isotonic",
    "Predictions",
    "ReliabilityBins",
    "Repair",
    "Scores",
    "Temperature",
    "cross_fit_temperature",
    "difference",
    "fit_bias",
    "fit_isotonic",
    "fit_temperature",
    "fit_vector",
    "load_calibrator",
    "load_repair",
    "reliability",
    "scale_features",
    "scores",
]
