"""Does a confidence of 0.8 mean right in 8 of 10 cases?"""

from ..types import Predictions
from .bins import ReliabilityBins, reliability
from .class_scaling import ClassBias, ClassScaling, fit_bias, fit_vector
from .cross_fitting import CrossFit, cross_fit_temperature
from .feature_scaling import FeatureScaling, scale_features
from .isotonic import Isotonic, fit_isotonic
from .repairs import Calibrated, Repair, load_repair
from .scoring import Scores, difference, scores
from .temperature import Temperature, fit_temperature

__all__ = [
    "Calibrated",
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
    "load_repair",
    "reliability",
    "scale_features",
    "scores",
]
