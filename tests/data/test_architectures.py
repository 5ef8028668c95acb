"""A wrong name of a model is told from the libraries' sources, as the libraries themselves would tell it."""

import pytest
import timm
import torchvision

from surefoot.data.architectures import REGISTERED, check_architecture, source_of
from surefoot.errors import UnknownName


def test_the_sources_name_what_the_libraries_list():
    assert set(REGISTERED.findall(source_of("timm"))) == set(timm.list_models())
    assert set(REGISTERED.findall(source_of("torchvision"))) == set(torchvision.models.list_models(module=torchvision.models))


def test_every_name_that_a_library_knows_goes_through():
    older = [name for name in ("vit_base_patch16_224_in21k", "tv_resnet50") if timm.is_model(name)]
    for name in ("small-resnet", "torchvision/vgg11", "hf-hub:a/b", "a.b:c", *older):
        check_architecture(name)


def test_every_tag_of_weights_that_timm_knows_goes_through():
    names = timm.list_pretrained()
    assert len(names) > 1000
    for name in names:
        check_architecture(name)
        check_architecture(name.partition(".")[0], name.partition(".")[2])


def test_a_tag_that_none_has():
    for name, pretrained in (("resnet18.a1_in1", False), ("resnet18", "a1_in1"), ("resnet18", "resnet18.a1_in1")):
        with pytest.raises(UnknownName, match="Unknown weights of resnet18 'a1_in1'. Did you mean 'a1_in1k'"):
            check_architecture(name, pretrained)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("resnt18", "resnet18"),
        ("resnt18.a1_in1k", "resnet18"),
        ("smal-resnet", "small-resnet"),
        ("torchvision/vg11", "torchvision/vgg11"),
        ("googlenet", "torchvision/googlenet"),
    ],
)
def test_a_name_that_none_has(name, meant):
    with pytest.raises(UnknownName, match=f"Unknown model '{name.partition('.')[0]}'. Did you mean '{meant}"):
        check_architecture(name)
