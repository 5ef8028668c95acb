import logging

import pytest
import torch

import surefoot as sf
from surefoot.errors import SurefootError, UnknownName
from surefoot.models.stems import patch_of

# the module that pools before the head, the side of what reaches it at 32 px, and the number of features
MODELS = {
    "resnet18": ("global_pool", 4, 512),
    "resnet34": ("global_pool", 4, 512),
    "resnet50": ("global_pool", 4, 2048),
    "convnext_tiny": ("head.global_pool", 4, 768),
    "efficientnet_b0": ("global_pool", 4, 1280),
    "efficientnet_b1": ("global_pool", 4, 1280),
    "mobilenetv2_100": ("global_pool", 4, 1280),
    "mobilenetv3_small_100": ("global_pool", 4, 1024),
    "vit_small_patch16_224": ("patch_embed.norm", 8, 384),
    "vit_base_patch16_224": ("patch_embed.norm", 8, 768),
    "swin_tiny_patch4_window7_224": ("head.global_pool", 4, 768),
    "densenet121": ("global_pool", 4, 1024),
    "inception_v3": ("global_pool", 7, 2048),
}
LARGER = {"resnet34", "efficientnet_b1", "vit_base_patch16_224"}  # of one design with a smaller one: in the stress suite
HEAVY = {"vit_base_patch16_224", "inception_v3", "densenet121", "efficientnet_b1", "resnet34", "swin_tiny_patch4_window7_224"}


def marked(names):
    """The names as parameters, the larger nets of a design for the stress suite alone."""
    return [pytest.param(name, marks=pytest.mark.stress if name in LARGER else ()) for name in names]


def reaching(model, place, images):
    """The height and width of what reaches a module; tokens count as a square."""
    seen = []
    hook = model.module.get_submodule(place).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape))
    model.eval()
    with torch.no_grad():
        model(images)
    hook.remove()
    shape = seen[0]
    if len(shape) == 3:
        return (round(shape[1] ** 0.5),) * 2
    return tuple(shape[1:3]) if shape[1] == shape[2] and shape[3] > shape[1] else tuple(shape[2:])


def check_training(model, features):
    """Forward, backward and features, with a gradient for every parameter that the image reaches."""
    images = torch.rand(2, model.channels, *model.image_size)
    model.train()
    found = model.outputs(images)
    assert found.features.shape == (2, features)
    assert found.logits.shape == (2, model.num_classes)
    found.logits.logsumexp(1).sum().backward()
    without = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert not without
    first = next(p for name, p in model.named_parameters() if p.ndim == 4)
    assert first.grad.abs().sum() > 0


@pytest.mark.parametrize("name", marked(MODELS))
def test_at_32_pixels(name):
    place, side, features = MODELS[name]
    model = sf.load_model(name, num_classes=10, image_size=32, seed=0)
    assert model.resize_to is None
    check_training(model, features)
    assert reaching(model, place, torch.rand(2, 3, 32, 32)) == (side, side)


OF_A_KIND = ("resnet18", "mobilenetv3_small_100", "vit_small_patch16_224")  # the others at their own size in the stress suite


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in OF_A_KIND else pytest.mark.stress) for name in MODELS if name not in HEAVY],
)
def test_at_their_own_size(name):
    model = sf.load_model(name, num_classes=10, seed=0)
    assert min(model.image_size) >= 224
    check_training(model, MODELS[name][2])


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "swin_tiny_patch4_window7_224" else pytest.mark.stress) for name in sorted(HEAVY)],
)
def test_the_heavy_ones_forward_at_their_own_size(name):
    model = sf.load_model(name, num_classes=10, seed=0).eval()
    with torch.no_grad():
        assert model.features(torch.rand(1, 3, *model.image_size)).shape == (1, MODELS[name][2])


@pytest.mark.stress
@pytest.mark.parametrize("name", sorted(HEAVY))
def test_the_heavy_ones_backward_at_their_own_size(name):
    check_training(sf.load_model(name, num_classes=10, seed=0), MODELS[name][2])


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("resnet18", 4),
        ("vit_small_patch16_224", 7),
        pytest.param("convnext_tiny", 3, marks=pytest.mark.stress),
        ("swin_tiny_patch4_window7_224", 4),
    ],
)
def test_mnist(name, side):
    model = sf.load_model(name, num_classes=10, image_size=28, channels=1, seed=0)
    check_training(model, MODELS[name][2])
    assert reaching(model, MODELS[name][0], torch.rand(2, 1, 28, 28)) == (side, side)


@pytest.mark.parametrize(
    ("name", "side"),
    [
        *(("resnet18", 8), ("convnext_tiny", 4), ("mobilenetv2_100", 8)),
        *(pytest.param(*each, marks=pytest.mark.stress) for each in (("swin_tiny_patch4_window7_224", 4), ("inception_v3", 7))),
    ],
)
def test_at_64_pixels(name, side):
    model = sf.load_model(name, num_classes=10, image_size=64, seed=0)
    assert reaching(model, MODELS[name][0], torch.rand(2, 3, 64, 64)) == (side, side)


