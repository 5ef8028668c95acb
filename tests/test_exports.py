"""The public names, and what importing them costs."""

import os
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import surefoot as sf

PUBLIC = {
    "surefoot": "Classifier Predictions SurefootError adapt audit audit_predictions compare export fit load_data load_model"
    " load_run track write_card write_page",
    "surefoot.objectives": "CrossEntropy LabelSmoothing Focal Mixup CutMix AugMix MaCS MaCSAugMix MAGNMA Discriminative"
    " Stability NoisyOnly CleanAndNoisy DiverseNoise RandomSelfEnsemble AdversarialTraining TRADES Objective balanced_weights",
    "surefoot.corruptions": "corrupt NAMES CBAR CBAR_CIFAR COMMON15 EXTRA4 FAMILIES PAPERS4 write corrupted open_copies"
    " draw_sheet add_gaussian_noise add_uniform_noise frost_photographs",
    "surefoot.attacks": "fgsm pgd kl_pgd noise autoattack evaluate transfer security_curve masking_signs",
    "surefoot.calibration": "Predictions scores reliability fit_temperature scale_features difference fit_prediction_sets"
    " fit_risk_threshold Metric compute",
    "surefoot.geometry": "margins sensitivity input_curvature fisher_trace class_centres class_means cone_index bias_dependence"
    " feature_statistics hessian_curvature certify radius_estimates neural_collapse representation_plane loss_landscape"
    " layer_projection linear_probe spectral_complexity scale_transformed",
    "surefoot.views": "GaussianNoise GaussianBlur JPEG RotateTranslate Shear AutoContrast Contrast Equalize Posterize"
    " Solarize AugMixChains MixedTone Chain OneOf View build_view",
}


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_there(module):
    loaded = import_module(module)
    for name in PUBLIC[module].split():
        assert getattr(loaded, name) is not None
        assert name in loaded.__all__


@pytest.mark.parametrize("module", PUBLIC)
def test_no_module_has_the_name_of_a_public_object(module):
    loaded = import_module(module)
    modules = {found.name for found in pkgutil.iter_modules(loaded.__path__) if not found.ispkg}
    assert not modules & set(loaded.__all__)


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sf.nothing


def in_fresh_process(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    ).stdout.strip()


def test_import_is_cheap_and_writes_nothing(here):
    """Nothing heavy at `import surefoot`, torch alone with the methods, and no file anywhere a library likes to write."""
    code = (
        "import sys, surefoot; first = set(sys.modules); import surefoot.objectives, surefoot.calibration;"
        "heavy = ['timm', 'accelerate', 'plotly', 'sklearn', 'torchvision', 'pandas'];"
        "print('torch' in first, [m for m in heavy if m in sys.modules])"
    )
    homes = {name: str(here) for name in ("HOME", "XDG_CACHE_HOME", "TORCH_HOME", "HF_HOME")}
    assert in_fresh_process(code, **homes) == "False []"
    assert list(here.iterdir()) == []


def test_report_knows_no_torch():
    code = "import sys, surefoot.report.page, surefoot.report.page; print('torch' in sys.modules)"
    assert in_fresh_process(code) == "False"


def test_help_does_not_import_torch():
    code = (
        "import sys\nfrom surefoot.cli.main import run\ntry: run(['--help'])\nexcept SystemExit: print('torch' in sys.modules)"
    )
    assert in_fresh_process(code).splitlines()[-1] == "False"
