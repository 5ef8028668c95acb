import copy
import json
import re

import pytest

from surefoot.errors import NotFound, SurefootError
from surefoot.report.figures import reliability_figure, reliability_rows, safe_json, wilson
from surefoot.report.page import render_page, write_page
from surefoot.report.reading import read_audit
from surefoot.report.verdict import advice, verdict, worst_corruption


def number(value, spread=0.01):
    return {"value": value, "low": value - spread, "high": value + spread}


@pytest.fixture
def found():
    """A made-up audit whose verdict is known."""
    cells = [
        {"name": name, "severity": s, "accuracy": number(0.9 - drop * s), "ece": number(0.1), "nll": number(0.5)}
        for name, drop in (("gaussian_noise", 0.1), ("contrast", 0.02))
        for s in range(1, 6)
    ]
    return {
        "schema": 2,
        "subject": {
            "name": "mine",
            "data": {"name": "digits"},
            "split": "test",
            "images": 1000,
            "classes": ["a", "b"],
            "notes": [],
            "seed": 0,
            "created": "2026-01-01T00:00:00+00:00",
            "versions": {"surefoot": "0.1.0"},
        },
        "preflight": [],
        "calibration": {
            "accuracy": number(0.9),
            "nll": number(0.4),
            "ece": number(0.07),
            "signed_error": number(0.07),
            "ece_if_calibrated": [0.01, 0.03],
        },
        "corruptions": {"mean_accuracy": number(0.72), "cells": cells},
        "attacks": {"fgsm": {"success_rate": number(0.6), "robust_accuracy": number(0.36)}},
        "geometry": {"mean_margin": number(2.0)},
        "points": {"reliability": {"counts": [0, 200, 800], "confidences": [0.0, 120.0, 760.0], "correct": [0, 100, 710]}},
    }


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_verdict_in_words(found):
    said = plain(" ".join(verdict(found)))
    assert "Right on 90.0 % of 1,000 test images" in said
    assert "Overconfident by 7.0 points: ECE 7.0 %, where perfect calibration would show 1.0 % to 3.0 %" in said
    assert "loses most on gaussian noise, 30.0 points" in said
    assert "FGSM turns 60.0 % of its right answers into wrong ones" in said
    todo = plain(" ".join(advice(found)))
    assert "temperature greater than 1" in todo
    assert "Gaussian noise costs 30.0 points" in todo
    assert "tamper" in todo


def test_verdict_the_other_way(found):
    found["calibration"]["signed_error"] = number(-0.07)
    assert "Underconfident by 7.0 points" in " ".join(verdict(found))
    assert "temperature less than 1" in " ".join(advice(found))
    found["calibration"]["ece"] = number(0.02)
    assert "Its confidence can be believed" in " ".join(verdict(found))
    for cell in found["corruptions"]["cells"]:
        cell["accuracy"] = number(0.9)
    found["attacks"]["fgsm"]["success_rate"] = number(0.1)
    assert advice(found) == ["Nothing urgent at this depth of audit."]


def test_worst_corruption(found):
    name, drop = worst_corruption(found)
    assert (name, drop) == ("gaussian_noise", pytest.approx(0.3))


def test_reliability_rows_and_figure_hold_the_same_numbers(found):
    rows = reliability_rows(found)
    assert [row["confidence"] for row in rows] == [0.6, 0.95]
    assert [row["accuracy"] for row in rows] == [0.5, 0.8875]
    assert [row["share"] for row in rows] == [0.2, 0.8]
    figure = json.loads(reliability_figure([found]))
    assert figure["data"][1]["x"] == [0.6, 0.95]
    assert figure["data"][1]["y"] == [0.5, 0.8875]
    pale, strong = figure["data"][1]["marker"]["opacity"]
    assert (pale, strong) == pytest.approx((0.15 + 0.85 * 0.2**0.5, 0.15 + 0.85 * 0.8**0.5))
    assert figure["data"][1]["error_y"]["array"][0] == pytest.approx(rows[0]["high"] - 0.5)


def with_temperature(found, **more):
    after = {**found["calibration"], "ece": number(0.02), "nll": number(0.3)}
    found["temperature"] = {
        "fitted_on": "the calibration split",
        "images": 100,
        "temperatures": [1.5],
        "notes": [],
        "calibration": after,
        "corrupted_ece": number(0.2),
        "corrupted_scaled_ece": number(0.15),
        **more,
    }
    return found


def test_temperature_before_and_after_and_where_it_comes_from(found):
    said = plain(" ".join(verdict(with_temperature(found, notes=["It stops at its bound."]))))
    assert "Temperature 1.50 (from the calibration split) takes ECE from 7.0 % to 2.0 %" in said
    assert "on corrupted pictures from 20.0 % to 15.0 %" in said
    page = plain(render_page([found]))
    assert "the calibration split, 100 images" in page
    assert "It stops at its bound." in page


