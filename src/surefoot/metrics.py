"""The facts of every number: its label, its unit, which way is better, and one sentence of what it says.

The one table for the page, the terminal, the tables of studies, comparisons and gates. Audits name a number by its path
(`corruptions.cells.fog.3.accuracy`), studies by the label of a measurement (`corruptions.accuracy.fog`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from .errors import UnknownName, suggestion

UP, DOWN, NEITHER = 1, -1, 0
ENDS = ("value", "low", "high")  # of an interval
SHARE = "%"  # stored as a share of 1, shown as a percentage


@dataclass(frozen=True)
class Metric:
    """`better` is 1 where more is better, -1 where less is and 0 where neither; `digits` are those after the point."""

    label: str
    better: int = NEITHER
    unit: str = ""
    meaning: str = ""
    digits: int = 3
    detail: str = ""  # of a family of metrics, such as the corruption

    @property
    def factor(self) -> float:
        """What turns the stored value into the one that is shown."""
        return 100.0 if self.unit == SHARE else 1.0

    @property
    def arrow(self) -> str:
        return {UP: "↑", DOWN: "↓"}.get(self.better, "")

    @property
    def title(self) -> str:
        """The label with its unit and detail, for the head of a column."""
        unit = f" {SHARE}" if self.unit == SHARE else f", {self.unit}" if self.unit else ""
        return f"{self.label}{unit}" + (f" ({self.detail})" if self.detail else "")


def share(label: str, better: int, meaning: str, digits: int = 2) -> Metric:
    return Metric(label, better, SHARE, meaning, digits)


def amount(label: str, better: int, meaning: str, digits: int = 3, unit: str = "") -> Metric:
    return Metric(label, better, unit, meaning, digits)


PREDICTIONS: dict[str, Metric] = {  # of a model's predictions; the page lists the scores in this order
    "accuracy": share("accuracy", UP, "right predictions"),
    "top5": share("top-5 accuracy", UP, "right class among the five most probable"),
    "balanced_accuracy": share("balanced accuracy", UP, "mean over classes of how often each is recognised"),
    "macro_f1": share("macro F1", UP, "mean over classes of F1, which falls by misses and by false alarms"),
    "matthews": amount("Matthews correlation", UP, "of answers and labels; 0 for an answer that does not look, 1 is perfect"),
    "chance": share("chance", NEITHER, "accuracy of the best answer without looking: the commonest class, or 1 in K"),
    "commonest_share": share("commonest answer", NEITHER, "images for which the model gives its commonest answer"),
    "ece": share("ECE", DOWN, "mean gap between confidence and accuracy over 15 bins of equal width"),
    "signed_error": share("confidence - accuracy", NEITHER, "mean confidence minus accuracy; above 0 is overconfident"),
    "debiased_ece": share("debiased ECE", DOWN, "ECE without the share that chance alone would show"),
    "adaptive_ece": share("adaptive ECE", DOWN, "ECE with bins of equally many images"),
    "classwise_ece": share("classwise ECE", DOWN, "ECE of each class's probability, on average"),
    "smooth_ece": share("smooth ECE", DOWN, "ECE without bins"),
    "rms": share("RMS calibration error", DOWN, "root of the mean squared gap, which weighs large gaps more"),
    "max_error": share("maximum calibration error", DOWN, "largest gap of any bin, however few images it holds"),
    "nll": amount("NLL", DOWN, "negative log-likelihood; punishes confident mistakes most"),
    "brier": amount("Brier score", DOWN, "squared error of all probabilities; 0 is perfect"),
    "brier_reliability": amount("Brier: reliability", DOWN, "the part that calibration could remove"),
    "brier_resolution": amount("Brier: resolution", UP, "how far predictions differ from the base rate"),
    "brier_uncertainty": amount("Brier: uncertainty", NEITHER, "of the labels alone; no model can change it"),
    "aurc": amount("AURC", DOWN, "mean error over all thresholds of confidence"),
    "auroc": share("AUROC", UP, "chance that a right prediction is surer than a wrong one; 50 % is chance"),
    "ece_if_calibrated": share("ECE if calibrated", NEITHER, "the range that a perfectly calibrated model would show"),
    "ece_before": share("ECE before", DOWN, "before the calibrator"),
    "scaled_ece": share("ECE after temperature scaling", DOWN, "with a temperature that has not seen these images"),
    "temperature": amount("temperature", NEITHER, "what the logits are divided by; above 1 for an overconfident model"),
    "feature_scale": amount("feature scale", NEITHER, "what the features are multiplied by (representation-space Fig. 25)"),
    "confidence": share("mean confidence", NEITHER, "of the predicted classes"),
    "precision": share("precision", UP, "how often a prediction of the class is right"),
    "coverage": share("coverage", UP, "images that the model decides by itself"),
    "set_size": amount("set size", DOWN, "classes in a prediction set, on average"),
    "risk": share("risk", DOWN, "errors among the images that the model decides by itself"),
    "wanted_risk": share("wanted risk", NEITHER, "the error rate that was requested"),
    "threshold": amount("threshold", NEITHER, "the confidence from which the model decides by itself"),
}

DAMAGE: dict[str, Metric] = {  # of changed images: corruptions, noise, attacks
    "clean_accuracy": share("clean accuracy", UP, "right predictions on the same images before they are changed"),
    "error": share("error", DOWN, "mean error over corruptions: mCE without a baseline"),
    "mce": share("mCE", DOWN, "mean over corruptions of the error divided by AlexNet's (Hendrycks and Dietterich 2019)", 1),
    "ce": share("CE", DOWN, "error under one corruption divided by AlexNet's", 1),
    "relative_mce": share("mCE, relative", DOWN, "mean over corruptions of the error divided by the other model's, minus 1"),
    "relative_drop": share("relative accuracy drop", DOWN, "share of the clean accuracy on the same images that is lost"),
    "adaptive_rms": share("adaptive RMS calibration error", DOWN, "over bins of equally many images, as Hendrycks et al. bin"),
    "adaptive_rms_pooled": share(
        "pooled adaptive RMS calibration error", DOWN, "the same of the predictions under all corruptions together"
    ),
    "pooled_rms": share("pooled RMS calibration error", DOWN, "of the predictions under all corruptions together"),
    "robust_accuracy": share("robust accuracy", UP, "right predictions that are left under attack"),
    "success_rate": share("success", DOWN, "right predictions that the attack turns wrong"),
    "deviation": share("deviation over draws", NEITHER, "of the accuracy over draws of the noise"),
    "severity": amount("severity", NEITHER, "of a corruption, 1 to 5"),
    "level": amount("noise level", NEITHER, "in units of the pixel range"),
    "eps": amount("budget", NEITHER, "how far an attack may change a pixel"),
}

MEMBERS: dict[str, Metric] = {  # of the members of an ensemble
    "mutual_information": amount("mutual information", NEITHER, "entropy of the mean prediction minus the mean entropy, nats"),
    "variation_ratio": share("variation ratio", NEITHER, "members that do not vote with the majority"),
    "disagreement": share("disagreement", NEITHER, "pairs of members with different answers"),
    "mutual_information_auroc": share("AUROC of mutual information", UP, "chance that a mistake has more of it"),
    "variation_ratio_auroc": share("AUROC of the variation ratio", UP, "chance that a mistake has a larger one"),
    "disagreement_auroc": share("AUROC of disagreement", UP, "chance that there is more of it about a mistake"),
}

FOREIGN: dict[str, Metric] = {  # of pictures that are none of the classes
    "aupr_foreign": share("AUPR, foreign", UP, "average precision with the foreign pictures as the positives"),
    "aupr_known": share("AUPR, known", UP, "average precision with the known pictures as the positives"),
    "fpr95": share("FPR at 95 %", DOWN, "foreign pictures that pass where 95 % of the known ones do"),
    "auroc_difference": share("AUROC minus the best's", UP, "paired by the draws of pictures; 0 for the best score"),
    "joint_risk": share("joint risk", DOWN, "wrong answers and answered foreign pictures, one picture in ten being foreign"),
    "mixtures": share("joint risk by mixture", DOWN, "the same by the share of foreign pictures"),
    "foreign_answered": share("foreign pictures answered", DOWN, "with a confidence above the page's threshold"),
    "answered": share("answered", UP, "known pictures that the model decides by itself"),
}

COUNTS: dict[str, Metric] = {
    "images": amount("images", NEITHER, "that this was measured on", 0),
    "draws": amount("draws", NEITHER, "of the noise", 0),
    "taken_for_images": amount("images taken for it", NEITHER, "that were taken for that class", 0),
    "fatal": amount("fatal findings", DOWN, "of the checks before the audit: no number can be believed", 0),
    "warning": amount("warnings", DOWN, "of the checks before the audit: some numbers are doubtful", 0),
    "note": amount("notes", NEITHER, "of the checks before the audit", 0),
    "unfinished": amount("unfinished", NEITHER, "images on which the attack ran out of steps or time", 0),
    "queries": amount("queries", DOWN, "how often an attack asked the model about an image, on average", 0),
    "certified_images": amount("certified images", NEITHER, "that were certified", 0),
    "relative": amount("step cost", DOWN, "time of a training step relative to cross-entropy (macs Tab. 9)", 2),
    "epochs": amount("training cost", DOWN, "time of the whole training, in epochs of cross-entropy", 1),
    "milliseconds": amount("step", DOWN, "time of a training step", 1, "ms"),
}

GEOMETRY: dict[str, Metric] = {  # why a model is robust or not
    "mean_margin": amount(
        "margin", UP, "the right logit minus the best of the others; larger is safer for logits of the same size (macs Eq. 3)"
    ),
    "logit_norm": amount("logit norm", NEITHER, "how large the logits are; confidence grows with it (macs Tab. 6)", 2),
    "largest_logit": amount("largest logit", NEITHER, "mean of the winning logit (macs Tab. 6)", 2),
    "sensitivity": amount(
        "sensitivity", DOWN, "how far noise moves the logits, for each unit of noise; smaller is steadier (macs Tab. 10)"
    ),
    "prediction_sensitivity": amount("prediction sensitivity", DOWN, "how far noise moves the probabilities (macs Def. 4.3)"),
    "margin_to_sensitivity": amount(
        "margin / sensitivity", UP, "margin for each unit of movement: the larger, the more noise is borne (macs Tab. 10)"
    ),
    "median_margin_to_sensitivity": amount(
        "median margin / sensitivity", UP, "margin over sensitivity of the middle image (macs Tab. 10)"
    ),
    "radius": amount("radius", UP, "estimated distance to the nearest other class; an estimate, no certificate (macs Thm 4.5)"),
    "curvature": amount(
        "curvature", DOWN, "how sharply the loss bends around an image; flat is robust (discriminative-noise Eq. 21)"
    ),
    "median_curvature": amount("median curvature", DOWN, "curvature of the middle image (discriminative-noise Eq. 21)"),
    "lowest90": amount("curvature of the lowest 90 %", DOWN, "a quartile of it (discriminative-noise Fig. 10)"),
    "hessian_curvature": amount("Hessian curvature", DOWN, "curvature from the Hessian itself; nets with kinks (ReLU) differ"),
    "largest_eigenvalue": amount("largest eigenvalue", DOWN, "of the Hessian of the loss in the image"),
    "fisher_trace": amount(
        "Fisher trace", DOWN, "how much the prediction depends on small changes of the image (magnma Eq. 7)"
    ),
    "local_lipschitz": amount(
        "local Lipschitz constant",
        DOWN,
        "how steeply the lead over another class falls; smaller is steadier (macs Thm 4.5, small r)",
    ),
    "first_order_radius": amount(
        "first-order radius",
        UP,
        "distance to another class if the slope stays; no certificate (macs Thm 4.5, small r)",
    ),
    "loss_change": amount(
        "loss change", DOWN, "how much the loss can grow within a distance of 0.1, to second order (magnma Thm 1, Eq. 11)"
    ),
    "two_sided_loss_change": amount(
        "two-sided loss change", DOWN, "loss change where the loss may also bend downwards (magnma Thm 1)"
    ),
    "largest_rise_of_the_loss": amount(
        "largest rise of the loss",
        DOWN,
        "within a distance of 1 along the gradient and across it (discriminative-noise Fig. 11)",
    ),
    "loss_deviation": amount(
        "deviation of the loss", DOWN, "over a grid along the gradient and across it (discriminative-noise Fig. 11)"
    ),
    "loss_slope": amount("slope of the loss", DOWN, "norm of its gradient in the image (discriminative-noise Fig. 11)"),
    "feature_rms": amount(
        "feature RMS", NEITHER, "size of the features; confidence grows with it (representation-space Tab. 2)"
    ),
    "feature_rms_deviation": amount("feature RMS deviation", NEITHER, "its spread over images (representation-space Tab. 2)"),
    "feature_cosine": amount(
        "cosine to the centre",
        NEITHER,
        "how well features point at their class centre; 1 is exactly (representation-space Tab. 2)",
    ),
    "feature_cosine_deviation": amount(
        "cosine deviation", NEITHER, "spread of the cosine over images (representation-space Tab. 2)"
    ),
    "pearson": amount("Pearson r", NEITHER, "correlation of the two numbers that the measurement is about"),
    "image_pearson": amount("Pearson r over images", NEITHER, "of curvature and right draws (discriminative-noise Fig. 9)"),
    "centre_correlations": amount(
        "centre correlations",
        NEITHER,
        "how well the cosine to each kind of centre tells the confidence (representation-space Tab. 1)",
    ),
    "centre_stability": amount(
        "centre stability",
        NEITHER,
        "class centres over 18 optimiser settings; cosines near 1 are stable (representation-space Tab. 9)",
    ),
    "cone_index": amount(
        "cone index",
        NEITHER,
        "the first of 100 steps to the origin that changes the class; 100 is a cone (representation-space Tab. 5)",
        1,
    ),
    "cone_index_deviation": amount("cone index deviation", NEITHER, "its spread over images (representation-space Tab. 5)", 1),
    "full_cones": amount(
        "full cones",
        NEITHER,
        "share of images that keep their class in all steps to the origin (representation-space Tab. 5)",
    ),
    "exact_cone_index": amount(
        "exact cone index", NEITHER, "the cone index without rounding up to a step: where the class changes on the ray", 2
    ),
    "exact_cone_index_deviation": amount("exact cone index deviation", NEITHER, "its spread over images", 2),
    "exact_full_cones": amount("exact full cones", NEITHER, "share of images that no point of the ray to the origin changes"),
    "feature_distance": amount(
        "distance of the features", NEITHER, "from the origin, before and after training (representation-space Fig. 12)"
    ),
    "strength": amount(
        "regularisation", NEITHER, "of the linear probe, chosen on validation images (representation-space Tab. 10)", 5
    ),
    "bias_dependence": amount(
        "predictions that change without bias",
        NEITHER,
        "share of right predictions that change without the bias of the head (representation-space Tab. 6)",
        4,
    ),
    "bias_dependence_deviation": amount(
        "deviation of predictions that change without bias", NEITHER, "its spread over classes (representation-space Tab. 6)"
    ),
    "mean_absolute_bias": amount("mean absolute bias", NEITHER, "size of the head's bias (representation-space Tab. 6)"),
    "mean_absolute_bias_deviation": amount(
        "absolute bias deviation", NEITHER, "its spread over classes (representation-space Tab. 6)"
    ),
    "neural_collapse": amount(
        "neural collapse", NEITHER, "distance from classes that are single points, equally far apart; 0 is complete collapse"
    ),
    "perturbation_rms": amount(
        "perturbation RMS", NEITHER, "how far FGSM at 8/255 moves the features (representation-space Fig. 7)"
    ),
    "relative_perturbation": amount(
        "relative perturbation", NEITHER, "how far FGSM moves the features, by their size (representation-space Fig. 7)"
    ),
    "perturbation_correlation": amount(
        "perturbation correlation", NEITHER, "whether large features are moved further (representation-space Fig. 7)"
    ),
    "class_dispersion": amount(
        "class dispersion", DOWN, "largest distance within a class, mean of the classes (discriminative-noise Def. 3.1)"
    ),
    "class_margin": amount(
        "class margin", UP, "least distance of a class to a boundary, mean of the classes (discriminative-noise Def. 5.1)"
    ),
    "signed_class_margin": amount(
        "signed class margin",
        UP,
        "class margin, below 0 where an image is on the wrong side (discriminative-noise Def. 5.1)",
    ),
    "hyperplane_distance": amount(
        "hyperplane distance",
        UP,
        "of an image's features to the nearest boundary, below 0 where wrong (discriminative-noise Eq. 10)",
    ),
    "boundary_ratio": amount(
        "boundary ratio",
        UP,
        "hyperplane distance over the mean distance to the class's mean; free of scale (discriminative-noise Prop. 5.3)",
    ),
    "class_separation": amount(
        "class separation",
        UP,
        "of pairs of classes at a layer, 0 to 0.693: apart entirely (discriminative-noise Thm 6.3)",
    ),
    "class_separation_bound": amount(
        "class separation bound",
        NEITHER,
        "what the last layer forces on those before it; 0 says nothing (discriminative-noise Thm 6.3)",
    ),
    "log_spectral_complexity": amount(
        "log spectral complexity",
        NEITHER,
        "logarithm of R_f, how much the layers can stretch; without shortcuts (macs Def. 4.1)",
    ),
    "log_margin_term": amount(
        "log margin term", NEITHER, "logarithm of R_f B / (margin sqrt n): a term to compare by, not a bound (macs Thm 4.2)"
    ),
    "share_below_margin": amount(
        "share below margin", DOWN, "of training images with a margin below 1, the other part of the theorem (macs Thm 4.2)"
    ),
    "mapping_bound": amount(
        "mapping bound",
        DOWN,
        "on the share outside a class's ball, best class; vacuous from 1 on (discriminative-noise Thm 6.2)",
    ),
    "vacuous_mapping_bounds": amount(
        "vacuous mapping bounds",
        DOWN,
        "share of the classes for which that bound says nothing (discriminative-noise Thm 6.2)",
    ),
    "feature_distance_under_noise": amount(
        "feature distance under noise", DOWN, "how far noise moves the features (discriminative-noise Def. 6.1)"
    ),
    "loss_outside": amount(
        "loss outside", NEITHER, "loss where features have left their neighbourhood (discriminative-noise Def. 6.1)"
    ),
    "eigenvalue_upper_bound": amount(
        "eigenvalue upper bound", NEITHER, "discriminative-noise Thm 6.1; it assumes a quadratic loss"
    ),
    "eigenvalue_lower_bound": amount(
        "eigenvalue lower bound", NEITHER, "discriminative-noise Thm 6.1; it assumes a quadratic loss"
    ),
    "certified_accuracy": amount(
        "certified accuracy", UP, "right for certain within the radius, by randomised smoothing (Cohen et al. 2019)"
    ),
    "certified_noise": amount("certified noise", NEITHER, "deviation of the smoothing noise"),
}

METRICS: dict[str, Metric] = {**PREDICTIONS, **DAMAGE, **MEMBERS, **FOREIGN, **COUNTS, **GEOMETRY}
IN_AUDITS = {  # other words of an audit for the same facts
    "mean_accuracy": "accuracy",
    "mean_ece": "ece",
    "mean_nll": "nll",
    "mean_rms": "rms",
    "mean_scaled_ece": "scaled_ece",
    "corrupted_ece": "ece",
    "corrupted_scaled_ece": "scaled_ece",
    "scaled_ece_if_calibrated": "ece_if_calibrated",
    "mean_error": "error",
    "alexnet_mce": "mce",
    "temperatures": "temperature",
    "thresholds": "threshold",
}
IN_STUDIES = {  # and of the measurements of a study
    "robust": "robust_accuracy",
    "success": "success_rate",
    "drop": "relative_drop",
    "ece_scaled": "scaled_ece",
    "rms_pooled": "pooled_rms",
    "draws": "deviation",
    "scale": "feature_scale",
    "norm": "logit_norm",
    "largest": "largest_logit",
    "margin": "mean_margin",
    "ratio": "margin_to_sensitivity",
    "ratio_median": "median_margin_to_sensitivity",
    "median": "median_curvature",
    "rise": "largest_rise_of_the_loss",
    "spread": "loss_deviation",
    "slope": "loss_slope",
    "rms_deviation": "feature_rms_deviation",
    "cosine": "feature_cosine",
    "cosine_deviation": "feature_cosine_deviation",
    "index": "cone_index",
    "index_deviation": "cone_index_deviation",
    "full": "full_cones",
    "exact_index": "exact_cone_index",
    "exact_index_deviation": "exact_cone_index_deviation",
    "exact_full": "exact_full_cones",
    "distance": "feature_distance",
    "size": "mean_absolute_bias",
    "size_deviation": "mean_absolute_bias_deviation",
    "changed": "bias_dependence",
    "changed_deviation": "bias_dependence_deviation",
}
UNNAMED = ("clean", "logits", "cost", "sensitivity", "curvature", "features")  # measurements that go without saying


def find(name: str, words: Mapping[str, str] = IN_AUDITS) -> Metric:
    """A metric by its own name, or another word for it; an unknown one suggests the nearest."""
    metric = METRICS.get(words.get(name, name))
    if metric is None:
        raise UnknownName("metric", name, [*METRICS, *words])
    return metric


def of_path(path: str) -> Metric:
    """What the number at a path of an audit is: the last of its words that is a metric; the rest says where."""
    words = [word for word in path.split(".") if word not in ENDS]
    known = [word for word in words if word in METRICS or word in IN_AUDITS]
    return find(known[-1] if known else words[-1])


UNIT_RANGE = {
    *("accuracy", "top5", "ece", "adaptive_ece", "classwise_ece", "smooth_ece", "rms", "max_error", "auroc", "aurc"),
    *("ece_if_calibrated", "ece_before", "scaled_ece", "confidence", "precision", "coverage", "risk", "wanted_risk"),
    *("clean_accuracy", "error", "robust_accuracy", "success_rate"),
}
NOT_NEGATIVE = {"nll", "brier", "temperature", "threshold", *COUNTS}  # a threshold above 1 is none


def range_of(path: str) -> tuple[float, float]:
    """Between which ends the number at a path of an audit can lie, as far as that is known from its name."""
    words = [word for word in path.split(".") if word not in ENDS and not word.isdigit()]
    name = IN_AUDITS.get(words[-1], words[-1]) if words and words[0] != "measurements" else ""
    if name in UNIT_RANGE:
        return 0.0, 1.0
    if name == "signed_error":
        return -1.0, 1.0
    return (0.0, math.inf) if name in NOT_NEGATIVE else (-math.inf, math.inf)


def facts(path: str) -> Metric:
    """As `of_path`; a number from outside the package has its name alone."""
    try:
        return of_path(path)
    except UnknownName:
        return Metric(path.rpartition(".")[2].replace("_", " "))


def of_column(name: str) -> Metric:
    """The column `label.metric.detail` of a study, as `corruptions.accuracy.fog`: label and detail go into its own label.

    A measurement from outside the package may give numbers that nobody knows: no unit, and neither way is better.
    """
    label, _, rest = name.partition(".")
    kind, _, detail = rest.partition(".")
    metric = find(kind, IN_STUDIES) if known_in_studies(kind) else Metric(kind.replace("_", " "))
    words = metric.label if label in UNNAMED else f"{label} {metric.label}"
    return replace(metric, label=words, detail=detail.replace("_", " "))


def known_in_studies(kind: str) -> bool:
    return IN_STUDIES.get(kind, kind) in METRICS


def path_label(path: str) -> str:
    """`corruptions.mean_ece` is corrupted ECE, `temperature.calibration.ece` ECE after temperature scaling."""
    part, *rest = path.split(".")
    metric = facts(path)
    if part == "attacks" and len(rest) > 1:
        return f"{'.'.join(rest[:-1])} {metric.label}"
    if part == "temperature" and rest[:1] == ["calibration"]:
        return f"{metric.label} after temperature scaling"
    damaged = metric in PREDICTIONS.values() and (part == "corruptions" or "corrupted_" in path)
    return f"corrupted {metric.label}" if damaged else metric.label


def did_you_mean(column: str) -> str:
    """A sentence that leads from an unknown metric of a study to the nearest; empty for a known one."""
    kind = [*column.split("."), ""][1]
    return "" if known_in_studies(kind) else suggestion(kind, [*METRICS, *IN_STUDIES])
