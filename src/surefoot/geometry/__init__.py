"""Why a model is robust or not: measurements of its logits, features and loss surface."""

from .logit_margins import margins

__all__ = ["margins"]
