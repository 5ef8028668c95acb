"""Other models that a measurement trains beside its cell: each in its own folder, once."""

import torch
from tiny import cells

from surefoot.measurements.plane import PlaneStart
from surefoot.studies.cell_runs import Beside, train
from surefoot.studies.cells import digest, identity

PLANE = {"tiny-resnet": {"name": "tiny-resnet", "feature_dim": 2}}


def test_a_model_of_its_own_start_has_a_folder_named_for_it(tmp_path):
    """The digest of the recipe and what the measurement calls the start, with one dash between them."""
    recipe = cells(tmp_path, models=PLANE)[0].recipe
    beside = Beside(tmp_path / "work", "digits", "cpu")
    model = recipe.build_model(recipe.load_data())
    suffix = PlaneStart(features=True, regions=True, epochs=2).suffix
    first = beside.run(recipe, model, suffix)
    (folder,) = (tmp_path / "work" / "runs").iterdir()
    assert folder.name == f"{digest(identity(recipe, 'digits'))}-start-features-regions-2"
    written = (folder / "model.safetensors").stat().st_mtime_ns
    again = beside.run(recipe, recipe.build_model(recipe.load_data()), suffix)
    assert (folder / "model.safetensors").stat().st_mtime_ns == written
    assert all(torch.equal(one, two) for one, two in zip(first.model.parameters(), again.model.parameters(), strict=True))


def test_a_recipe_alone_is_trained_where_its_own_cell_is(tmp_path):
    cell = cells(tmp_path)[0]
    Beside(tmp_path / "work", "digits", "cpu").run(cell.recipe)
    (folder,) = (tmp_path / "work" / "runs").iterdir()
    assert folder.name == cell.name
    written = (folder / "model.safetensors").stat().st_mtime_ns
    train(cell.recipe, "digits", tmp_path / "work", "cpu")
    assert (folder / "model.safetensors").stat().st_mtime_ns == written
