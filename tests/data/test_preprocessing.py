from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

import surefoot as sf
from surefoot.data.arguments import SPLITS
from surefoot.data.preprocessing import Preprocessing, choose_preprocessing
from surefoot.data.settings import ModelSettings, settings_of
from surefoot.errors import SurefootError

NET = ModelSettings((224, 224), 0.875, "bicubic", (0.5,) * 3, (0.5,) * 3)


def picture(height, width):
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "nearest"])
@pytest.mark.parametrize(("height", "width"), [(300, 400), (401, 257), (50, 50), (224, 224)])
def test_the_same_pixels_as_timms_own_transform(interpolation, height, width):
    from timm.data import create_transform

    image = picture(height, width)
    theirs = create_transform(96, is_training=False, interpolation=interpolation, crop_pct=0.875, normalize=False)
    assert torch.equal(Preprocessing((96, 96), 0.875, interpolation)(image), theirs(image))


@pytest.mark.parametrize(("height", "width"), [(300, 400), (400, 300), (90, 500), (80, 100)])
def test_not_square(height, width):
    """The image covers the target and is cut at its centre: a target of the same shape loses nothing."""
    found = Preprocessing((80, 100), 1.0, "bilinear")(picture(height, width))
    assert found.shape == (3, 80, 100)
    same = picture(80, 100)
    assert np.array_equal(Preprocessing((80, 100))(same).permute(1, 2, 0).numpy(), np.asarray(same))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (((32, 32), None, None, None, NET), None),  # tiny images of one size stay
        (((32, 32), None, None, None, None), None),
        (((256, 256), None, None, None, NET), Preprocessing((224, 224), 0.875, "bicubic")),
        ((None, None, None, None, NET), Preprocessing((224, 224), 0.875, "bicubic")),
        (((256, 256), None, None, None, None), None),
        (((32, 32), 48, None, None, NET), Preprocessing((48, 48), 1.0, "bilinear")),
        ((None, 64, None, None, NET), Preprocessing((64, 64), 0.875, "bicubic")),
        ((None, (64, 80), 0.9, "nearest", None), Preprocessing((64, 80), 0.9, "nearest")),
        (((32, 32), 32, None, None, NET), None),
        (((32, 32), None, 0.5, None, None), Preprocessing((32, 32), 0.5, "bilinear")),
    ],
)
def test_choice(arguments, expected):
    assert choose_preprocessing(*arguments) == expected


def test_bad_choices():
    with pytest.raises(SurefootError, match="image_size must be given"):
        choose_preprocessing(None, None, None, None, None)
    with pytest.raises(SurefootError, match="Unknown interpolation 'cubic'. Did you mean 'bicubic'"):
        choose_preprocessing(None, 32, None, "cubic", None)
    with pytest.raises(SurefootError, match="crop_pct must be"):
        choose_preprocessing(None, 32, 1.5, None, None)


def test_a_models_settings_reach_the_data(tmp_path, write_images):
    write_images(tmp_path / "set" / "a", 8, size=(80, 100))
    write_images(tmp_path / "set" / "b", 8, size=(90, 70))
    data = sf.load_data(str(tmp_path / "set"), model="resnet18", max_images=2)
    assert data.image_size == (224, 224)
    first = data.test.indices[0].item()
    files = sorted((tmp_path / "set").rglob("*.png"))
    from timm.data import create_transform, resolve_data_config
    from timm.models import get_pretrained_cfg

    config = resolve_data_config(pretrained_cfg=get_pretrained_cfg("resnet18").to_dict())
    expected = create_transform(**config, normalize=False)(Image.open(files[first]))
    assert torch.equal(data.test.images[0], expected)


@pytest.mark.parametrize(("height", "width"), [(300, 500), (64, 200), (120, 120)])
def test_squashed_as_timm_does(height, width):
    from timm.data import create_transform

    image = picture(height, width)
    theirs = create_transform(96, is_training=False, interpolation="bicubic", crop_pct=0.9, crop_mode="squash", normalize=False)
    assert torch.equal(Preprocessing((96, 96), 0.9, "bicubic", "squash")(image), theirs(image))


def test_weights_decide_how_images_are_cut(tmp_path, write_images):
    write_images(tmp_path / "set" / "a", 8, size=(80, 100))
    write_images(tmp_path / "set" / "b", 8, size=(90, 70))
    settings = settings_of("convnext_base.fb_in22k_ft_in1k_384")
    assert settings.crop_mode == "squash"
    assert choose_preprocessing(None, None, None, None, settings).crop_mode == "squash"
    assert settings_of("resnet18").crop_mode == "center"
    with pytest.raises(SurefootError, match="in crop mode 'border', which is not supported"):
        choose_preprocessing(None, None, None, None, replace(settings, crop_mode="border"))


def test_a_size_that_is_asked_for_holds_for_all(tmp_path, write_images):
    """Also where most images have it already, and only some are looked at."""
    for name in ("a", "b"):
        write_images(tmp_path / "set" / name, 65)
    write_images(tmp_path / "set" / "a", 1, size=(40, 40), start=7)  # every second one is looked at
    data = sf.load_data(tmp_path / "set", image_size=32)
    assert sum(len(data.split(split)) for split in SPLITS) == 130
    again = sf.load_data(**data.source)
    assert again.source == data.source  # a recipe repeats itself
    blocky = sf.load_data(tmp_path / "set", image_size=32, interpolation="nearest")
    assert sum(differ(blocky.split(split), data.split(split)) for split in SPLITS) == 1


def test_an_image_of_another_size_that_is_left_out_stays_out(tmp_path, write_images):
    """The recipe says the size, which nobody had asked for."""
    for name in ("a", "b"):
        write_images(tmp_path / "set" / name, 65)
    write_images(tmp_path / "set" / "a", 1, size=(40, 40), start=7)
    data = sf.load_data(tmp_path / "set", skip_bad_images=True)
    for each in (data, sf.load_data(**data.source)):
        assert sum(len(each.split(split)) for split in SPLITS) == 129


def differ(one, two):
    """How many images two splits have that are not the same."""
    return int((one.images != two.images).flatten(1).any(1).sum())
