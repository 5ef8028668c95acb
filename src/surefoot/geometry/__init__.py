"""Why a model is robust or not: measurements of its logits, features and loss surface."""

from .class_extents import ClassShapes, class_shapes
from .complexity_terms import MarginTerm, SpectralComplexity, margin_term, spectral_complexity
from .fisher_information import FisherSpectrum, fisher_spectrum, fisher_trace, sampled_fisher_trace
from .hessian_spectrum import Eigenvalues, exact_hessian_trace, hessian_eigenvalues, hessian_trace
from .hyperplanes import hyperplane_distances
from .input_curvatures import Curvature, hessian_curvature, input_curvature
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
from .mapping_bounds import MappingBound, mapping_bound
from .noise_sensitivity import MarginRatio, Sensitivity, margin_ratio, sensitivity
from .scale_transformation import scale_transformed
from .smoothing_certificates import Certificates, certify
from .stability_under_noise import CurvatureBounds, NoiseStability, curvature_bounds, noise_stability
from .traces import Trace

__all__ = [
    "Certificates",
    "ClassSeparation",
    "ClassShapes",
    "Curvature",
    "CurvatureBounds",
    "Eigenvalues",
    "FisherSpectrum",
    "LocalLipschitz",
    "LogitStatistics",
    "LossChange",
    "MappingBound",
    "MarginRatio",
    "MarginTerm",
    "NoiseStability",
    "RadiusEstimates",
    "Sensitivity",
    "SpectralComplexity",
    "Trace",
    "certify",
    "class_separation",
    "class_shapes",
    "curvature_bounds",
    "divergence_bound",
    "exact_hessian_trace",
    "fisher_spectrum",
    "fisher_trace",
    "hessian_curvature",
    "hessian_eigenvalues",
    "hessian_trace",
    "hyperplane_distances",
    "input_curvature",
    "jensen_shannon_divergence",
    "local_lipschitz",
    "logit_radius",
    "logit_statistics",
    "loss_change_bound",
    "mapping_bound",
    "margin_ratio",
    "margin_term",
    "margins",
    "noise_stability",
    "radius_estimates",
    "robustness_radius",
    "sampled_fisher_trace",
    "scale_transformed",
    "sensitivity",
    "separation_bound",
    "spectral_complexity",
]
