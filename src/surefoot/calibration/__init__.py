"""Does a confidence of 0.8 mean right in 8 of 10 cases?

Names are imported when they are first used: scores from plain columns need no torch.

>>> import torch
>>> import surefoot as sf
>>> sure = torch.tensor([[0.8, 0.2]] * 10)
>>> predictions = sf.Predictions.from_probabilities(sure, torch.tensor([0] * 8 + [1] * 2))
>>> found = sf.calibration.scores(predictions, intervals=0)
>>> round(float(found.accuracy), 3), round(float(found.ece), 3)  # 0.8 is right in 8 of 10 cases
(0.8, 0.0)
>>> round(float(sf.calibration.fit_temperature(predictions).temperature), 3)
1.0
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from ..types import Predictions
    from .bins import ReliabilityBins, reliability
    from .calibrators import Calibrated, Calibrator, Repair, load_calibrator, load_repair
    from .metric import Metric, compute
    from .per_class import ClassBias, ClassScaling, Isotonic, fit_bias, fit_isotonic, fit_vector
    from .prediction_sets import CrossFitSets, PredictionSets, cross_fit_prediction_sets, fit_prediction_sets
    from .risk import CrossFitRisk, RiskThreshold, cross_fit_risk_threshold, fit_risk_threshold
    from .scoring import Scores, difference, scores
    from .set_scores import SetScores
    from .temperature import CrossFit, FeatureScaling, Temperature, cross_fit_temperature, fit_temperature, scale_features

_HOME = {
    "Predictions": "..types",
    "ReliabilityBins": ".bins",
    "reliability": ".bins",
    "Calibrated": ".calibrators",
    "Calibrator": ".calibrators",
    "Repair": ".calibrators",
    "load_calibrator": ".calibrators",
    "load_repair": ".calibrators",
    "Metric": ".metric",
    "compute": ".metric",
    "ClassBias": ".per_class",
    "ClassScaling": ".per_class",
    "fit_bias": ".per_class",
    "fit_vector": ".per_class",
    "FeatureScaling": ".temperature",
    "scale_features": ".temperature",
    "Isotonic": ".per_class",
    "fit_isotonic": ".per_class",
    "CrossFitSets": ".prediction_sets",
    "PredictionSets": ".prediction_sets",
    "cross_fit_prediction_sets": ".prediction_sets",
    "fit_prediction_sets": ".prediction_sets",
    "CrossFitRisk": ".risk",
    "RiskThreshold": ".risk",
    "cross_fit_risk_threshold": ".risk",
    "fit_risk_threshold": ".risk",
    "Scores": ".scoring",
    "difference": ".scoring",
    "scores": ".scoring",
    "SetScores": ".set_scores",
    "CrossFit": ".temperature",
    "Temperature": ".temperature",
    "cross_fit_temperature": ".temperature",
    "fit_temperature": ".temperature",
}

__all__ = [
    "Calibrated",
    "Calibrator",
    "ClassBias",
    "ClassScaling",
    "CrossFit",
    "CrossFitRisk",
    "CrossFitSets",
    "FeatureScaling",
    "Isotonic",
    "Metric",
    "PredictionSets",
    "Predictions",
    "ReliabilityBins",
    "Repair",
    "RiskThreshold",
    "Scores",
    "SetScores",
    "Temperature",
    "compute",
    "cross_fit_prediction_sets",
    "cross_fit_risk_threshold",
    "cross_fit_temperature",
    "difference",
    "fit_bias",
    "fit_isotonic",
    "fit_prediction_sets",
    "fit_risk_threshold",
    "fit_temperature",
    "fit_vector",
    "load_calibrator",
    "load_repair",
    "reliability",
    "scale_features",
    "scores",
]


def __getattr__(name: str) -> _Any:
    if name in _HOME:
        return getattr(_import_module(_HOME[name], __name__), name)
    raise AttributeError(f"module 'surefoot.calibration' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
