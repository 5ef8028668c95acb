from surefoot.studies.grid import run_grid, table
from surefoot.training.recipes import Recipe

FEW = {"name": "digits", "fraction": 0.2, "max_images": 60}


def test_recipes_become_runs_audits_and_rows(tmp_path, quicker):
    base = {"data": FEW, "model": "tiny-resnet", "training": {"epochs": 1}}
    recipes = {name: Recipe.check({**base, "objective": name}) for name in ("cross-entropy", "focal")}
    rows = table(run_grid(recipes, tmp_path, progress=False))
    assert list(rows) == ["cross-entropy", "focal"]
    assert list(rows["focal"]) == ["accuracy", "ECE", "NLL", "corrupted accuracy", "corrupted ECE", "fgsm success"]
    for name in recipes:
        assert {"recipe.yaml", "model.safetensors", "audit.json"} <= {path.name for path in (tmp_path / name).iterdir()}
    assert rows["focal"]["NLL"] != rows["cross-entropy"]["NLL"]


def test_a_log_says_which_model_is_trained(tmp_path, quicker, caplog):
    recipe = Recipe.check({"data": FEW, "model": "tiny-resnet", "objective": "focal", "training": {"epochs": 1}})
    with caplog.at_level("INFO"):
        next(iter(run_grid({"ours": recipe}, tmp_path)))
    assert "training ours" in caplog.text
