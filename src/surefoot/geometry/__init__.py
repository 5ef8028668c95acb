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
from .class_extents import ClassShapes, class_shapes
from .collapse import NeuralCollapse, neural_collapse
from .complexity_terms import MarginTerm, SpectralComplexity, margin_term, spectral_complexity
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
from .fisher_information import FisherSpectrum, fisher_spectrum, fisher_trace, sampled_fisher_trace
from .hessian_spectrum import Eigenvalues, exact_hessian_trace, hessian_eigenvalues, hessian_trace
from .hyperplanes import hyperplane_distances
from .input_curvatures import Curvature, hessian_curvature, input_curvature
from .landscapes import LossLandscape, loss_landscape
from .layer_features import block_features
from .layer_separation import (
    ClassSeparation,
    class_separation,
    divergence_bound,
    jensen_shannon_divergence,
    separation_bound,
)
from .lipschitz_radii import RadiusEstimates, logit_radius, radius_estimates, robustness_radius
from .local_slopes import LocalLipschitz, local_lipschitz
from .logit_margins import LogitStatistics, logit_statistics, margins
from .loss_change import LossChange, loss_change_bound
from .loss_fields import LossField, loss_field
from .mapping_bounds import MappingBound, mapping_bound
from .model_blocks import main_blocks
from .noise_sensitivity import MarginRatio, Sensitivity, margin_ratio, sensitivity
from .noisy_answers import noisy_correct
from .plane_starts import far_features, far_regions
from .planes import RepresentationPlane, representation_plane
from .probes import LinearProbe, fit_probe, linear_probe, probe_features
from .projections import LayerProjection, layer_projection, pca, tsne
from .representation import RepresentationStatistics, representation_statistics
from .scale_transformation import scale_transformed
from .smoothing_certificates import Certificates, certify
from .snapshots import plane_snapshots
from .stability_under_noise import CurvatureBounds, NoiseStability, curvature_bounds, noise_stability
from .traces import Trace

__all__ = [
    "AccuracyByCurvature",
    "AttackPath",
    "BiasDependence",
    "CentreCorrelations",
    "CentreStability",
    "Certificates",
    "ClassSeparation",
    "ClassShapes",
    "ConeIndex",
    "ConfidenceAngles",
    "Curvature",
    "CurvatureBounds",
    "CurvatureByCount",
    "CurvatureSpread",
    "Eigenvalues",
    "FeatureDisplacement",
    "FeatureStatistics",
    "FisherSpectrum",
    "LayerProjection",
    "LinearProbe",
    "LocalLipschitz",
    "LogitStatistics",
    "LossChange",
    "LossField",
    "LossLandscape",
    "MappingBound",
    "MarginRatio",
    "MarginTerm",
    "NeuralCollapse",
    "NoiseStability",
    "RadiusEstimates",
    "RepresentationPlane",
    "RepresentationStatistics",
    "Sensitivity",
    "SpectralComplexity",
    "SuccessByBin",
    "Trace",
    "accuracy_by_curvature",
    "attack_path",
    "bias_dependence",
    "block_features",
    "centre_correlations",
    "centre_stability",
    "certify",
    "class_centres",
    "class_means",
    "class_separation",
    "class_shapes",
    "cone_index",
    "confidence_angles",
    "confidence_correlation",
    "curvature_bounds",
    "curvature_by_count",
    "curvature_spread",
    "divergence_bound",
    "exact_hessian_trace",
    "far_features",
    "far_regions",
    "feature_displacement",
    "feature_statistics",
    "fisher_spectrum",
    "fisher_trace",
    "fit_probe",
    "hessian_curvature",
    "hessian_eigenvalues",
    "hessian_trace",
    "hyperplane_distances",
    "input_curvature",
    "jensen_shannon_divergence",
    "layer_projection",
    "linear_probe",
    "local_lipschitz",
    "logit_radius",
    "logit_statistics",
    "loss_change_bound",
    "loss_field",
    "loss_landscape",
    "main_blocks",
    "mapping_bound",
    "margin_ratio",
    "margin_term",
    "margins",
    "neural_collapse",
    "noise_stability",
    "noisy_correct",
    "observed_features",
    "pca",
    "plane_snapshots",
    "probe_features",
    "radius_estimates",
    "representation_plane",
    "representation_statistics",
    "robustness_radius",
    "sampled_fisher_trace",
    "scale_transformed",
    "sensitivity",
    "separation_bound",
    "spectral_complexity",
    "stepped_cone_index",
    "success_by_bin",
    "tsne",
]
