"""How a metric is shown: its name, its unit, and whether more of it is better."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """`factor` turns the stored value into the one that is shown."""

    name: str
    higher_is_better: bool | None  # None: neither
    factor: float = 1.0
    digits: int = 3

    @property
    def arrow(self) -> str:
        return "" if self.higher_is_better is None else "↑" if self.higher_is_better else "↓"


KINDS = {
    "accuracy": Metric("accuracy %", True, 100, 2),
    "clean_accuracy": Metric("clean accuracy %", True, 100, 2),
    "robust": Metric("robust accuracy %", True, 100, 2),
    "error": Metric("error %", False, 100, 2),
    "mce": Metric("mCE %", False, 100, 1),
    "ce": Metric("CE %", False, 100, 1),
    "drop": Metric("accuracy drop %", False, 100, 2),
    "success": Metric("success %", False, 100, 2),
    "ece": Metric("ECE %", False, 100, 2),
    "ece_before": Metric("ECE before %", False, 100, 2),
    "ece_scaled": Metric("ECE after temperature %", False, 100, 2),
    "debiased_ece": Metric("debiased ECE %", False, 100, 2),
    "rms": Metric("RMS calibration error %", False, 100, 2),
    "rms_pooled": Metric("pooled RMS calibration error %", False, 100, 2),
    "signed_error": Metric("confidence - accuracy %", None, 100, 2),
    "nll": Metric("NLL", False),
    "brier": Metric("Brier", False),
    "relative": Metric("step cost", False, 1, 2),
    "milliseconds": Metric("step, ms", False, 1, 1),
    "feature_rms": Metric("feature RMS", None),
    "cosine": Metric("cosine to the centre", None),
    "changed": Metric("answers that change", None, 1, 4),
    "index": Metric("index", None, 1, 1),
    "margin": Metric("margin", True),
    "sensitivity": Metric("sensitivity", False),
    "ratio": Metric("margin / sensitivity", True),
    "curvature": Metric("curvature", False),
    "norm": Metric("logit norm", None, 1, 2),
    "largest": Metric("largest logit", None, 1, 2),
    "temperature": Metric("temperature", None),
    "draws": Metric("deviation over draws %", None, 100, 2),
}


def metric_of(name: str) -> Metric:
    """The kind of `label.metric.detail`: known by the word after the label; the detail goes into its name."""
    label, _, rest = name.partition(".")
    kind, _, detail = rest.partition(".")
    known = KINDS.get(kind, Metric(kind.replace("_", " "), None))
    words = (
        known.name if label in ("clean", "logits", "cost", "sensitivity", "curvature", "features") else f"{label} {known.name}"
    )
    shown = f"{words} ({detail.replace('_', ' ')})" if detail else words
    return Metric(shown, known.higher_is_better, known.factor, known.digits)
