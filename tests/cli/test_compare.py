"""`surefoot compare`: what it says, what it prints for machines, the page, and what it refuses."""

import json
import shutil

import pytest

import small_audits as small
from surefoot.auditing.depths import DEPTHS
from surefoot.files import read_json


@pytest.fixture
def audits(here):
    small.write(here / "a", small.audit("ce"), small.predictions(1))
    small.write(here / "b", small.audit("macs", fog=0.9), small.predictions(1, scale=0.1))
    return here


def test_table_words_and_json(surefoot, audits, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    found = surefoot("compare", "a", "b/audit.json")
    assert (found.code, found.err) == (0, "")
    assert "macs minus ce, with the intervals that the verdict uses" in found.out
    lines = {line.split("  ")[0].strip(): line for line in found.out.splitlines()}
    assert "worse" in lines["NLL"]
    assert "cannot tell" in lines["accuracy, %"]
    assert "better (unpaired)" in lines["corrupted accuracy, %"]
    assert "70.00" in lines["corrupted accuracy, %"]
    assert "+5.00" in lines["corrupted accuracy, %"]
    assert "75.00" in lines["mCE, relative, %"]
    assert "cannot tell (unpaired)" in lines["pgd-weak success, %"]
    assert "macs is really better than ce in" in found.out
    printed = json.loads(surefoot("compare", "a", "b", "--json").out)
    assert printed["models"] == ["ce", "macs"]
    item = next(item for item in printed["differences"] if item["name"] == "calibration.nll")
    assert (item["first"], item["second"], item["real"], item["better"]) == ("ce", "macs", True, -1)
    assert item["low"] < item["value"] < item["high"]
    assert surefoot("compare", "a", "b", "--quiet").out == ""
    assert "are not distinguishable in any of" in surefoot("compare", "a", "a").out


def test_eighty_columns_cut_nothing(surefoot, audits, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    found = surefoot("compare", "a", "b").out
    assert "…" not in found
    assert max(map(len, found.splitlines()[:-1])) <= 80
    assert "NLL" in found
    assert " worse" in found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "Give at least two run folders or audits."),
        (["a", "c"], "No run folder or audit at 'c'."),
        (["a", "empty"], "'empty' holds no audit.json and is no run folder."),
        (["a", "run"], "'run' has no audit yet: surefoot audit run makes it, or pass --audit."),
        (["a", "b", "--depth", "full"], "--depth is for --audit."),
        (["a", "old"], "has schema 0, and this version reads 1 to 3."),
    ],
)
def test_errors_are_one_line(surefoot, audits, arguments, message):
    (audits / "empty").mkdir()
    (audits / "run").mkdir()
    (audits / "run" / "recipe.yaml").write_text("")
    small.write(audits / "old", {"schema": 0})
    found = surefoot("compare", *arguments)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert message in found.err


def test_missing_audits_are_made_and_drawn_on_one_page(surefoot, run, here, monkeypatch):
    few = {"names": ("fgsm",), "max_images": 20}
    tiny = DEPTHS["quick"].having(corruptions={"names": ("fog",), "severities": (3,), "max_images": 40}, attacks=few)
    monkeypatch.setitem(DEPTHS, "quick", tiny)
    for name in ("one", "two"):
        shutil.copytree(run.folder, here / name)
    found = surefoot("compare", "one", "two", "--audit", "--output", "out/page.html", "--quiet")
    assert found.code == 0, found.err
    assert (here / "one" / "report.html").is_file()
    page = (here / "out" / "page.html").read_text()
    assert "one and two" in page
    subject = read_json("audit", here / "two" / "audit.json")["subject"]
    assert subject["command"] == "surefoot audit two --depth quick"
    assert subject["recipe"] == run.recipe.to_yaml()


@pytest.mark.parametrize("second", ["none", "torn"])
def test_every_target_is_looked_at_before_the_first_is_audited(surefoot, run, here, second):
    shutil.copytree(run.folder, here / "one")
    (here / "torn").mkdir()
    (here / "torn" / "recipe.yaml").write_text("model: 1")
    found = surefoot("compare", "one", second, "--audit")
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert not (here / "one" / "audit.json").exists()


def test_an_audit_of_another_depth_is_not_taken_for_the_wanted_one(surefoot, audits):
    said = surefoot("compare", "a", "b", "--audit", "--depth", "full")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "The audit of 'a' has depth quick, not full" in said.err
    assert surefoot("compare", "a", "b", "--audit", "--depth", "quick", "--quiet").code == 0
    assert "Unknown depth" in surefoot("compare", "a", "b", "--audit", "--depth", "ful").err


def test_the_page_gets_the_differences_if_it_takes_them(surefoot, audits, monkeypatch):
    given = {}

    def with_differences(path, plain, differences=(), notes=()):
        given["names"] = [audit["subject"]["name"] for audit in plain]
        given["differences"] = differences

    for name in ("a", "b"):
        (audits / name / "audit-data" / "points.json").write_text("{}")
    monkeypatch.setattr("surefoot.cli.compare.write_page", with_differences)
    assert surefoot("compare", "a", "b", "--output", "p.html", "--quiet").code == 0
    assert given["names"] == ["ce", "macs"]
    first = given["differences"][0]
    assert {"name", "first", "second", "value", "low", "high", "real", "paired"} <= first.keys()
