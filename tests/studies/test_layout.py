"""Tables of results that were written by hand."""

import csv
import io
import json
import math
from dataclasses import replace

import pytest
from tiny import cells, write

from surefoot.errors import SurefootError
from surefoot.measurements.registry import check_measure
from surefoot.metrics import Metric
from surefoot.report.study_page import render_study
from surefoot.studies.cells import cells_of, only, whole
from surefoot.studies.layout import Entry, build_table, count_wins
from surefoot.studies.results import Results
from surefoot.studies.settings import setting_of
from surefoot.studies.statistics import Spread
from surefoot.studies.study_files import read_study
from surefoot.studies.table_formats import (
    as_plain,
    differences,
    escaped,
    latex_cell,
    line,
    number,
    published_apart,
    published_text,
    render,
    wins_text,
)

CHANGES = {
    "seeds": 3,
    "measure": {"clean": {}, "logits": {}},
    "table": {"columns": ["clean.accuracy", "clean.nll", "logits.norm"]},
}
ACCURACIES = {"cross-entropy": [0.70, 0.72, 0.74], "focal": [0.75, 0.77, 0.80]}
NLL = {"cross-entropy": [1.0, 1.1, 1.2], "focal": [0.9, 1.2, 1.1]}


@pytest.fixture
def filled(tmp_path):
    """A study whose every cell has a result."""
    found, results = cells(tmp_path, **CHANGES), Results(tmp_path / "results")
    for cell in found:
        method = cell.labels["method"]
        results.begin(cell.name, whole(cell.recipe), {})
        metrics = {"accuracy": ACCURACIES[method][cell.seed], "nll": NLL[method][cell.seed]}
        results.add(cell.name, cell.measure_name("clean"), cell.measure["clean"], metrics, {})
        results.add(cell.name, cell.measure_name("logits"), cell.measure["logits"], {"norm": 5.0}, {})
    return read_study(str(tmp_path / "tiny.yaml"), "smoke"), found, results


def fill(found, results, label, metrics):
    """Results of every cell, by a function of the cell."""
    for cell in found:
        results.begin(cell.name, whole(cell.recipe), {})
        results.add(cell.name, cell.measure_name(label), cell.measure[label], metrics(cell), {})


def test_markdown_by_hand(filled):
    study, found, results = filled
    lines = render(build_table(study, found, results), "md").splitlines()
    assert lines[2] == "| method | accuracy % ↑ | NLL ↓ | logit norm |"
    assert lines[4] == "| cross-entropy | 72.00 ± 2.00 | 1.100 ± 0.100 | 5.00 ± 0.00 |"
    # accuracy: differences 5, 5, 6: interval 5.33 ± 1.43, clear; NLL: -0.1, 0.1, -0.1: within noise
    assert lines[5] == "| focal | **77.33** ± 2.52 | **1.067** ± 0.153 ≈ | 5.00 ± 0.00 ≈ |"
    assert "within noise of cross-entropy" in lines[7]


def test_differences_by_hand(filled):
    study, found, results = filled
    lines = differences(build_table(study, found, results)).splitlines()
    assert len(lines) == 5  # the baseline has no row
    assert lines[4].startswith("| focal | 3 | +5.33 (+3.90 to +6.77) | -0.033 (-0.320 to +0.254) ≈ |")
    record = results.read(found[1].name)
    del record["measurements"][found[1].measure_name("logits")]  # one that is not measured yet
    results.path(found[1].name).write_text(json.dumps(record))
    assert differences(build_table(study, found, results)).splitlines()[4].startswith("| focal | 2 to 3 | +5.33 ")


def test_large_numbers_are_whole():
    metric = Metric("curvature")
    shown = [number(value, metric) for value in (0.12345, 999.9994, 88130.628, -1e6)]
    assert shown == ["0.123", "999.999", "88,131", "-1,000,000"]
    assert number(73696.4, metric, "+") == "+73,696"
    entry = Entry(Spread(88130.628, 10668.2, 2))
    assert latex_cell(entry, metric) == r"$88{,}131 \pm 10{,}668$"
    assert number(937.677, metric, beside=14_069.0) == "938"  # beside a whole number


