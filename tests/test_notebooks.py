"""What a notebook shows: runs, scores, audits, comparisons, studies and tables, with every name escaped."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest
import torch

import small_audits as small
import surefoot as sf
from surefoot.metrics import find
from surefoot.notebooks import estimate_row, html_table
from surefoot.studies.layout import Column, Entry, Table
from surefoot.studies.schema import Study
from surefoot.studies.statistics import Spread
from surefoot.training.recipes import Recipe
from surefoot.training.runs import Run

EVIL = "<img src=x onerror=alert(1)>&\"'"
TAGS = {"h4", "table", "tr", "th", "td", "p"}


class Read(HTMLParser):
    """The cells of a table, and a failure for any tag that is none of ours."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.texts, self.inside = [], [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS, tag
        assert all(name == "style" for name, _ in attrs), attrs
        if tag == "tr":
            self.rows.append([])
        self.inside = tag in ("td", "th")
        if self.inside:
            self.rows[-1].append("")

    def handle_data(self, data):
        self.texts.append(data)
        if self.inside:
            self.rows[-1][-1] += data


def shown(thing):
    """The rows that it shows by their first cell."""
    found = Read(thing._repr_html_())
    return found, {row[0]: row[1:] for row in found.rows}


def test_the_helper():
    found = Read(html_table(EVIL, [EVIL], [[EVIL, EVIL]], [EVIL]))
    assert found.texts.count(EVIL) == 5
    assert estimate_row("a", None) == ("a", "-", "- to -")
    assert estimate_row("a", float("nan"), 0.5, 1.0) == ("a", "-", "0.5000 to 1.0000")


def test_scores():
    scores = sf.calibration.scores(small.predictions(0))
    found, rows = shown(scores)
    assert rows["ECE"] == [f"{scores.ece:.4f}", f"{scores.ece.low:.4f} to {scores.ece.high:.4f}"]
    assert len(rows) == 18
    assert found.texts[-1].startswith("ECE if calibrated: ")


def test_a_run(digits):
    model = sf.load_model("tiny-resnet", data=digits, seed=0)
    recipe = Recipe.check({"data": "digits", "model": "tiny-resnet", "objective": "macs", "seed": 3})
    history = [{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.25, "validation_accuracy": 0.5}]
    run = Run(recipe, model, recipe.build_objective(), history)
    found, rows = shown(run)
    assert found.texts[0] == "a run in memory"
    expected = {"data": ["digits"], "objective": ["macs"], "seed": ["3"], "epochs": ["2"], "loss": ["1.25"]}
    assert rows.items() >= {**expected, "validation accuracy": ["0.5"]}.items()
    evil = replace(run, recipe=replace(recipe, data=None, model={"name": EVIL}))
    assert shown(evil)[1].items() >= {"data": ["from Python"], "model": [EVIL]}.items()


def test_an_audit_and_a_comparison(tmp_path):
    one, two = (small.write(tmp_path / name, small.audit(name + EVIL, accuracy=0.9), small.predictions(seed, sure=sure))
                for name, seed, sure in (("a", 0, 2.0), ("b", 1, 6.0)))  # fmt: skip
    comparison = sf.compare([one, two])
    found, rows = shown(comparison)
    assert found.texts[0] == f"a{EVIL} and b{EVIL}"
    models, value, verdict = rows["calibration.accuracy"]
    (accuracy,) = (each for each in comparison.differences if each.name == "calibration.accuracy")
    assert (models, value) == (f"b{EVIL} - a{EVIL}", f"{accuracy.value:+.4f}")
    assert verdict.startswith("better (+")
    audit = sf.audit_predictions(small.predictions(0), name=EVIL)
    found, rows = shown(audit)
    assert found.texts[0] == EVIL
    assert rows["accuracy"][0] == f"{audit.calibration.accuracy:.4f}"


def test_a_study_and_its_table():
    column = Column(find("accuracy"), "clean.accuracy")
    entry = Entry(Spread(90.0, 1.5, 3), best=True)
    table = Table(EVIL, ("method",), (column,), {("ce",): [entry], (EVIL,): [None]}, "ce", 3, 4)
    found, rows = shown(table)
    assert rows == {"method": [column.title], "ce": ["90.00 ± 1.50"], EVIL: ["-"]}
    assert found.texts[-1] == "3 of 4 cells are finished."
    named = {"methods": {"ce": {"name": "cross-entropy"}}, "models": {EVIL: {"name": "tiny-resnet"}}}
    study = Study(title=EVIL, **named, data={"digits": {"name": "digits"}}, measure={"clean": {}})
    found, rows = shown(study)
    assert rows.items() >= {"methods": ["ce"], "models": [EVIL], "measures": ["clean"], "seeds": ["3"]}.items()


def test_rows_of_an_audit_are_a_frame(digits):
    """pandas shows it, and escapes it."""
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10))
    frame = sf.audit(model, sf.load_data("digits", max_images=20), depth="clean", progress=False).table()
    assert "<table" in frame._repr_html_()
    assert {"image", "condition", "correct"} <= set(frame.columns)


@pytest.mark.parametrize("kind", ["run", "scores"])
def test_nothing_measured_is_shown_as_such(kind, digits):
    if kind == "scores":
        assert shown(sf.calibration.scores(small.predictions(0), intervals=0))[1]["NLL"][1] == "- to -"
    else:
        model = sf.load_model("tiny-resnet", data=digits, seed=0)
        recipe = Recipe.check({"data": "digits", "model": "tiny-resnet", "objective": "macs"})
        assert shown(Run(recipe, model, recipe.build_objective(), []))[1]["epochs"] == ["0"]
