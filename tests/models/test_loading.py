import logging
from dataclasses import replace
from types import SimpleNamespace
from urllib.error import URLError

import pytest
import torch
import yaml

import surefoot as sf
from surefoot.errors import NotFound, SurefootError, UnknownName
from surefoot.files import write_tensors


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_the_seed_decides_the_weights_and_leaves_the_callers_generator(digits):
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    a, b, c = (sf.load_model("small-resnet", data=digits, seed=seed) for seed in (0, 0, 1))
    assert same(a, b)
    assert not same(a, c)
    assert torch.random.get_rng_state().equal(before)


def test_without_a_seed_torchs_own_decides_and_is_recorded(digits):
    torch.manual_seed(3)
    a = sf.load_model("small-resnet", data=digits)
    torch.manual_seed(3)
    assert same(a, sf.load_model("small-resnet", data=digits))
    assert same(a, sf.load_model("small-resnet", data=digits, seed=a.source["seed"]))


def test_small_resnet(digits):
    model = sf.load_model("small-resnet", data=digits, seed=0)
    assert (model.num_classes, model.feature_dim) == (10, 128)
    assert sum(p.numel() for p in model.parameters()) < 400_000
    model(torch.rand(2, 3, 32, 32)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_any_timm_name(digits):
    model = sf.load_model("resnet18", data=digits, seed=0)
    assert (model.num_classes, model.feature_dim) == (10, 512)
    assert model.mean.flatten().tolist() == pytest.approx([0.485, 0.456, 0.406])
    assert sf.load_model("resnet10t", num_classes=4, channels=1, image_size=40, seed=0)(torch.rand(1, 1, 40, 40)).shape == (
        1,
        4,
    )


def test_bad_names(digits, tmp_path):
    with pytest.raises(UnknownName, match=r"Unknown model 'resnet81'\. Did you mean 'resnet18'"):
        sf.load_model("resnet81", data=digits)
    with pytest.raises(NotFound, match="No checkpoint at"):
        sf.load_model("small-resnet", data=digits, checkpoint=str(tmp_path / "no.pth"))
    with pytest.raises(SurefootError, match="num_classes must be given"):
        sf.load_model("small-resnet")
    with pytest.raises(SurefootError, match="no pretrained weights"):
        sf.load_model("small-resnet", data=digits, pretrained=True)


def test_the_arguments_are_recorded_as_plain_values():
    model = sf.load_model("resnet10t", num_classes=3, image_size=(40, 48), mean=(0.1, 0.2, 0.3), std=0.5, bias=False, seed=4)
    plain = {"name": "resnet10t", "num_classes": 3, "image_size": [40, 48], "channels": None, "pretrained": False}
    plain |= {
        "checkpoint": None,
        "feature_dim": None,
        "rectified": True,
        "bias": False,
        "stem": "auto",
        "mean": [0.1, 0.2, 0.3],
        "std": 0.5,
        "seed": 4,
    }
    assert model.source == plain
    assert yaml.safe_load(yaml.safe_dump(model.source)) == plain
    assert same(model, sf.load_model(**model.source))


def test_normalisation_is_the_models_own_unless_given():
    own = sf.load_model("vit_small_patch16_224", num_classes=3, image_size=32, seed=0)
    assert own.mean.flatten().tolist() == own.std.flatten().tolist() == [0.5, 0.5, 0.5]
    grey = sf.load_model("resnet10t", num_classes=3, image_size=32, channels=1, seed=0)
    assert grey.mean.item() == pytest.approx((0.485 + 0.456 + 0.406) / 3)
    given = sf.load_model("resnet10t", num_classes=3, image_size=32, mean=0.1, std=(0.2, 0.3, 0.4), seed=0)
    assert given.mean.flatten().tolist() == pytest.approx([0.1] * 3)
    assert given.std.flatten().tolist() == pytest.approx([0.2, 0.3, 0.4])
    with pytest.raises(SurefootError, match=r"mean must be one number or 3, got \(1, 2\)"):
        sf.load_model("resnet10t", num_classes=3, image_size=32, mean=(1, 2))


def test_sizes_come_from_any_object_that_has_them():
    data = SimpleNamespace(num_classes=7, image_size=(24, 20), channels=2)
    model = sf.load_model("resnet10t", data=data, seed=0)
    assert (model.num_classes, model.image_size, model.channels) == (7, (24, 20), 2)
    assert sf.load_model("resnet10t", data=data, num_classes=3, image_size=32, channels=1, seed=0).image_size == (32, 32)


@pytest.mark.parametrize(
    ("name", "feature_dim"),
    [
        *(("small-resnet", width) for width in (128, 2, 3)),
        ("resnet10t", 2),
        ("vit_tiny_patch16_224", 3),
        ("torchvision/mobilenet_v3_small", 128),
    ],
)
def test_a_feature_space_before_the_head(name, feature_dim):
    plain = sf.load_model(name, num_classes=5, image_size=32, seed=0).eval()
    model = sf.load_model(name, num_classes=5, image_size=32, feature_dim=feature_dim, seed=0).eval()
    images = torch.rand(4, 3, 32, 32)
    found = model.outputs(images)
    inserted = model.module.get_submodule(model.head_name.removesuffix(".2") + ".1")
    assert (model.feature_dim, model.num_classes, found.features.shape) == (feature_dim, 5, (4, feature_dim))
    assert torch.allclose(found.features, inserted(plain.features(images).relu()), atol=1e-5)
    assert torch.equal(found.logits, model.head(found.features))
    assert model.head.bias is not None


SWIN = pytest.param("swin_tiny_patch4_window7_224", marks=pytest.mark.stress)


@pytest.mark.parametrize("name", ["small-resnet", "vit_tiny_patch16_224", SWIN])
def test_a_feature_space_without_relu(name):
    """Linear from the pooled vector on, negative values included; the same weights as with a ReLU."""
    options = {"num_classes": 5, "image_size": 32, "seed": 0}
    plain = sf.load_model(name, **options).eval()
    model = sf.load_model(name, **options, feature_dim=2, rectified=False).eval()
    images = torch.rand(4, 3, 32, 32)
    pooled, outputs = plain.features(images), model.outputs(images)
    inserted = model.module.get_submodule(model.head_name.removesuffix(".1") + ".0")
    torch.testing.assert_close(outputs.features, pooled @ inserted.weight.T + inserted.bias, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(outputs.logits, outputs.features @ model.head.weight.T + model.head.bias)
    usual = sf.load_model(name, **options, feature_dim=2).eval()
    assert torch.equal(usual.head.weight, model.head.weight)
    silenced = float((pooled < 0).double().mean())  # by the ReLU: nothing of a ResNet, half of a transformer
    assert silenced == 0 if name == "small-resnet" else 0.3 < silenced < 0.7
    assert same(model, sf.load_model(**model.source))


def test_the_feature_space_has_both_signs():
    model = sf.load_model("small-resnet", num_classes=5, image_size=32, feature_dim=128, seed=0).eval()
    found = model.features(torch.rand(4, 3, 32, 32))
    assert (found < 0).any()
    assert (found > 0).any()


@pytest.mark.parametrize("feature_dim", [None, 2])
def test_a_head_without_bias(feature_dim):
    model = sf.load_model("resnet10t", num_classes=5, image_size=32, feature_dim=feature_dim, bias=False, seed=0).eval()
    found = model.outputs(torch.rand(2, 3, 32, 32))
    assert model.head.bias is None
    assert torch.allclose(found.logits, found.features @ model.head.weight.T, atol=1e-6)
    assert "bias" not in {
        name.rpartition(".")[2] for name in model.state_dict() if name.startswith(f"module.{model.head_name}.")
    }


def test_torchvisions_with_other_channels():
    model = sf.load_model("torchvision/resnet18", num_classes=4, channels=1, image_size=32, seed=0)
    assert model.module.conv1.weight.shape == (64, 1, 3, 3)
    model = sf.load_model("torchvision/mobilenet_v3_small", num_classes=4, channels=5, image_size=32, seed=0)
    other = sf.load_model("torchvision/mobilenet_v3_small", num_classes=4, channels=5, image_size=32, seed=0)
    assert same(model, other)
    model(torch.rand(2, 5, 32, 32)).sum().backward()
    assert model.module.features[0][0].weight.grad.shape == (16, 5, 3, 3)


@pytest.mark.parametrize(
    "name",
    [
        *("levit_128s", "deit_tiny_distilled_patch16_224", "efficientformer_l1", "resnetv2_18"),
        *("torchvision/squeezenet1_0", "crossvit_9_240"),
    ],
)
def test_other_endings_are_refused_by_name(name):
    with pytest.raises(SurefootError, match=rf"^'{name}' cannot be used: \w+ must end in one linear layer"):
        sf.load_model(name, num_classes=10)


@pytest.fixture
def untrained(monkeypatch):
    """Timm and torchvision build as if their weights had come: the calls are kept, the weights are drawn."""
    import timm
    import torchvision

    calls, create, get = [], timm.create_model, torchvision.models.get_model

    def create_model(name, pretrained=False, **arguments):
        calls.append((name, pretrained))
        return create(name, pretrained=False, **arguments)

    def get_model(name, weights=None, **arguments):
        calls.append((name, weights and weights.name))
        return get(name, weights=None, **arguments)

    monkeypatch.setattr(timm, "create_model", create_model)
    monkeypatch.setattr(torchvision.models, "get_model", get_model)
    return calls


@pytest.mark.parametrize(
    ("name", "pretrained", "call", "size"),
    [
        ("resnet50", True, ("resnet50.a1_in1k", True), 224),
        ("resnet50", "a1_in1k", ("resnet50.a1_in1k", True), 224),
        ("resnet50.a2_in1k", True, ("resnet50.a2_in1k", True), 224),
        pytest.param(
            *("convnext_tiny", "in12k_ft_in1k_384", ("convnext_tiny.in12k_ft_in1k_384", True), 384), marks=pytest.mark.stress
        ),
        ("vit_small_patch16_224", True, ("vit_small_patch16_224.augreg_in21k_ft_in1k", True), 224),
        ("torchvision/resnet50", True, ("resnet50", "IMAGENET1K_V2"), 224),
        ("torchvision/resnet50", "IMAGENET1K_V1", ("resnet50", "IMAGENET1K_V1"), 224),
    ],
)
def test_pretrained_keeps_its_stem_and_enlarges_the_images(untrained, caplog, name, pretrained, call, size):
    caplog.set_level(logging.INFO, "surefoot")
    model = sf.load_model(name, num_classes=10, image_size=32, pretrained=pretrained, seed=0)
    assert untrained == [call]
    assert (model.image_size, model.resize_to, model.num_classes) == ((32, 32), (size, size), 10)
    assert caplog.messages == [f"'{name}' keeps its stem; 32 x 32 images are resized to {size} x {size} inside it."]
    assert model.source["pretrained"] in call[0] if call[1] is True else model.source["pretrained"] == call[1]
    assert model.source["stem"] == "enlarge"
    if "resnet" in name:
        assert model.module.conv1.kernel_size == (7, 7)


def test_a_pretrained_model_is_built_again_without_its_weights(untrained):
    model = sf.load_model("resnet18", num_classes=10, image_size=32, pretrained=True, seed=0)
    again = sf.load_model(**{**model.source, "pretrained": False})
    assert again.resize_to == model.resize_to
    assert same(model, again)


def test_without_a_network_one_line_says_so(monkeypatch, tmp_path):
    import huggingface_hub.constants as hub

    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(SurefootError, match=r"^'resnet10t' with its weights 'c3_in1k' could not be fetched: [^\n]+$"):
        sf.load_model("resnet10t", pretrained="c3_in1k")
    with pytest.raises(SurefootError, match=r"^'hf-hub:timm/resnet18\.a1_in1k' could not be fetched: [^\n]+$"):
        sf.load_model("hf-hub:timm/resnet18.a1_in1k", num_classes=3)

    def unreachable(*_, **__):
        raise URLError("no route")

    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", unreachable)
    with pytest.raises(
        SurefootError, match=r"^'torchvision/resnet18' with its weights .IMAGENET1K_V1. could not be fetched: .*no route[^\n]*$"
    ):
        sf.load_model("torchvision/resnet18", pretrained=True)


def test_a_name_on_the_hub_is_given_to_timm(monkeypatch):
    config = {"architecture": "resnet10t", "input_size": (3, 48, 48), "mean": (0.1,) * 3, "std": (0.2,) * 3, "num_classes": 6}
    for place in ("timm.models.load_model_config_from_hf", "timm.models._factory.load_model_config_from_hf"):
        monkeypatch.setattr(place, lambda *_, **__: (dict(config), "resnet10t", {}))
    model = sf.load_model("hf-hub:someone/small", num_classes=6, seed=0)
    assert (model.image_size, model.num_classes, model.feature_dim) == ((48, 48), 6, 512)
    assert model.mean.flatten().tolist() == pytest.approx([0.1] * 3)
    assert model.module.conv1[0].stride == (2, 2)  # its own size


def test_a_normalisation_that_is_given_wins_over_the_files(digits, tmp_path):
    path = tmp_path / "w.safetensors"
    write_tensors(path, sf.load_model("small-resnet", num_classes=3, mean=0.3, std=0.7, seed=0).state_dict())
    model = sf.load_model("small-resnet", num_classes=3, mean=0.1, checkpoint=str(path), seed=0)
    assert model.mean.flatten().tolist() == pytest.approx([0.1] * 3)
    assert model.std.flatten().tolist() == pytest.approx([0.7] * 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_classes": 1}, "num_classes must be at least 2, got 1"),
        ({"num_classes": 3, "channels": 0}, "channels must be at least 1, got 0"),
        ({"num_classes": 3, "image_size": (3, 4, 5)}, r"image_size must be one side or \(height, width\)"),
        ({"num_classes": 3, "image_size": 0}, "image_size must be"),
        ({"num_classes": 3, "feature_dim": 0}, "feature_dim must be at least 1, got 0"),
        ({"num_classes": 3, "rectified": False}, "rectified must be True without feature_dim, got False"),
    ],
)
def test_wrong_sizes(arguments, message):
    with pytest.raises(SurefootError, match=message):
        sf.load_model("small-resnet", **arguments)


def test_data_of_one_class(digits):
    with pytest.raises(SurefootError, match="^The data have one class, and a classifier needs at least two"):
        sf.load_model("small-resnet", data=replace(digits, class_names=("zero",)))


def test_weights_that_do_not_exist():
    with pytest.raises(SurefootError, match="'coatnet_0_224' has no pretrained weights"):
        sf.load_model("coatnet_0_224", pretrained=True)