def test_comma_separated_values_are_not_rounded(filled):
    study, found, results = filled
    rows = list(csv.DictReader(io.StringIO(render(build_table(study, found, results), "csv"))))
    row = next(row for row in rows if row["method"] == "focal" and row["metric"] == "clean.accuracy")
    assert float(row["mean"]) == pytest.approx(100 * (0.75 + 0.77 + 0.80) / 3)
    assert float(row["difference"]) == pytest.approx(16 / 3)
    assert (row["seeds"], row["best"], row["within_noise"]) == ("3", "True", "False")


def test_letters_that_mean_something_else():
    assert escaped(r"a_b^2~\x{}") == r"a\_b\textasciicircum{}2\textasciitilde{}\textbackslash{}x\{\}"
    assert escaped("[a] *|<>") == r"{[}a] {*}\textbar{}\textless{}\textgreater{}"  # \\\\[ and \\\\* are commands
    assert line(["a|b", "<c>"]) == r"| a\|b | &lt;c> |"


def test_latex(filled):
    study, found, results = filled
    text = render(build_table(study, found, results), "latex")
    assert r"\begin{tabular}{lrrr}" in text
    assert all(rule in text for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    assert r"focal & $\mathbf{77.33} \pm 2.52$ & $\mathbf{1.067} \pm 0.153^{\approx}$" in text
    assert r"accuracy \% $\uparrow$" in text
    assert text.splitlines()[1].startswith("% ≈: within noise of cross-entropy")  # for a caption


def test_unknown_format(filled):
    study, found, results = filled
    with pytest.raises(SurefootError, match="Unknown format 'latx'. Did you mean 'latex'?"):
        render(build_table(study, found, results), "latx")


def test_columns_that_a_scale_leaves_out_are_left_out(filled, tmp_path):
    _, found, results = filled
    table = {"columns": ["clean.accuracy", "clean.brier"]}
    study = read_study(str(write(tmp_path, **{**CHANGES, "table": table})), "smoke")
    table = build_table(study, found, results)
    assert [column.name for column in table.columns] == ["clean.accuracy"]
    assert "No cell has clean.brier." in render(table, "md")  # it may be a misspelling


def test_missing_cells_are_told(filled):
    study, found, results = filled
    results.path(next(cell for cell in found if cell.labels["method"] == "focal").name).unlink()
    text = render(build_table(study, found, results), "md")
    assert "5 of 6 cells are finished." in text
    assert "| focal | **78.50** ± 2.12" in text


def test_a_mean_says_when_it_leaves_a_seed_out(filled):
    """A training that diverged has no NLL; the others must not look like all."""
    study, found, results = filled
    assert "Not finite" not in render(build_table(study, found, results), "md")
    results.add(
        found[1].name, found[1].measure_name("clean"), found[1].measure["clean"], {"accuracy": 0.1, "nll": math.inf}, {}
    )
    text = render(build_table(study, found, results), "md")
    assert "Not finite in some cells, which their means leave out: clean.nll." in text
    assert "6 of 6" not in text


def test_the_paper_stands_beside_or_apart(filled, tmp_path):
    _, found, results = filled
    published = [{"method": "focal", "clean.accuracy": [93.25, 0.5], "clean.nll": 0.4}]
    apart = read_study(str(write(tmp_path, **CHANGES, paper="macs", place="Table 1", published=published)), "smoke")
    text = render(build_table(apart, found, results), "md")
    assert "93.25" not in text
    assert "in another setting" in published_text(apart)
    assert "| focal | 93.25 ± 0.50 | 0.400 |" in published_text(apart)
    said = {"published": published, "same_setting": True}
    held_out = read_study(str(write(tmp_path, **CHANGES, **said)), "smoke")
    assert "93.25" not in render(build_table(held_out, found, results), "md")
    assert "| focal | 93.25 ± 0.50 | 0.400 |" in published_text(held_out)
    data = {"digits": {"name": "digits", "calibration": 0, "validation": 0}}  # all images are trained on, as in the paper
    beside = read_study(str(write(tmp_path, **CHANGES, **said, data=data)), "smoke")
    text = render(build_table(beside, found, results), "md")
    assert "**77.33** ± 2.52 [paper: 93.25 ± 0.50]" in text
    told = [study.model_copy(update={"differs": "Ours is smaller."}) for study in (beside, apart)]
    assert ["[paper]: Ours is smaller." in render(build_table(study, found, results), "md") for study in told] == [True, False]
    assert "≈ [paper: 0.400]" in text
    assert published_text(beside) == ""
    assert published_text(told[1]).endswith("\nWhat differs: Ours is smaller.\n")
    page = render_study({**as_plain(build_table(beside, found, results)), "published": published_apart(beside)})
    assert "<small>[paper: 93.25 ± 0.50]</small>" in page
    page = render_study({**as_plain(build_table(apart, found, results)), "published": published_apart(apart)})
    assert "[paper" not in page
    assert "<td>93.25 ± 0.50</td>" in page.partition("in another setting")[2]
    assert "[93.25]$" not in render(build_table(beside, found, results), "latex")
    assert "$ [93.25]" in render(build_table(beside, found, results), "latex")


def test_an_axis_in_the_columns(tmp_path):
    found = cells(tmp_path, fractions=[0.5, 1.0], table={"columns": ["clean.accuracy"], "across": "fraction"})
    results = Results(tmp_path / "results")
    for cell in found:
        results.begin(cell.name, whole(cell.recipe), {})
        value = {"accuracy": (0.5 if cell.labels["method"] == "focal" else 0.4) * cell.labels["fraction"]}
        results.add(cell.name, cell.measure_name("clean"), cell.measure["clean"], value, {})
    lines = render(build_table(read_study(str(tmp_path / "tiny.yaml"), "smoke"), found, results), "md").splitlines()
    assert lines[2] == "| method | 0.5: accuracy % ↑ | 1.0: accuracy % ↑ |"
    assert lines[4:6] == ["| cross-entropy | 20.00 | 40.00 |", "| focal | **25.00** ? | **50.00** ? |"]
    assert lines[7] == "?: one seed, which cannot tell a difference from noise."


def test_the_papers_figure_is_of_the_cells_that_are_left(tmp_path):
    """With one of two data sets, that column's axis is gone, and its figures must not be the other's."""
    study = read_study("macs-table3", "full")
    found, results = only(cells_of(study), {"data": ["cifar100"], "model": ["resnet50"]}), Results(tmp_path)
    fill(found, results, "clean", lambda _: {"ece": 0.03, "nll": 1.3})
    rows = build_table(study, found, results).rows
    assert [rows[(method,)][0].published for method in ("cross-entropy", "macs")] == [(24.57, 0.82), (3.13, 0.49)]


def test_methods_in_the_columns(tmp_path):
    """The same numbers, bold and differences as with methods in the rows; and a page."""
    sizes = {name: {"name": "small-resnet", "feature_dim": size} for name, size in (("x", 8), ("y", 9))}
    table = {"columns": ["clean.accuracy"], "across": "method"}
    found = cells(tmp_path, models=sizes, fractions=[0.5, 1.0], seeds=2, table=table)
    results = Results(tmp_path / "results")
    fill(found, results, "clean", lambda c: {"accuracy": 0.5 + 0.1 * (c.labels["method"] == "focal") + 0.01 * c.seed})
    built = build_table(read_study(str(tmp_path / "tiny.yaml"), "smoke"), found, results)
    lines = render(built, "md").splitlines()
    assert lines[2] == "| model | fraction | cross-entropy: accuracy % ↑ | focal: accuracy % ↑ |"
    assert lines[4] == "| x | 0.5 | 50.50 ± 0.71 | **60.50** ± 0.71 |"
    assert "| y | 1.0 | 2 | - | +10.00 (+10.00 to +10.00) |" in differences(built)
    assert "<strong>60.50</strong>" in render_study(as_plain(built))


def test_a_part_has_the_baseline_of_its_own_configuration(tmp_path):
    """Two models, of which one is shown: its differences are not from the other's baseline."""
    models = {"x": "small-resnet", "y": {"name": "small-resnet", "feature_dim": 8}}
    found, results = cells(tmp_path, models=models, seeds=2), Results(tmp_path / "results")
    accuracy = {("x", "cross-entropy"): 0.5, ("x", "focal"): 0.6, ("y", "cross-entropy"): 0.1, ("y", "focal"): 0.3}
    fill(found, results, "clean", lambda cell: {"accuracy": accuracy[cell.labels["model"], cell.labels["method"]]})
    study = read_study(str(tmp_path / "tiny.yaml"), "smoke")
    for model, expected in (("x", 10), ("y", 20)):
        part = only(found, {"model": [model], "method": ["focal"]})
        (entry,) = build_table(study, part, results, found).rows[("focal",)]
        assert (entry.difference.mean, entry.difference.count) == (pytest.approx(expected), 2)


def test_the_setting_is_told(filled, monkeypatch):
    """What all cells share, options that are not the defaults, and threads where they differ."""
    study, found, results = filled
    words = "Setting: data digits (fraction 0.2, max images 60), model tiny-resnet, 1 epoch."
    assert build_table(study, found, results).setting == (words, "Weights: drawn at random.")
    for cell in found[:2]:
        results.add_training(cell.name, {"threads": 1 + cell.seed})
    results.add_training(found[-1].name, {"threads": 2})
    mixed = build_table(study, found, results).setting[-1]
    assert mixed == "Trained with 1 and 2 threads: of one seed, these are different runs."
    loud = [replace(cell, measure={"noise": check_measure("noise", {"levels": [8, 16], "draws": 5})}) for cell in found]
    assert setting_of(loud, results)[1] == "Measured: noise with levels 8 16, draws 5."
    foggy = [replace(cell, measure={"corruptions": check_measure("corruptions", {"origin": "C (1)"})}) for cell in found[:1]]
    results.add_training(found[0].name, {"images": 10_000})
    assert setting_of(foggy, results)[-1] == (
        "Images: 10,000 trained on. Weights: drawn at random. Corrupted pictures: read from C (1)."
    )
    images = {"train": 50_000, "calibration": 0, "validation": 0, "test": 10_000}
    seen = {"image_size": [32, 32], "resize_to": [224, 224], "images": images, "precision": "bf16"}
    results.add_setting(found[0].name, seen)
    tagged = replace(found[0], recipe=replace(found[0].recipe, model={"name": "resnet50", "pretrained": "tv_in1k"}))
    monkeypatch.setattr(type(tagged), "name", found[0].name)
    assert setting_of([tagged], results)[-1] == (
        "Resolution: 32 x 32 px, enlarged to 224 x 224 px in the model. Images: 50,000 trained on, 0 and 0 held out for"
        " calibration and validation, 10,000 tested. Weights: resnet50 tv_in1k. Precision: bf16."
    )
    as_they_are = [replace(cell, trained=False, labels={**cell.labels, "data": cell.seed}) for cell in found]
    assert setting_of(as_they_are, results)[0] == "Setting: model tiny-resnet, weights as they are."


def test_a_title_is_one_line(filled):
    study, found, results = filled
    table = build_table(study.model_copy(update={"title": "Two\nlines\n"}), found, results)
    assert render(table, "latex").splitlines()[0] == "% Two lines"


def test_wins_and_ties_by_hand(tmp_path):
    """Four configurations: focal wins one, cross-entropy one, one is a tie at the shown digits, one is incomplete."""
    models = {name: {"name": "small-resnet", "feature_dim": number} for number, name in enumerate("abcd", 8)}
    found, results = cells(tmp_path, models=models), Results(tmp_path / "results")
    values = {"a": (0.5, 0.6), "b": (0.7, 0.6), "c": (0.50001, 0.50002), "d": (0.1, None)}
    for cell in found:
        value = values[cell.labels["model"]][cell.labels["method"] == "focal"]
        if value is not None:
            results.begin(cell.name, whole(cell.recipe), {})
            results.add(cell.name, cell.measure_name("clean"), cell.measure["clean"], {"accuracy": value}, {})
    wins = count_wins(found, results, "clean.accuracy")
    assert wins.configurations == 3
    assert wins.wins == {"cross-entropy": 1, "focal": 1}
    assert wins.ties == {"cross-entropy": 1, "focal": 1}
    assert "in so many of 3 configurations: cross-entropy 1 (1 ties), focal 1 (1 ties)" in wins_text(wins)


def test_results_of_other_defaults_do_not_count(filled):
    """A default that changes its value changes no name, but the file says what was run."""
    _, found, results = filled
    record = results.read(found[0].name)
    assert results.metrics(found[0], "clean") is not None
    record["recipe"]["training"]["momentum"] = 0.5
    results.begin(found[0].name, record["recipe"], {})
    assert results.missing(found[0]) == ["clean", "logits"]


def test_rows_of_averages(tmp_path):
    """Means over models, seed by seed, only of seeds that every model has; differences are from the average of the baseline."""
    models = {"x": "small-resnet", "y": {"name": "small-resnet", "feature_dim": 8}}
    table = {"columns": ["clean.accuracy"], "average": "model"}
    found, results = cells(tmp_path, models=models, seeds=2, table=table), Results(tmp_path / "results")
    values = {("x", "cross-entropy"): 0.5, ("x", "focal"): 0.6, ("y", "cross-entropy"): 0.1, ("y", "focal"): 0.3}
    part = [cell for cell in found if (cell.labels["model"], cell.labels["method"], cell.seed) != ("y", "focal", 1)]
    fill(part, results, "clean", lambda cell: {"accuracy": values[cell.labels["model"], cell.labels["method"]]})
    study = read_study(str(tmp_path / "tiny.yaml"), "smoke")
    rows = build_table(study, found, results).rows
    assert list(rows)[-2:] == [("average", "cross-entropy"), ("average", "focal")]
    (base,), (mine,) = rows["average", "cross-entropy"], rows["average", "focal"]
    assert (base.spread.mean, base.spread.count) == (pytest.approx(30), 2)
    assert (mine.spread.mean, mine.spread.count, mine.best) == (pytest.approx(45), 1, True)
    assert (mine.difference.mean, mine.difference.count) == (pytest.approx(15), 1)
    with pytest.raises(SurefootError, match="Unknown average .an axis of the rows. 'modell'"):
        cells(tmp_path, table={**table, "average": "modell"})


def test_the_cost_of_a_training_follows_from_that_of_a_step(tmp_path):
    """A step of 1.5 over two epochs costs what three epochs of cross-entropy do."""
    changes = {"measure": {"cost": {}}, "training": {"epochs": 2}, "table": {"columns": ["cost.relative", "cost.epochs"]}}
    found, results = cells(tmp_path, **changes), Results(tmp_path / "results")
    fill(found, results, "cost", lambda cell: {"relative": 1.5, "milliseconds": 10.0})
    table = build_table(read_study(str(tmp_path / "tiny.yaml"), "smoke"), found, results)
    assert {found[0].recipe.training["epochs"]} == {2}
    assert [[entry.spread.mean for entry in row] for row in table.rows.values()] == [[1.5, 3.0]] * len(table.rows)
