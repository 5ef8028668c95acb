"""Every method from the command line, with its options and views; sizes come from the model."""

import json

import pytest
import torch
import yaml

import surefoot as sf
from surefoot.files import read_tensors
from surefoot.objectives.methods import OBJECTIVES


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A few digits in an .npz, so that every method trains in a moment."""
    import numpy as np

    data = sf.load_data("digits")
    path = tmp_path_factory.mktemp("tiny") / "tiny.npz"
    images = (data.train.images[:120] * 255).to(torch.uint8).permute(0, 2, 3, 1).numpy()
    labels = np.arange(120) % 10
    np.savez(path, images=images, labels=labels)
    return path


@pytest.mark.parametrize("name", OBJECTIVES.names)
def test_every_method_trains_and_is_read_again(surefoot, here, tiny, name):
    command = ("train", "--data", tiny, "--objective", name, "--epochs", 1, "--batch-size", 16, "--image-size", 16)
    done = surefoot(*command, "--output", "r", "--quiet")
    assert done.code == 0, done.err
    run = sf.load_run("r")
    assert OBJECTIVES.name_of(type(run.objective)) == name
    assert run.predictor(torch.rand(2, 3, 16, 16)).shape == (2, 10)
    history = json.loads((here / "r" / "history.jsonl").read_text().splitlines()[-1])
    assert all(value == value for value in history.values() if isinstance(value, float))


def test_a_views_options(surefoot, here, tiny):
    command = ("train", "--data", tiny, "--objective", "macs", "--epochs", 1, "--batch-size", 16, "--image-size", 16, "--quiet")
    done = surefoot(*command, "--set", "objective.view=[blur, {name: noise, std: [0, 0.3]}]", "--output", "r")
    assert done.code == 0, done.err
    section = yaml.safe_load((here / "r" / "recipe.yaml").read_text())["objective"]
    assert section["view"] == ["blur", {"name": "noise", "std": [0, 0.3]}]
    assert repr(sf.load_run("r").objective.perturb.views[1]) == "GaussianNoise(std=[0.0, 0.3], clip=False)"
    wrong = surefoot(*command, "--set", "objective.view=nosie", "--output", "s")
    assert wrong.code == 2
    assert wrong.err == "surefoot: Unknown view 'nosie'. Did you mean 'noise'?\n"


def test_sizes_and_centroids_are_part_of_the_run(surefoot, here, tiny):
    command = ("train", "--data", tiny, "--objective", "discriminative", "--epochs", 1, "--batch-size", 16, "--image-size", 16)
    assert surefoot(*command, "--output", "r", "--quiet").code == 0
    section = yaml.safe_load((here / "r" / "recipe.yaml").read_text())["objective"]
    run = sf.load_run("r")
    assert (section["num_classes"], section["feature_dim"]) == (10, run.model.feature_dim)
    kept = read_tensors("objective state", here / "r" / "objective.safetensors")
    assert torch.equal(run.objective.centroid_table, kept["centroid_table"])
    assert kept["seen"].all()
    again = surefoot(*command, "--output", "r", "--quiet")  # the same command finds the finished run
    assert again.code == 0, again.err
    wrong = surefoot(*command, "--set", "objective.feature_dim=3", "--output", "s", "--quiet")
    assert wrong.code == 2
    assert "feature_dim must be the model's" in wrong.err


def test_a_view_from_python_is_named_in_the_recipe(digits, tmp_path):
    def dimmed(images, generator=None):
        return 0.5 * images

    model = sf.load_model("tiny-resnet", data=digits, seed=0)
    sf.fit(model, sf.objectives.MaCS(view=dimmed), digits, epochs=1, output=tmp_path / "r", progress=False)
    section = yaml.safe_load((tmp_path / "r" / "recipe.yaml").read_text())["objective"]
    assert section["view"].startswith("python:")
    assert section["view"].endswith("dimmed")
    assert sf.load_run(tmp_path / "r").predictor is not None


def test_the_list_has_views_and_options(surefoot):
    found = json.loads(surefoot("list", "views", "--json").out)["views"]
    assert {"name": "noise", "help": "Gaussian noise, one level or a range", "options": {"std": 0.1, "clip": False}} in found
    names = [line["name"] for line in json.loads(surefoot("list", "objectives", "--json").out)["objectives"]]
    assert names == OBJECTIVES.names