def test_a_page_of_predictions_alone(found):
    with_temperature(found, corrupted_ece=None, corrupted_scaled_ece=None, temperatures=[1.4, 1.6])
    for part in ("corruptions", "attacks", "preflight"):
        del found[part]
    said = plain(" ".join(verdict(found)))
    assert "Temperature 1.40 and 1.60" in said
    assert "orrupted" not in said
    page = render_page([found])
    assert 'id="corruptions"' not in page
    assert advice(found)[0].startswith("Divide the logits")


@pytest.mark.parametrize(("correct", "count"), [(0, 1), (1, 1), (5, 10), (99, 100)])
def test_wilson_interval_solves_its_equation(correct, count):
    """Its ends are where |share - p| = z sqrt(p (1 - p) / n)."""
    found = wilson(correct, count)
    share = correct / count
    for end in (found["low"], found["high"]):
        if end != share:
            assert abs(share - end) == pytest.approx(1.959964 * (end * (1 - end) / count) ** 0.5, rel=1e-6)
    assert 0 <= found["low"] <= share <= found["high"] <= 1


def test_names_are_escaped_everywhere(found):
    nasty = "</script><script>alert(1)</script>"
    found["subject"].update(name=nasty, split=nasty, data={"name": nasty})
    found["corruptions"]["cells"][0]["name"] = nasty
    body = re.sub(r"<script>/\*\*.*?</script>", "", render_page([found]), count=1, flags=re.S)  # plotly's own script
    assert nasty not in body
    assert "<script>alert(1)" not in body
    assert json.loads(safe_json(nasty)) == nasty


def test_findings_come_first(found):
    assert "Look at this first" not in render_page([found])
    found["preflight"] = [{"name": "class-order", "message": "Labels <b>differ</b>.", "advice": "Use a class map."}]
    page = render_page([found])
    assert "<strong>Labels &lt;b&gt;differ&lt;/b&gt;.</strong> Use a class map." in page
    assert page.index("Look at this first") < page.index("What to do")


def test_one_page_for_several(found):
    other = copy.deepcopy(found)
    other["subject"]["name"] = "theirs"
    page = render_page([found, other])
    assert "<title>Surefoot audit: mine and theirs</title>" in page
    assert "http://" not in re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    with pytest.raises(SurefootError, match="at least one audit"):
        render_page([])


def test_reading(tmp_path, found):
    with pytest.raises(NotFound, match="No audit at"):
        read_audit(tmp_path)
    points = found.pop("points")
    (tmp_path / "audit.json").write_text(json.dumps({**found, "schema": 99}))
    with pytest.raises(SurefootError, match="has schema 99, and this version reads 2"):
        read_audit(tmp_path)
    (tmp_path / "audit.json").write_text(json.dumps(found))
    (tmp_path / "audit-data").mkdir()
    (tmp_path / "audit-data" / "points.json").write_text(json.dumps(points))
    assert read_audit(tmp_path) == {**found, "points": points}


class TestInABrowser:
    @pytest.fixture
    def opened(self, browser, found, tmp_path):
        """The page, opened from disk; nothing may go wrong and nothing may leave the file."""
        found["subject"]["name"] = "<script>document.title = 'hacked'</script>"
        path = write_page(tmp_path / "report.html", [found])
        troubles = []

        def open_page(**settings):
            page = browser.new_page(**settings)
            page.on("console", lambda message: troubles.append(message.text))
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on("request", lambda request: troubles.append(request.url) if request.url != path.as_uri() else None)
            page.goto(path.as_uri())
            page.wait_for_selector("#reliability .scatterlayer .trace")
            return page

        yield open_page
        assert troubles == []

    def test_figure_is_drawn_with_its_numbers(self, opened):
        page = opened()
        drawn = page.evaluate("document.getElementById('reliability').data[1].y")
        page.click("summary")
        rows = page.locator("#reliability-table tbody tr").all_inner_texts()
        assert [float(row.split("\t")[2]) for row in rows] == pytest.approx(drawn, abs=1e-3)
        assert page.title().startswith("Surefoot audit")
        page.close()

    def test_dark_and_narrow(self, opened):
        page = opened(color_scheme="dark", viewport={"width": 390, "height": 800})
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
        assert page.evaluate("document.getElementById('reliability').layout.font.color") == "#e8eaed"
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.emulate_media(color_scheme="light")
        page.wait_for_function("document.getElementById('reliability').layout.font.color === '#1b1f24'")
        page.close()
