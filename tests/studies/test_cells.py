"""A cell is named by what it is: not by where its data are, who asks for it, or what the defaults are written as."""

import pytest
from tiny import cells

from surefoot.errors import SurefootError
from surefoot.studies.cells import cells_of, only
from surefoot.studies.reading import read_study


def test_grid_is_every_combination(tmp_path):
    found = cells(tmp_path, fractions=[0.5, 1.0], seeds=2, seeds_of={"focal": 1})
    assert len(found) == 2 * 2 + 2 * 1
    assert len({cell.name for cell in found}) == 6
    half = next(cell for cell in found if cell.labels["fraction"] == 0.5)
    assert half.recipe.data["fraction"] == pytest.approx(0.1)  # of the fifth that the data section asks for


def test_name_depends_on_the_recipe_alone(tmp_path):
    name = cells(tmp_path)[0].name
    assert cells(tmp_path, title="Another", measure={"logits": {}})[0].name == name
    assert cells(tmp_path, methods={"cross-entropy": {"name": "cross-entropy", "class_weights": None}})[0].name == name
    assert cells(tmp_path, training={"epochs": 1, "batch_size": 64, "momentum": 0.9})[0].name == name
    others = [
        cells(tmp_path, training={"epochs": 2, "batch_size": 64})[0].name,
        cells(tmp_path, models={"small-resnet": {"name": "small-resnet", "bias": False}})[0].name,
        cells(tmp_path, data={"digits": {"name": "digits", "fraction": 0.3, "max_images": 60}})[0].name,
        cells(tmp_path, augmentation={"flip": True})[0].name,
        cells(tmp_path)[1].name,
        cells(tmp_path, seeds=2)[2].name,
    ]
    assert len({name, *others}) == 7


def test_name_does_not_depend_on_the_folder_of_the_data(tmp_path):
    study = read_study("macs-table1", "cpu")
    here, there = cells_of(study, tmp_path / "a"), cells_of(study, "/elsewhere")
    assert [cell.name for cell in here] == [cell.name for cell in there] == [cell.name for cell in cells_of(study)]
    assert here[0].recipe.data["root"] == str(tmp_path / "a")


def test_measurement_is_named_by_recipe_and_options(tmp_path):
    plain = cells(tmp_path)[0]
    same = cells(tmp_path, measure={"clean": {"bins": 15}})[0]
    other = cells(tmp_path, measure={"clean": {"bins": 10}})[0]
    called = cells(tmp_path, measure={"mine": {"measurement": "clean"}})[0]
    assert plain.measure_name("clean") == same.measure_name("clean") == called.measure_name("mine")
    assert plain.measure_name("clean") != other.measure_name("clean")
    assert plain.measure_name("clean") != cells(tmp_path)[1].measure_name("clean")


def test_only(tmp_path):
    found = cells(tmp_path, seeds=2)
    assert [c.labels["method"] for c in only(found, {"objective": ["ce"]})] == ["cross-entropy"] * 2
    assert len(only(found, {"method": ["focal"], "seed": ["1"]})) == 1
    with pytest.raises(SurefootError, match="Unknown method 'fokal'. Did you mean 'focal'?"):
        only(found, {"method": ["fokal"]})
    with pytest.raises(SurefootError, match="Unknown axis 'sead'. Did you mean 'seed'?"):
        only(found, {"sead": ["1"]})


def test_options_for_every_method_of_an_objective(tmp_path):
    methods = {"a": {"name": "magnma", "mix_weight": 0}, "b": "magnma", "c": "focal"}
    found = cells(tmp_path, methods=methods, baseline=None, objective_options={"magnma": {"samples": 1}})
    assert [cell.recipe.objective.get("samples") for cell in found] == [1, 1, None]
    assert [cell.recipe.objective.get("mix_weight") for cell in found] == [0, 0.3, None]


def test_what_a_method_says_itself_is_not_changed(tmp_path):
    """Else two points of a search over an option that a scale sets would be the same."""
    methods = {"a": {"name": "magnma", "samples": 3}, "b": "magnma"}
    found = cells(tmp_path, methods=methods, baseline=None, objective_options={"magnma": {"samples": 1}})
    assert [cell.recipe.objective["samples"] for cell in found] == [3, 1]
