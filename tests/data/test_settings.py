import pytest

from surefoot.data.settings import OWN, ModelSettings, model_names, settings_of
from surefoot.errors import SurefootError, UnknownName

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@pytest.mark.parametrize(
    ("name", "pretrained", "expected"),
    [
        ("small-resnet", False, ModelSettings((32, 32), 1.0, "bilinear", (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))),
        ("resnet50.a1_in1k", False, ModelSettings((224, 224), 0.95, "bicubic", *IMAGENET)),
        ("resnet50", "tv_in1k", ModelSettings((224, 224), 0.875, "bilinear", *IMAGENET)),
        ("vit_small_patch16_224", True, ModelSettings((224, 224), 0.9, "bicubic", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))),
        ("inception_v3.gluon_in1k", False, ModelSettings((299, 299), 0.875, "bicubic", *IMAGENET)),
        ("torchvision/resnet50", False, ModelSettings((224, 224), 224 / 232, "bilinear", *IMAGENET)),
        ("torchvision/resnet50", "IMAGENET1K_V1", ModelSettings((224, 224), 224 / 256, "bilinear", *IMAGENET)),
        ("torchvision/efficientnet_b1", False, ModelSettings((240, 240), 240 / 255, "bilinear", *IMAGENET)),
    ],
)
def test_settings_by_name_and_weights(name, pretrained, expected):
    found = settings_of(name, pretrained)
    assert (found.image_size, found.interpolation) == (expected.image_size, expected.interpolation)
    assert (found.crop_pct, *found.mean, *found.std) == pytest.approx((expected.crop_pct, *expected.mean, *expected.std))


@pytest.mark.parametrize(
    ("name", "pretrained", "message"),
    [
        ("resnet81", False, r"Unknown model 'resnet81'\. Did you mean 'resnet18'"),
        ("torchvision/resnet81", False, "Did you mean 'torchvision/resnet18'"),
        ("vit_b_16", False, "Did you mean 'torchvision/vit_b_16'"),
        ("smal-resnet", False, "Did you mean 'small-resnet'"),
        ("resnet50.a1_in2k", False, "Unknown weights of resnet50 'a1_in2k'. Did you mean 'a1_in1k'"),
        ("resnet50", "a1_in2k", "Unknown weights of resnet50 'a1_in2k'. Did you mean 'a1_in1k'"),
        ("torchvision/resnet50", "IMAGENET1K_V3", "Unknown weights of torchvision/resnet50 'IMAGENET1K_V3'"),
        ("torchvision/fasterrcnn_resnet50_fpn", False, "Unknown model"),
        ("https://example.org/w", False, "Unknown model"),
    ],
)
def test_unknown_names_lead_to_known_ones(name, pretrained, message):
    with pytest.raises(UnknownName, match=message):
        settings_of(name, pretrained)


def test_two_tags_that_differ_and_a_tag_where_there_is_no_choice():
    with pytest.raises(SurefootError, match="pretrained must be 'a1_in1k' as in the name"):
        settings_of("resnet50.a1_in1k", "a2_in1k")
    with pytest.raises(SurefootError, match="pretrained must be true or false for 'small-resnet'"):
        settings_of("small-resnet", "a1_in1k")


def test_our_own_models_are_in_the_registry_and_the_list():
    from surefoot.models.builders import MODELS

    assert list(OWN) == MODELS.names
    assert {"small-resnet", "resnet18", "torchvision/resnet18"} <= set(model_names())
