"""Why a model is robust or not: measurements of its logits, features and loss surface."""

from .angles import ConfidenceAngles, confidence_angles
from .attack_paths import AttackPath, attack_path
from .biases import BiasDependence, bias_dependence
from .centre_comparison import (
    CentreCorrelations,
    CentreStability,
    centre_correlations,
    centre_stability,
    confidence_correlation,
)
from .centres import class_centres, class_means
from .collapse import NeuralCollapse, neural_collapse
from .cones import ConeIndex, cone_index, stepped_cone_index
from .curvature_groups import (
    AccuracyByCurvature,
    CurvatureByCount,
    CurvatureSpread,
    accuracy_by_curvature,
    curvature_by_count,
    curvature_spread,
)
from .displacement import FeatureDisplacement, feature_displacement
from .feature_distribution import FeatureStatistics, SuccessByBin, feature_statistics, success_by_bin
from .feature_passes import observed_features
from .landscapes import LossLandscape, loss_landscape
from .layer_features import block_features
from .logit_margins import margins
from .loss_fields import LossField, loss_field
from .noisy_answers import noisy_correct
from .plane_starts import far_features, far_regions
from .planes import RepresentationPlane, representation_plane
from .probes import LinearProbe, fit_probe, linear_probe, probe_features
from .projections import LayerProjection, layer_projection, pca, tsne
from .representation import RepresentationStatistics, representation_statistics
from .snapshots import plane_snapshots

__all__ = [
    "AccuracyByCurvature",
    "AttackPath",
    "BiasDependence",
    "CentreCorrelations",
    "CentreStability",
    "ConeIndex",
    "ConfidenceAngles",
    "CurvatureByCount",
    "CurvatureSpread",
    "FeatureDisplacement",
    "FeatureStatistics",
    "LayerProjection",
    "LinearProbe",
    "LossField",
    "LossLandscape",
    "NeuralCollapse",
    "RepresentationPlane",
    "RepresentationStatistics",
    "SuccessByBin",
    "accuracy_by_curvature",
    "attack_path",
    "bias_dependence",
    "block_features",
    "centre_correlations",
    "centre_stability",
    "class_centres",
    "class_means",
    "cone_index",
    "confidence_angles",
    "confidence_correlation",
    "curvature_by_count",
    "curvature_spread",
    "far_features",
    "far_regions",
    "feature_displacement",
    "feature_statistics",
    "fit_probe",
    "layer_projection",
    "linear_probe",
    "loss_field",
    "loss_landscape",
    "margins",
    "neural_collapse",
    "noisy_correct",
    "observed_features",
    "pca",
    "plane_snapshots",
    "probe_features",
    "representation_plane",
    "representation_statistics",
    "stepped_cone_index",
    "success_by_bin",
    "tsne",
]
