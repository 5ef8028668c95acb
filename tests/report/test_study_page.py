"""The page of a study, from a table whose numbers are known."""

import json
import re

import pytest

from surefoot.report.plots.corruptions import free_sides
from surefoot.report.study_page import TRADE_OFF, render_study, trade_off_of, write_study

NASTY = "<script>alert(1)</script>"


def cell(mean, best=False, difference=None):
    mark = "≈" if difference and difference["within_noise"] else ""
    return {"mean": mean, "shown": f"{mean:.1f}", "spread": "0.2", "mark": mark, "best": best, "difference": difference}


@pytest.fixture
def table():
    better = {"value": 2.0, "low": 1.0, "high": 3.0, "within_noise": False, "seeds": 5}
    noise = {"value": 0.1, "low": -1.0, "high": 1.2, "within_noise": True, "seeds": 2}
    rows = [
        {"key": ["small", "ce"], "cells": [cell(80.0), None]},
        {"key": ["small", NASTY], "cells": [cell(82.0, best=True, difference=better), cell(1.0, difference=noise)]},
    ]
    head = {"title": "A table", "command": "surefoot study run x", "axes": ["model", "method"], "baseline": "ce"}
    columns = [{"title": "accuracy % up", "name": "clean.accuracy"}, {"title": "ECE", "name": "clean.ece"}]
    return {**head, "columns": columns, "rows": rows, "notes": ["3 of 4"], "finished": 3, "cells": 4}


def test_numbers_marks_and_figures(table):
    page = render_study(table)
    assert "<strong>82.0</strong>" in page
    assert "1.0 ≈" in page
    assert page.count("3 of 4") == 2
    found = json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.S)[1])["figures"]
    assert found["differences-0"]["data"][0]["x"] == [2.0]
    assert found["differences-0"]["data"][0]["error_x"]["array"] == [1.0]
    symbols = [found[name]["data"][0]["marker"]["symbol"] for name in ("differences-0", "differences-1")]
    assert symbols == [["circle"], ["circle-open"]]
    assert found["differences-0"]["layout"]["yaxis"]["autorange"] == "reversed"  # the order of the table
    assert found["slopes"]["data"][0]["y"] == [80.0, 82.0]
    assert NASTY not in page


def test_it_draws_in_a_browser(table, browser, tmp_path):
    said = []
    page = browser.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(write_study(tmp_path / "study.html", table).as_uri())
    page.evaluate("surefoot.drawAll()")
    page.set_viewport_size({"width": 320, "height": 600})
    scrolled = "document.querySelector('#table .scroll')"
    page.evaluate(f"{scrolled}.scrollLeft = 300")
    name, edge = (
        page.evaluate(f"{scrolled}.{place}getBoundingClientRect().left") for place in ("querySelector('.pinned').", "")
    )
    assert page.evaluate(f"{scrolled}.scrollLeft") > 50
    assert name == pytest.approx(edge, abs=1)  # the method stays beside its numbers
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.locator("#figure-slopes .main-svg").count() > 0
    page.click("details[data-figure=differences-0] summary")
    row = page.locator("details[data-figure=differences-0] tbody tr td").all_inner_texts()
    assert row == ["difference", "2", f"small, {NASTY} (5 seeds)", "1", "3"]  # the interval runs across
    assert said == []
    page.close()


def test_what_robustness_costs():
    """Cheap, dear and better, dear and worse: the first two are on the line that none beats."""
    means = {"plain": (1, 60, 12, 74), "better": (3, 67, 3, 75), "worse": (2, 58, 8, 70), "unfinished": (2, 61, 5, None)}
    cells = {name: [None if value is None else {"mean": value} for value in row] for name, row in means.items()}
    table = {
        "columns": [{"title": name, "name": name} for name in ("cost.relative", *TRADE_OFF)],
        "rows": [{"key": [name], "cells": row} for name, row in cells.items()],
    }
    (drawn,) = trade_off_of(table)
    line, points = drawn.figure["data"]
    assert (line["x"], line["y"]) == ([1, 3], [60, 67])
    assert points["text"] == ["plain", "better", "worse"]
    assert (points["x"], points["y"]) == ([1, 3, 2], [60, 67, 58])
    assert points["marker"]["color"] == [12, 3, 8]
    assert points["marker"]["size"] == [pytest.approx(10 + 18 * share) for share in (0.8, 1, 0)]
    assert drawn.figure["layout"]["xaxis"]["title"]["text"] == "cost of a step, in steps of cross-entropy"
    assert trade_off_of({**table, "columns": [{"title": "a", "name": "a"}] * 4}) == []


def test_names_keep_clear_of_points_and_of_each_other():
    """Right of its point where there is room, else left, above or below."""
    assert free_sides([(0.2, 0.5), (0.8, 0.1)], ["far", "away"]) == ["middle right", "middle right"]
    assert free_sides([(0.97, 0.5)], ["no-room-there"]) == ["middle left"]
    assert free_sides([(0.4, 0.5), (0.46, 0.5)], ["first", "second"]) == ["middle left", "middle right"]
    assert free_sides([(0.5, 0.5), (0.5, 0.51), (0.5, 0.53)], ["a-name"] * 3) == ["middle right", "middle left", "top center"]


def test_what_robustness_costs_at_equal_training_time():
    """Twice the epochs at the same cost of a step lie twice as far to the right."""
    names = ("cost.relative", "cost.epochs", *TRADE_OFF)
    means = {"20 epochs": (1, 20, 60, 12, 74), "40 epochs": (1, 40, 62, 14, 76)}
    table = {
        "columns": [{"title": name, "name": name} for name in names],
        "rows": [{"key": [name], "cells": [{"mean": value} for value in row]} for name, row in means.items()],
    }
    (drawn,) = trade_off_of(table)
    assert drawn.figure["data"][1]["x"] == [20, 40]
    assert drawn.figure["layout"]["xaxis"]["title"]["text"] == "training time, in epochs of cross-entropy"


def test_a_reader_saves_a_figure_as_svg(table, browser, tmp_path):
    page = browser.new_page(accept_downloads=True)
    page.goto(write_study(tmp_path / "study.html", table).as_uri())
    page.evaluate("surefoot.draw('differences-0')")
    with page.expect_download() as saved:
        page.evaluate("document.querySelector('#figure-differences-0 .modebar-btn').click()")
    assert saved.value.suggested_filename == "differences-0.svg"
    saved.value.save_as(tmp_path / "saved.svg")
    assert "<svg" in (tmp_path / "saved.svg").read_text()[:200]
    page.close()


def test_figures_of_a_study_stand_on_its_page(table):
    rows = [{"key": ["ce"], "cells": [cell(80.0)]}, {"key": [NASTY], "cells": [cell(82.0)]}]
    shown = {"axes": ["method"], "columns": table["columns"][:1], "rows": rows, "baseline": "ce"}
    drawn = {"place": "Figure 3", "title": NASTY, "paper": "macs", "notes": [], "options": {}}
    page = render_study({**table, "figures": [{**drawn, "parts": [{"draw": "slopes", "table": shown}]}]})
    found = json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.S)[1])["figures"]
    assert found["figure-3-0"]["data"][0]["y"] == [80.0, 82.0]
    assert "slopes" not in found  # the same is not drawn twice
    assert '<h2 id="place-1-title">Figure 3 of macs: &lt;script&gt;' in page
