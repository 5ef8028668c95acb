"""Hyper-parameters: which points are tried, and that the test split has no say."""

import pytest
from tiny import cells, write

from surefoot.cli.study import parse_grid
from surefoot.data import dataset
from surefoot.errors import SurefootError
from surefoot.measurements.context import Hidden
from surefoot.studies.cells import cells_of, whole
from surefoot.studies.engines import Here
from surefoot.studies.hyperparameters import choose, grid_methods, random_methods, searchable
from surefoot.studies.results import Results
from surefoot.studies.runner import run_study
from surefoot.studies.study_files import read_study

SEARCH = {"measure": {"validation": {}}, "select": "validation.accuracy", "baseline": None}


def test_grid_is_every_combination():
    found = grid_methods("macs", parse_grid(["margin=0.5,1,2", "margin_weight=0.1,1"]))
    assert len(found) == 6
    assert found["macs margin=0.5 margin_weight=0.1"] == {"name": "macs", "margin": 0.5, "margin_weight": 0.1}


def test_random_points_are_seeded_different_and_near_the_defaults():
    found = random_methods("macs", {}, 10)
    assert found == random_methods("macs", {}, 10)
    assert found != random_methods("macs", {}, 10, seed=1)
    assert len(found) == 10
    assert searchable("macs") == {"margin": 1.0, "margin_weight": 0.1, "consistency_weight": 0.5}
    for section in found.values():
        assert all(default / 4.01 <= section[name] <= default * 4.01 for name, default in searchable("macs").items())


def test_random_draws_from_a_grid():
    found = random_methods("focal", {"gamma": [1, 2, 3]}, 2)
    assert len(found) == 2
    assert all(section["gamma"] in (1, 2, 3) for section in found.values())


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (["margn=1"], "Unknown option of macs 'margn'. Did you mean 'margin'?"),
        (["margin"], "--grid takes NAME=VALUE,VALUE, got 'margin'"),
        (["margin=much"], "macs.margin: .*got 'much'"),
    ],
)
def test_wrong_grids(grid, message):
    with pytest.raises(SurefootError, match=message):
        grid_methods("macs", parse_grid(grid))


def test_the_best_on_validation_is_chosen(tmp_path):
    for metric, best in (("validation.accuracy", "focal"), ("validation.nll", "cross-entropy")):
        found, results = cells(tmp_path, **{**SEARCH, "select": metric}, seeds=2), Results(tmp_path / "results")
        values = {"cross-entropy": [(0.5, 1.0), (0.6, 1.1)], "focal": [(0.6, 1.2), (0.7, 1.3)]}
        for cell in found:
            accuracy, nll = values[cell.labels["method"]][cell.seed]
            results.begin(cell.name, whole(cell.recipe), {})
            measured = {"accuracy": accuracy, "nll": nll}
            results.add(cell.name, cell.measure_name("validation"), cell.measure["validation"], measured, {})
        choice = choose(read_study(str(tmp_path / "tiny.yaml"), "smoke"), found, results)
        assert choice.method == best
        assert len(choice.order) == 2


def test_the_test_split_is_never_read(tmp_path, monkeypatch):
    """Every batch that is read is counted by its split; none is of the test split, and its size has no influence."""
    real, seen = dataset.TensorSplit.batches, []

    def counted(self, *arguments, **options):
        seen.append(len(self))
        return real(self, *arguments, **options)

    monkeypatch.setattr(dataset.TensorSplit, "batches", counted)
    data = {"digits": {"name": "digits", "fraction": 0.2, "max_images": 61}}
    found = cells_of(read_study(str(write(tmp_path, **SEARCH, data=data)), "smoke"))
    test = len(found[0].recipe.load_data().test)
    report = run_study(found, Here(), Results(tmp_path / "results"), tmp_path / "work", tell=lambda _: None)
    assert report.failed == []
    assert seen
    assert test not in seen
    with pytest.raises(SurefootError, match="The test split is hidden"):
        Hidden().batches(10)


def test_shipped_search_is_on_validation():
    study = read_study("hyperparameters", "smoke")
    assert study.select == "validation.accuracy"
    assert list(study.measure) == ["validation"]


def test_the_choice_is_over_all_configurations_and_shared_seeds(tmp_path):
    """By the last model alone, or with the seed that only one of them has, focal would be chosen."""
    models = {"x": "small-resnet", "y": {"name": "small-resnet", "feature_dim": 8}}
    found, results = cells(tmp_path, **SEARCH, models=models, seeds=2), Results(tmp_path / "results")
    first = {("cross-entropy", "x"): 0.9, ("cross-entropy", "y"): 0.5, ("focal", "x"): 0.1, ("focal", "y"): 0.6}
    for cell in found:
        method, model = cell.labels["method"], cell.labels["model"]
        accuracy = first[method, model] if cell.seed == 0 else 1.0
        if cell.seed == 0 or method == "focal":
            results.begin(cell.name, whole(cell.recipe), {})
            measured = {"accuracy": accuracy}
            results.add(cell.name, cell.measure_name("validation"), cell.measure["validation"], measured, {})
    choice = choose(read_study(str(tmp_path / "tiny.yaml"), "smoke"), found, results)
    assert choice.order == (("cross-entropy", pytest.approx(70)), ("focal", pytest.approx(35)))


def test_nothing_is_chosen_from_nothing(tmp_path):
    found = cells(tmp_path, **SEARCH)
    assert choose(read_study(str(tmp_path / "tiny.yaml"), "smoke"), found, Results(tmp_path / "results")) is None


def test_random_points_can_be_built():
    """The momentum of 0.9 must stay below 1."""
    found = random_methods("discriminative", {}, 20)
    assert len(found) == 20
    assert all(section["momentum"] < 1 for section in found.values())
    with pytest.raises(SurefootError, match="grid must be values that focal takes"):
        random_methods("focal", {"gamma": [-1]}, 2)


def test_values_of_an_argument_may_come_in_parts():
    assert parse_grid(["margin=0.5", "margin=1,2"]) == {"margin": [0.5, 1, 2]}
