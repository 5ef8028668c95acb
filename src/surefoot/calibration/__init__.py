"""Does a confidence of 0.8 mean right in 8 of 10 cases?"""

from ..types import Predictions
from .bins import ReliabilityBins, reliability
from .scoring import Scores, difference, scores

__all__ = ["Predictions", "ReliabilityBins", "Scores", "difference", "reliability", "scores"]