@pytest.mark.parametrize(
    ("name", "place", "side"),
    [
        ("resnet18", "avgpool", 4),
        ("mobilenet_v2", "features.18", 4),
        ("mobilenet_v3_small", "avgpool", 4),
        ("efficientnet_b0", "avgpool", 4),
        ("regnet_y_400mf", "avgpool", 4),
        ("convnext_tiny", "avgpool", 4),
        ("swin_t", "avgpool", 4),
        ("densenet121", "features.norm5", 4),
        ("inception_v3", "avgpool", 7),
    ],
)
def test_torchvisions_have_the_same_stems(name, place, side):
    model = sf.load_model(f"torchvision/{name}", num_classes=5, image_size=32, seed=0)
    assert model.num_classes == 5
    assert reaching(model, place, torch.rand(2, 3, 32, 32)) == (side, side)
    assert model.train()(torch.rand(2, 3, 32, 32)).shape == (2, 5)


def test_resnets_lose_their_stride_and_their_pooling():
    model = sf.load_model("resnet18", num_classes=10, image_size=32, seed=0)
    conv = model.module.conv1
    assert (conv.kernel_size, conv.stride, conv.padding, conv.weight.shape[2:]) == ((3, 3), (1, 1), (1, 1), (3, 3))
    assert isinstance(model.module.maxpool, torch.nn.Identity)
    assert conv.weight.std().item() == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.1)


def test_deep_stems_keep_their_kernels():
    model = sf.load_model("resnet10t", num_classes=4, channels=1, image_size=40, seed=0)
    assert reaching(model, "global_pool", torch.rand(2, 1, 40, 40)) == (5, 5)


def test_imagenets_stem_is_left_alone():
    model = sf.load_model("resnet18", num_classes=10, image_size=32, stem="imagenet", seed=0)
    assert model.module.conv1.kernel_size == (7, 7)
    assert reaching(model, "global_pool", torch.rand(2, 3, 32, 32)) == (1, 1)
    model = sf.load_model("vit_small_patch16_224", num_classes=10, image_size=32, stem="imagenet", seed=0)
    assert model.module.patch_embed.grid_size == (2, 2)
    with pytest.raises(SurefootError, match=r"^'inception_v3' cannot take 32 x 32 images \(.*stem='enlarge'[^\n]*$"):
        sf.load_model("inception_v3", num_classes=10, image_size=32, stem="imagenet")


def test_above_64_pixels_the_stem_stays():
    assert sf.load_model("resnet18", num_classes=10, image_size=65, seed=0).module.conv1.stride == (2, 2)
    assert sf.load_model("vit_small_patch16_224", num_classes=10, image_size=96, seed=0).module.patch_embed.grid_size == (6, 6)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, marks=pytest.mark.stress if (name, size) == ("convnext_tiny", (96, 128)) else ())
        for size in ((32, 48), (96, 128))
        for name in ("resnet18", "convnext_tiny", "vit_small_patch16_224", "mobilenetv3_small_100")
    ],
)
def test_images_that_are_not_square(name, size):
    model = sf.load_model(name, num_classes=10, image_size=size, seed=0).eval()
    assert model(torch.rand(2, 3, *size)).shape == (2, 10)


@pytest.mark.parametrize(("side", "patch"), [(32, 4), (28, 4), (64, 8), (48, 6), (36, 4), (37, 1), (8, 1)])
def test_the_patch_that_gives_a_grid_nearest_8(side, patch):
    assert patch_of(side) == patch


def test_no_known_stem_is_said(caplog):
    caplog.set_level(logging.INFO, "surefoot")
    model = sf.load_model("vgg11", num_classes=3, image_size=32, seed=0)
    assert model.resize_to is None
    assert caplog.messages == ["No stem for small images is known for 'vgg11'; it keeps its ImageNet stem."]


@pytest.mark.parametrize("name", ["torchvision/vit_b_32", "torchvision/alexnet", "gmixer_12_224"])
def test_nets_of_one_size_get_enlarged_images(name, caplog):
    model = sf.load_model(name, num_classes=3, image_size=32, seed=0).eval()
    assert (model.resize_to, model.image_size) == ((224, 224), (32, 32))
    [message] = caplog.messages
    assert message.startswith(f"'{name}' ")
    assert message.endswith("They are resized to 224 x 224 inside it.")
    assert model(torch.rand(2, 3, 32, 32)).shape == (2, 3)


def test_enlarging_is_bilinear_and_before_normalisation():
    small = sf.load_model("resnet10t", num_classes=3, image_size=32, stem="enlarge", seed=0).eval()
    own = sf.load_model("resnet10t", num_classes=3, seed=0).eval()
    images = torch.rand(2, 3, 32, 32)
    enlarged = torch.nn.functional.interpolate(images, own.image_size, mode="bilinear")
    assert small.resize_to == own.image_size
    assert torch.equal(small(images), own(enlarged))
    assert small.features(images).shape == (2, 512)


def test_unknown_stem():
    with pytest.raises(UnknownName, match="Unknown stem 'imagnet'. Did you mean 'imagenet'"):
        sf.load_model("resnet18", num_classes=3, stem="imagnet")
