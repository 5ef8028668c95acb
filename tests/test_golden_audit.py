"""A foreign CIFAR-10 model with known figures, on real images."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.auditing import depths
from surefoot.models.classifier import predict

LOADER = """
import importlib.util, pathlib, torch, pyautoattack
folder = pathlib.Path(pyautoattack.__file__).parent / "examples"
def build():
    spec = importlib.util.spec_from_file_location("their_resnet", folder / "resnet.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    net = module.ResNet18()
    net.load_state_dict(torch.load(folder / "model_test.pt", map_location="cpu", weights_only=True))
    return net.eval()
"""


@pytest.fixture(scope="module")
def cifar(cifar10_test: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 test images of each class from the packed CIFAR-10."""
    folder = tmp_path_factory.mktemp("cifar")
    for each in cifar10_test.iterdir():
        (folder / "test" / each.name).mkdir(parents=True)
        for file in sorted(each.iterdir())[:20]:
            shutil.copy(file, folder / "test" / each.name)
    return folder


@pytest.fixture
def loader(here: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    pytest.importorskip("pyautoattack")
    (here / "foreign_cifar.py").write_text(LOADER)
    monkeypatch.syspath_prepend(str(here))
    return "foreign_cifar:build"


def test_accuracy_of_the_foreign_resnet(cifar, loader, here):
    spec = importlib.util.spec_from_file_location("foreign_cifar", here / "foreign_cifar.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    data = sf.load_data(str(cifar))
    assert len(data.test) == 200
    model = sf.adapt(module.build(), mean=0, std=1, image_size=32)
    assert (model.head_name, model.feature_dim) == ("linear", 512)
    assert float(predict(model, data.test.batches(100)).correct.double().mean()) == pytest.approx(0.87, abs=0.05)


def test_the_command_audits_it(surefoot, cifar, loader, monkeypatch):
    little = {
        "corruptions": {"names": ("contrast",), "severities": (3,), "max_images": 10},
        "attacks": {"names": ("fgsm",), "max_images": 10},
        "features": {"attacked": 0, "max_images": 8},
    }
    monkeypatch.setitem(depths.DEPTHS, "quick", depths.Depth("quick", little))
    options = ["--import", loader, "--data", cifar, "--max-images", 30, "--json", "--quiet"]
    found = surefoot("audit", *options)
    assert found.code == 0, found.err
    audit = json.loads(found.out)
    assert audit["preflight"] == []
    assert audit["calibration"]["accuracy"]["value"] > 0.7
    assert audit["attacks"]["fgsm"]["success_rate"]["value"] > 0.9  # measured: it does not withstand 8/255
