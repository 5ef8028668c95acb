import pytest
import yaml

from surefoot.errors import SurefootError
from surefoot.training.recipe_files import read_recipe
from surefoot.training.recipes import Recipe

NAMES = {"data": "digits", "model": "tiny-resnet", "objective": "focal"}


def test_defaults_are_those_of_the_constructors():
    found = Recipe.check(NAMES)
    assert found.objective == {"name": "focal", "gamma": 2.0}
    assert found.training["epochs"] == 30
    assert (found.data["name"], found.data["seed"], found.data["fraction"]) == ("digits", 0, 1.0)
    assert found.augmentation is None


def test_yaml_round_trip():
    found = Recipe.check({**NAMES, "seed": 4, "training": {"learning_rate": "1e-3", "weight_decay": "1/2000"}})
    assert found.training["learning_rate"] == 0.001
    assert found.training["weight_decay"] == 0.0005
    assert Recipe.check(yaml.safe_load(found.to_yaml())) == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "focla"}, r"Unknown objective 'focla'\. Did you mean 'focal'\?"),
        ({"objective": {"name": "focal", "gama": 1}}, r"Unknown option of objective 'gama'\. Did you mean 'gamma'\?"),
        ({"objective": {"name": "focal", "gamma": "x"}}, r"objective\.gamma: .*number.*, got 'x'\."),
        ({"objective": {"gamma": 1}}, "objective must have a name"),
        ({"trainig": {}}, r"Unknown section of a recipe 'trainig'\. Did you mean 'training'\?"),
        ({"training": {"epoch": 1}}, r"Unknown option of training 'epoch'\. Did you mean 'epochs'\?"),
        ({"training": 3}, "training must be a mapping"),
        ({"seed": "x"}, "seed must be a whole number"),
        ({"model": {"name": "tiny-resnet", "numclasses": 1}}, "Did you mean 'num_classes'"),
        ({"data": {"name": "digits", "sed": 1}}, "Did you mean 'seed'"),
    ],
)
def test_errors(change, message):
    with pytest.raises(SurefootError, match=message):
        Recipe.check({**NAMES, **change})


def test_files(tmp_path):
    with pytest.raises(SurefootError, match="No recipe at"):
        read_recipe(tmp_path / "no.yaml")
    (tmp_path / "bad.yaml").write_text("a: [1")
    with pytest.raises(SurefootError, match="is not valid YAML"):
        read_recipe(tmp_path / "bad.yaml")
    (tmp_path / "list.yaml").write_text("- 1")
    with pytest.raises(SurefootError, match="must be a mapping of sections"):
        read_recipe(tmp_path / "list.yaml")
