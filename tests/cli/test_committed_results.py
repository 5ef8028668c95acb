"""The results in docs/ are what the commands above them give: nothing is left to compute, and no number has drifted."""

import csv
import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest

from surefoot.files import read_json, write_json
from surefoot.studies.cells import digest, identity
from surefoot.training.recipes import Recipe

DOCS = Path(__file__).parents[2] / "docs"
TABLES = sorted(str(path.relative_to(DOCS)) for path in DOCS.glob("results/*/*.md"))


def describe_weights(folder):
    """What `scripts/lite0_weights.py lite0` writes, without the weights: enough to know the cells that began with them."""
    settings = {"input_size": [3, 224, 224], "mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "crop_pct": 0.875}
    write_json(folder / "lite0" / "config.json", {"architecture": "tf_efficientnet_lite0", "pretrained_cfg": settings})


@pytest.mark.parametrize("table", TABLES)
def test_the_command_above_a_table_gives_it(table, surefoot, here):
    """Run from the repo as it stands in the file, with no image at hand; every file of the table stays as it is."""
    shutil.copytree(DOCS, here / "docs")
    before = {path: path.read_bytes() for path in (here / "docs").rglob("*") if path.is_file()}
    command = shlex.split((here / "docs" / table).read_text().splitlines()[0])
    assert command[:3] == ["surefoot", "study", "run"]
    done = surefoot(*command[1:])
    assert done.code == 0, done.err
    assert ", 0 to do" in done.err
    after = {path: path.read_bytes() for path in (here / "docs" / "results").glob("[!.]*/**/*") if path.is_file()}
    assert after == {path: text for path, text in before.items() if path in after}


CHOICES = {  # the heading of a table in how-to-choose.md, the file of its study and its columns
    "every method at one budget": (
        "first-generator/first-generator",
        ("clean.accuracy", "clean.ece", "temperature.ece", "corruptions.accuracy", "corruptions.ece", "cost.relative"),
    ),
    "today's corruptions": (
        "main/second-generator",
        (
            "clean.accuracy",
            "clean.ece",
            "corruptions.accuracy",
            "corruptions.ece",
            "c-bar.accuracy",
            "c-bar.ece",
            "cost.relative",
        ),
    ),
}


@pytest.mark.parametrize("heading", CHOICES)
def test_the_table_for_a_choice_is_of_the_results(heading):
    """Its rows in how-to-choose.md against the file of the study."""
    study, columns = CHOICES[heading]
    with open(DOCS / "results" / f"{study}.csv", encoding="utf-8") as file:
        means = {(row["method"], row["metric"]): float(row["mean"]) for row in csv.DictReader(file)}
    methods = list(dict.fromkeys(method for method, _ in means))
    rows = [[f"`{method}`", *(f"{means[method, column]:.2f}" for column in columns)] for method in methods]
    said = (DOCS / "how-to-choose.md").read_text().split(f"## What we measured: {heading}")[1].split("##")[0]
    shown = [line.strip("| ").split(" | ") for line in said.splitlines() if line.startswith("| `")]
    assert shown == rows


BY_HAND = {  # the first line of a table in the results, the file of its study and its columns
    "| mean of five seeds, test |": (
        "main/second-generator",
        (*CHOICES["today's corruptions"][1],),
    ),
    "| seed 0, test | training cost": (
        "main/equal-time",
        ("cost.epochs", "clean.accuracy", "clean.ece", "corruptions.accuracy", "corruptions.ece", "c-bar.accuracy"),
    ),
}


@pytest.mark.parametrize("first", BY_HAND)
def test_a_table_that_was_written_by_hand_is_of_the_results(first):
    """A row for each method of the study, in any order; what is below them are differences."""
    study, columns = BY_HAND[first]
    with open(DOCS / "results" / f"{study}.csv", encoding="utf-8") as file:
        means = {(row["method"], row["metric"]): float(row["mean"]) for row in csv.DictReader(file)}
    digits = {column: 1 if column == "cost.epochs" else 2 for column in columns}
    methods = dict.fromkeys(method for method, _ in means)
    rows = {tuple(f"{means[method, column]:.{digits[column]}f}" for column in columns) for method in methods}
    lines = (DOCS / "results" / "README.md").read_text().split(first)[1].splitlines()[2 : 2 + len(methods)]
    assert {tuple(line.strip("| ").split(" | ")[1:]) for line in lines} == rows


def test_the_claims_are_of_the_results():
    """Each table of the page is what the script writes, the claims end it, and the text has their intervals."""
    tables = runpy.run_path(str(DOCS.parent / "scripts" / "claims.py"))["tables"]()
    page = (DOCS / "results" / "README.md").read_text()
    assert len(tables) == 8
    for mark, table in tables.items():
        assert f"{mark}\n{table}\n" in page, mark
    assert page.endswith(f"{table}\n")
    said = re.findall(r"[-+][\d.]+ to [-+][\d.]+", " ".join(page.partition("## Seed by seed")[0].split()))
    claims = "".join(table for mark, table in tables.items() if "claims" in mark)
    assert len(said) >= 50
    assert [interval for interval in said if interval not in claims] == []


CLAIMED = {  # by the mark of a table: the folder of its cells and what shows its claims
    "claims": ("main", {"main", "macs-table6 --seeds 5", "macs-table10 --seeds 5"}),
    "claims of fine-tuning": ("checks", {"docs/results/checks/fine-tuning.yaml"}),
    "claims on a twentieth of the data": ("checks", set()),
    "claims of the first generator": (
        "first-generator",
        {"docs/results/checks/first-generator.yaml", "discriminative-figure10"},
    ),
}


@pytest.mark.parametrize("table", CLAIMED)
def test_the_command_beside_a_claim_shows_its_numbers(table, surefoot, here):
    """The difference with its interval, as the page has it."""
    shutil.copytree(DOCS, here / "docs")
    describe_weights(here)
    page = (DOCS / "results" / "README.md").read_text()
    folder, expected = CLAIMED[table]
    assert re.findall(r"<!-- (claims[a-z -]*): written by", page) == list(CLAIMED)
    lines = page.split(f"<!-- {table}: written by scripts/claims.py -->")[1].split("<!--")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if " seeds | `" in line]
    commands = {row[-1].strip("`") for row in rows} - {"claims.py"}
    assert commands == expected
    scale = ["--scale", "full", "--allow-code"] if table == "claims of fine-tuning" else ["--scale", "cpu"]
    shown = {}
    for command in commands:
        found = surefoot("study", "show", *shlex.split(command), *scale, "--results", f"docs/results/{folder}")
        assert found.code == 0, found.err
        shown[command] = found.out
    for _, claim, number, *_, command in rows:
        if command != "`claims.py`":
            assert number.split(": ")[1] in shown[command.strip("`")], claim


def test_every_committed_cell_has_the_name_of_its_recipe(here):
    """A default that changes must not orphan a cell that was computed before."""
    describe_weights(here)
    records = {path.stem: read_json("cell", path) for path in DOCS.glob("results/*/cells/*.json")}
    named = {stem: digest(identity(Recipe.check(each["recipe"]), each["data_label"])) for stem, each in records.items()}
    assert len(named) > 60
    assert {stem: name for stem, name in named.items() if stem != name} == {}
