"""Weights by their tag: a recipe names the very weights, so that another default of the library is another run."""

import pytest
import timm
import torch
from timm.models import get_arch_pretrained_cfgs

import surefoot as sf
from surefoot.data.settings import settings_of, weights_tag
from surefoot.errors import SurefootError
from surefoot.studies.cells import cells_of, digest, identity
from surefoot.studies.study_files import read_study, study_names
from surefoot.training.recipes import Recipe


@pytest.mark.parametrize(
    ("name", "given", "tag"),
    [
        ("resnet50", True, timm.get_pretrained_cfg("resnet50").tag),
        ("resnet50", "tv_in1k", "tv_in1k"),
        ("resnet50", "resnet50.tv_in1k", "tv_in1k"),
        ("resnet50.tv_in1k", True, "tv_in1k"),
        ("resnet50", False, False),
        ("small-resnet", False, False),
        ("torchvision/resnet50", True, "IMAGENET1K_V2"),
        ("torchvision/resnet50", "IMAGENET1K_V1", "IMAGENET1K_V1"),
        ("torchvision/vit_b_16", "IMAGENET1K_SWAG_LINEAR_V1", "IMAGENET1K_SWAG_LINEAR_V1"),
        ("hf-hub:someone/small", True, True),
    ],
)
def test_the_tag_that_is_meant(name, given, tag):
    assert weights_tag(name, given) == tag


def recipe(**model):
    return Recipe.check({"data": "digits", "model": model, "objective": "cross-entropy"})


def test_a_recipe_names_the_weights_and_so_does_its_hash():
    default = timm.get_pretrained_cfg("resnet50").tag
    same = [recipe(name="resnet50", pretrained=given) for given in (True, default, f"resnet50.{default}")]
    assert {each.model["pretrained"] for each in same} == {default}
    names = {digest(identity(each, "digits")) for each in (*same, recipe(name="resnet50", pretrained="tv_in1k"))}
    assert len(names) == 2
    assert f"pretrained: {default}" in same[0].to_yaml()
    with pytest.raises(SurefootError, match=r"Unknown weights of resnet50 'tv_in1'. Did you mean 'tv_in1k'\?"):
        recipe(name="resnet50", pretrained="tv_in1")
    with pytest.raises(SurefootError, match=r"Unknown weights of torchvision/resnet50 'IMAGENET1K_V3'"):
        recipe(name="torchvision/resnet50", pretrained="IMAGENET1K_V3")


@pytest.fixture
def fetched(monkeypatch):
    """The timm names whose weights would be fetched; they are built without."""
    names, build = [], timm.create_model

    def create(name, pretrained=False, **options):
        if pretrained:
            names.append(name)
        return build(name, pretrained=False, **options)

    monkeypatch.setattr(timm, "create_model", create)
    return names


def test_a_model_says_which_weights_it_got(fetched):
    model = sf.load_model("resnet18", num_classes=3, image_size=32, pretrained=True, stem="imagenet", seed=0)
    tag = timm.get_pretrained_cfg("resnet18").tag
    assert (model.source["pretrained"], fetched) == (tag, [f"resnet18.{tag}"])
    assert model.resize_to is None  # native 32 px, with the stem of the weights
    assert model.module.conv1.kernel_size == (7, 7)
    assert model(torch.rand(2, 3, 32, 32)).shape == (2, 3)


def test_a_run_from_tagged_weights_is_read_again_without_them(fetched, tmp_path):
    data = sf.load_data("digits", fraction=0.1)
    for name in ("resnet10t", "resnet10t.c3_in1k"):
        model = sf.load_model(name, data=data, pretrained=True, stem="imagenet", seed=0)
        run = sf.fit(model, "cross-entropy", data, epochs=1, output=tmp_path / name, progress=False)
        again = sf.load_run(tmp_path / name)
        assert all(torch.equal(a, b) for a, b in zip(run.model.parameters(), again.model.parameters(), strict=True))
    assert fetched == ["resnet10t.c3_in1k"] * 2  # never by reading


def test_pretrained_on_the_command_line(fetched, surefoot, here):
    flags = ["--model", "resnet10t", "--set", "model.stem=imagenet", "--fraction", "0.1", "--epochs", "1", "--quiet"]
    for number, given in enumerate((["--pretrained"], ["--pretrained", "c3_in1k"], ["--pretrained=resnet10t.c3_in1k"])):
        done = surefoot("train", *given, *flags, "--output", f"r{number}")
        assert done.code == 0, done.err
        assert "pretrained: c3_in1k" in (here / f"r{number}" / "recipe.yaml").read_text()
    assert fetched == ["resnet10t.c3_in1k"] * 3
    wrong = surefoot("audit", "--model", "resnet10t", "--data", "digits", "--pretrained", "c3_in1")
    assert (wrong.code, "Unknown weights of resnet10t 'c3_in1'. Did you mean 'c3_in1k'?" in wrong.err) == (2, True)


def test_shipped_studies_name_their_weights():
    """MaCS and representation-space say ImageNet-1k tags that exist; none says `true`."""
    tags = {}
    for name in [name for name in study_names() if name.startswith(("macs", "representation", "hyper"))]:
        for section in read_study(name, "full").models.values():
            if isinstance(section, dict) and section.get("pretrained"):
                tags[section["name"]] = section["pretrained"]
                assert section["pretrained"] is not True, (name, section)
                assert settings_of(section["name"], section["pretrained"]).mean
    timms = {name: tag for name, tag in tags.items() if not name.startswith("torchvision/")}
    assert len(timms) == 7
    for name, tag in timms.items():
        assert f"{name}.{tag}" in get_arch_pretrained_cfgs(name)
        assert tag.endswith("_in1k")
        assert not any(other in tag for other in ("in12k", "in21k", "in22k"))


def test_macs_at_the_native_size_beside_the_enlarged_one():
    cells = cells_of(read_study("macs-table1", "full"))
    stems = {cell.labels["model"]: cell.recipe.model["stem"] for cell in cells}
    assert stems == {"resnet50": "imagenet", "resnet50-224px": "enlarge"}
    assert all((cell.recipe.data["calibration"], cell.recipe.data["validation"]) == (0, 0) for cell in cells)
