"""Figures of a study: which cells they need, what they draw, and what is kept for them."""

from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch

from surefoot.errors import SurefootError
from surefoot.measurements.predictions import reliability_points
from surefoot.studies.cells import cells_of, measure_digest, whole
from surefoot.studies.figures import cells_for, chosen_cells, figure_data
from surefoot.studies.results import Results
from surefoot.studies.study_files import read_study
from surefoot.studies.worker import job_of
from surefoot.types import Predictions

MEASURE = {"clean": {}, "bias": {}, "noise": {"measurement": "corruptions", "names": ["fog", "snow"], "each": True}}
FIGURES = {
    "Figure 1": {"title": "Numbers", "draw": ["bars", "profile"], "columns": ["clean.accuracy", "noise.accuracy.*"]},
    "Figure 2": {"title": "Points", "draw": ["bias"], "only": {"method": ["focal"], "model": ["resnet50"]}},
}


@pytest.fixture
def study(tmp_path):
    path = tiny.write(tmp_path, seeds=2, measure=MEASURE, figures=FIGURES)
    return read_study(str(path), "smoke")


def fill(results, cells, number=0.5):
    """Results as a worker leaves them, with numbers that are known."""
    for cell in cells:
        results.begin(cell.name, whole(cell.recipe), {})
        for label, measure in cell.measure.items():
            name = measure_digest(cell.name, measure)
            metrics = {"accuracy": number + 0.1 * cell.seed, "accuracy.fog": 0.2, "accuracy.snow": 0.3}
            results.add(cell.name, name, measure, metrics, {})
            if label in cell.drawn:
                results.add_points(name, {"bias": {"names": ["0"], "bias": [1.0], "values": [float("nan")]}})


def test_points_are_of_the_first_seed_and_of_what_is_drawn(study, tmp_path):
    cells, results = cells_of(study), Results(tmp_path / "results")
    assert [(cell.seed, sorted(cell.drawn)) for cell in cells] == [(0, ["bias"]), (0, ["bias"]), (1, []), (1, [])]
    assert job_of(cells[0], ["bias"], tmp_path, tmp_path).drawn == ("bias",)
    fill(results, cells)
    assert [results.missing(cell) for cell in cells] == [[], [], [], []]
    assert results.points(cells[0], "bias")["bias"] == {"names": ["0"], "bias": [1.0], "values": [None]}
    results.points_path(cells[0].measure_name("bias")).unlink()
    assert results.missing(cells[0]) == ["bias"]  # its numbers are there, what the figure draws is not
    assert results.missing(replace(cells[0], drawn=frozenset())) == []


def test_cells_that_a_figure_needs(study):
    cells = cells_of(study)
    numbers = cells_for(study, cells, study.figures["Figure 1"])
    assert [sorted(cell.measure) for cell in numbers] == [["clean", "noise"]] * 4
    assert all(not cell.drawn for cell in numbers)
    (one,) = cells_for(study, cells, study.figures["Figure 2"])
    assert (one.labels["method"], one.seed, list(one.measure)) == ("focal", 0, ["bias"])
    assert one.name == next(cell.name for cell in cells if cell.labels["method"] == "focal")  # the same cell of the results


def test_what_stands_in_for_labels_of_another_scale(study):
    chosen, notes = chosen_cells(cells_of(study), study.figures["Figure 2"])
    assert {cell.labels["method"] for cell in chosen} == {"focal"}
    assert notes == ["At this scale tiny-resnet in place of resnet50."]


def test_numbers_and_points_of_a_figure(study, tmp_path):
    cells, results = cells_of(study), Results(tmp_path / "results")
    fill(results, cells[:3])
    numbers = figure_data(study, cells, results, "Figure 1")
    bars, profile = (part["table"] for part in numbers["parts"])
    assert [column["name"] for column in bars["columns"]] == ["clean.accuracy"]
    assert [column["name"] for column in profile["columns"]] == ["noise.accuracy.fog", "noise.accuracy.snow"]
    assert [row["cells"][0]["mean"] for row in bars["rows"]] == pytest.approx([55.0, 50.0])  # the mean over seeds, in percent
    assert numbers["notes"] == ["1 cell is not finished."]
    points = figure_data(study, cells, results, "Figure 2")
    assert points["notes"] == ["At this scale tiny-resnet in place of resnet50."]
    assert [panel["name"] for panel in points["parts"][0]["panels"]] == ["focal"]
    with pytest.raises(SurefootError, match="Did you mean 'Figure 1'"):
        figure_data(study, cells, results, "Figure 11")


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        ({"title": "x", "draw": ["bar"], "columns": ["clean.accuracy"]}, "Unknown drawing.*'bar'. Did you mean 'bars'"),
        ({"title": "x", "draw": ["bars"]}, "columns of figure 'F' of study '.*' must be at least one for 'bars'"),
        ({"title": "x", "draw": ["plane"]}, "'plane' in figure 'F' of study '.*' needs the measurement 'plane'"),
        ({"title": "x", "draw": ["bars"], "columns": ["clear.accuracy"]}, "Did you mean 'clean'"),
        ({"title": "x", "draw": ["bars"], "colums": []}, "Did you mean 'columns'"),
        ({"title": "x", "draw": ["bias"], "only": {"methods": ["a"]}}, "Did you mean 'method'"),
        ({"draw": ["bias"]}, "figures.F.title must be given"),
    ],
)
def test_wrong_figures_are_one_line(tmp_path, figure, said):
    path = tiny.write(tmp_path, measure={"clean": {}, "bias": {}}, figures={"F": figure})
    with pytest.raises(SurefootError, match=said):
        read_study(str(path), "smoke")


def test_reliability_points_by_hand():
    """Six predictions in five bins, counted again in plain Python."""
    probabilities = np.array([[0.9, 0.1], [0.95, 0.05], [0.7, 0.3], [0.45, 0.55], [0.4, 0.6], [0.65, 0.35]])
    labels = [0, 1, 0, 1, 0, 0]
    points = reliability_points(Predictions.from_probabilities(torch.tensor(probabilities), torch.tensor(labels)), 5)
    confidence, right = probabilities.max(1), probabilities.argmax(1) == labels
    bins = [[k for k in range(6) if low < confidence[k] <= low + 0.2 + 1e-9] for low in (0, 0.2, 0.4, 0.6, 0.8)]
    assert points["share"] == pytest.approx([len(own) / 6 for own in bins])
    for own, accuracy, mean in zip(bins, points["accuracy"], points["confidence"], strict=True):
        assert accuracy == (pytest.approx(right[own].mean()) if own else None)
        assert mean == (pytest.approx(confidence[own].mean()) if own else None)
    gaps = [abs(right[own].mean() - confidence[own].mean()) * len(own) / 6 for own in bins if own]
    assert points["ece"] == pytest.approx(sum(gaps))
