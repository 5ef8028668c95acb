import json

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.errors import NotFound, SurefootError
from surefoot.files import write_tensors
from surefoot.training.recipes import Recipe
from surefoot.training.runs import begin_run


def test_folder_and_reading_it_back(run, digits):
    names = ["best.safetensors", "history.jsonl", "model.safetensors", "recipe.yaml"]
    assert sorted(path.name for path in run.folder.iterdir()) == names
    lines = [json.loads(line) for line in (run.folder / "history.jsonl").read_text().splitlines()]
    assert lines == run.history
    back = sf.load_run(run.folder)
    assert back.recipe.to_yaml() == run.recipe.to_yaml()
    assert back.history == run.history
    images = digits.test.images[:8].float() / 255
    with torch.no_grad():
        assert torch.equal(back.predictor.eval()(images), run.predictor.eval()(images))


def test_a_run_is_read_without_its_data(run, monkeypatch):
    monkeypatch.setattr(Recipe, "load_data", lambda _: 1 / 0)
    assert sf.load_run(run.folder).model.num_classes == 10


def test_the_recipe_reproduces_the_run(run, tmp_path):
    again = Recipe.read(run.folder / "recipe.yaml").run(output=tmp_path / "again", progress=False)
    for a, b in zip(run.model.state_dict().values(), again.model.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert (tmp_path / "again" / "recipe.yaml").read_text() == (run.folder / "recipe.yaml").read_text()


def test_a_model_with_a_seed_of_its_own_is_reproduced(digits, tmp_path):
    model = sf.load_model("tiny-resnet", data=digits, seed=3)
    first = sf.fit(model, sf.objectives.Focal(1.0), digits, epochs=1, seed=0, output=tmp_path / "a", progress=False)
    assert first.recipe.model["seed"] == 3
    again = Recipe.read(tmp_path / "a" / "recipe.yaml").run(progress=False)
    assert torch.equal(again.model.head.weight, first.model.head.weight)


def test_a_module_from_python_needs_to_be_passed_in(digits, tmp_path):
    def build():
        return sf.adapt(nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)), 0, 1, 32)

    done = sf.fit(build(), sf.objectives.CrossEntropy(), digits, epochs=1, output=tmp_path / "own", progress=False)
    with pytest.raises(SurefootError, match="This run's model came from Python and has no name"):
        sf.load_run(tmp_path / "own")
    assert torch.equal(sf.load_run(tmp_path / "own", model=build()).model.head.weight, done.model.head.weight)


def test_a_run_is_not_overwritten_unless_asked(run, digits):
    before = (run.folder / "model.safetensors").stat().st_mtime_ns
    with pytest.raises(SurefootError, match=r"its training.epochs is 6, not 1\); choose another output or pass overwrite"):
        sf.fit(run.model, run.objective, digits, epochs=1, output=run.folder, progress=False)
    assert (run.folder / "model.safetensors").stat().st_mtime_ns == before


def test_not_a_run_folder(tmp_path, run):
    with pytest.raises(NotFound, match="No run folder at"):
        sf.load_run(tmp_path / "nothing")
    with pytest.raises(SurefootError, match=r"is not a run folder: it has no recipe\.yaml"):
        sf.load_run(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(SurefootError, match="output must be a folder"):
        sf.fit(run.model, run.objective, sf.load_data("digits"), output=tmp_path / "file", progress=False)


def test_weights_of_another_program_are_named(tmp_path, run):
    from surefoot.files import write_tensors

    (tmp_path / "recipe.yaml").write_text((run.folder / "recipe.yaml").read_text())
    with pytest.raises(NotFound, match="No weights at"):
        sf.load_run(tmp_path)
    write_tensors(tmp_path / "model.safetensors", {"x": torch.zeros(1)})
    with pytest.raises(SurefootError, match="was not written by Surefoot"):
        sf.load_run(tmp_path)


def test_a_run_knows_its_classes(run, digits, tmp_path):
    assert sf.load_run(run.folder).class_names == run.class_names == digits.class_names


def test_overwriting_a_run_removes_its_audit(digits, tmp_path):
    folder = tmp_path / "r"
    (folder / "audit-data").mkdir(parents=True)
    for name in ("audit.json", "report.html", "audit-data/points.json", "notes.txt"):
        (folder / name).write_text("{}")
    begin_run(Recipe.check({"data": "digits", "model": "tiny-resnet", "objective": "focal"}), folder, overwrite=True)
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "recipe.yaml"]


def test_the_size_inside_is_that_of_the_weights_it_began_with(digits, tmp_path):
    """As with weights of another size than a model's usual ones: the same model comes back without them."""
    model = sf.load_model("tiny-resnet", data=digits, seed=0)
    model.resize_to = (48, 48)
    run = sf.fit(model, "cross-entropy", digits, epochs=1, output=tmp_path, progress=False)
    again = sf.load_run(tmp_path)
    images = torch.rand(3, 3, 32, 32)
    assert again.model.resize_to == (48, 48)
    assert torch.equal(again.model(images), run.model.eval()(images))


def test_a_run_that_does_not_say_its_size_inside(digits, tmp_path, monkeypatch):
    """As older ones: what the recipe builds is kept."""
    model = sf.load_model("tiny-resnet", data=digits, seed=0)
    sf.fit(model, "cross-entropy", digits, epochs=1, output=tmp_path, progress=False)
    sizes = {"num_classes": 10, "channels": 3, "image_size": (32, 32)}
    write_tensors(tmp_path / "model.safetensors", model.state_dict(), {"surefoot": json.dumps(sizes)})
    model.resize_to = (48, 48)
    monkeypatch.setattr(Recipe, "build_model_of", lambda *_, **__: model)
    assert sf.load_run(tmp_path).model.resize_to == (48, 48)
