"""A repair by the name of its method, for recipes and the command line."""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from ..errors import SurefootError, UnknownName
from ..types import Predictions
from .class_scaling import fit_bias, fit_vector
from .feature_scaling import scale_features
from .isotonic import fit_isotonic
from .repairs import METHODS, Repair
from .temperature import fit_temperature

FITS = {"temperature": fit_temperature, "vector": fit_vector, "bias": fit_bias, "isotonic": fit_isotonic}


def fit_repair(method: str, predictions: Predictions, model: nn.Module, data: str = "") -> Repair:
    """Fit the named method; `data` says whose places the indices are. Feature scaling needs the model's last layer."""
    if method not in METHODS:
        raise UnknownName(METHODS.kind, method, METHODS.names)
    if method == "feature-scaling":
        head = getattr(model, "head", None)
        if not isinstance(head, nn.Linear):
            raise SurefootError(
                "The method 'feature-scaling' needs a model that ends in one linear layer; 'temperature' does not."
            )
        repair: Repair = scale_features(predictions, head)
    else:
        repair = FITS[method](predictions)
    return replace(repair, fitted_on=replace(repair.fitted_on, data=data))
