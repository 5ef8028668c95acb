import json
import re

import pytest
import torch
from made_up import class_row, made_up

import surefoot as sf
from surefoot.errors import NotFound, SurefootError, UnknownName
from surefoot.intervals import wilson
from surefoot.report.figures import compact, safe_json
from surefoot.report.page import SCRIPT, read_audit, render_page, write_page

NASTY = "</script><script>alert(1)</script>"


@pytest.fixture
def found():
    return made_up()


def without_plotly(page):
    return re.sub(r'<script type="text/plain" id="plotly">.*?</script>', "", page, count=1, flags=re.S)


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.S)[1])


@pytest.mark.parametrize(("correct", "count"), [(0, 1), (1, 1), (5, 10), (99, 100)])
def test_wilson_interval_solves_its_equation(correct, count):
    """Its ends are where |share - p| = z sqrt(p (1 - p) / n)."""
    found = wilson(correct, count)
    share = correct / count
    for end in (found["low"], found["high"]):
        if end != share:
            assert abs(share - end) == pytest.approx(1.959964 * (end * (1 - end) / count) ** 0.5, rel=1e-6)
    assert 0 <= found["low"] <= share <= found["high"] <= 1


def test_a_page_without_families_and_success_rates(found):
    found["corruptions"]["families"] = {}
    for attack in found["attacks"].values():
        attack["success_rate"] = {"value": None, "low": None, "high": None}
    assert "worst family" not in without_plotly(render_page([found]))


def test_names_are_escaped_everywhere():
    audit = made_up(NASTY, (NASTY, "dog"), masking=[NASTY], preflight=[{"name": "x", "message": NASTY, "advice": NASTY}])
    audit["subject"] |= {"split": NASTY, "data": {"name": NASTY}, "notes": [NASTY]}
    audit["corruptions"]["cells"][0]["name"] = NASTY
    audit["attacks"][NASTY] = {**next(iter(audit["attacks"].values())), "eps": None}
    audit["corruptions"]["families"][NASTY] = audit["corruptions"]["families"].pop("noise")
    audit["points"]["mistakes"][0]["picture"] = '"><script>alert(1)</script>'
    differences = [
        {"name": NASTY, "first": NASTY, "second": NASTY, "value": 0.1, "adjusted": [0.0, 0.2], "real": True, "better": 1}
    ]
    body = without_plotly(render_page([audit, audit], differences=differences))
    assert NASTY not in body
    assert "<script>alert(1)" not in body
    assert body.count("</script>") == body.count("<script")


def test_labels_of_figures_are_no_tags():
    data = data_of(render_page([made_up("<b>bold</b>"), made_up("<b>bold</b>")]))
    names = {trace.get("name", "") for figure in data["figures"].values() for trace in figure["data"]}
    assert "&lt;b&gt;bold&lt;/b&gt;" in names
    assert not any("<" in name for name in names)


def test_json_that_stays_in_its_element():
    assert json.loads(safe_json([NASTY, 1 / 3, float("nan"), {"a": (1, 2.0)}])) == [NASTY, 0.333333, None, {"a": [1, 2.0]}]
    assert not set("<>&") & set(safe_json(NASTY + "&"))
    assert compact(123456.789) == 123457


def test_warnings_come_first(found):
    assert "Look at this first" not in render_page([found])
    found["preflight"] = [{"name": "class-order", "message": "Labels <b>differ</b>.", "advice": "Use a class map."}]
    found["masking"] = ["Noise is as strong as PGD."]
    page = render_page([found])
    assert "<strong>Labels &lt;b&gt;differ&lt;/b&gt;.</strong> Use a class map." in page
    assert page.index("Look at this first") < page.index("What to do")
    assert page.count("Noise is as strong as PGD.") == 2  # first, and with the attacks


def difference(name, first, second, value, low, high, *, real):
    return {"name": name, "first": first, "second": second, "value": value, "low": low, "high": high, "real": real, "better": 1}


def test_one_page_for_several(found):
    differences = [
        {
            "name": "ece",
            "first": "mine",
            "second": "theirs",
            "value": -0.05,
            "adjusted": [-0.07, -0.03],
            "primary": True,
            "real": True,
            "better": 1,
        },
        {
            "name": "nll",
            "first": "mine",
            "second": "theirs",
            "value": 0.01,
            "adjusted": [-0.02, 0.04],
            "real": False,
            "better": -1,
        },
    ]
    page = render_page([found, made_up("theirs")], differences=differences)
    assert "<title>Surefoot audit: mine and theirs</title>" in page
    assert "theirs minus mine" in page
    assert "ECE (primary)" in page
    assert re.findall(r"not distinguishable|<strong>better</strong>", page) == [
        "<strong>better</strong>",
        "not distinguishable",
    ]
    assert "<td>-5.0</td><td>-7.0 to -3.0</td>" in page
    assert page.index('id="differences"') < page.index('id="reliability"')
    assert 'id="differences"' not in render_page([found])
    with pytest.raises(SurefootError, match="at least one audit"):
        render_page([])


def test_a_page_of_predictions_alone(found):
    held = ("schema", "subject", "calibration", "temperature", "geometry", "thresholds", "classes", "groups", "points")
    alone = {key: found[key] for key in held}
    alone["points"] = {key: found["points"][key] for key in ("reliability", "temperatures")}
    del alone["subject"]["depth"]
    page = render_page([alone])
    for part in ("corruptions", "attacks", "mistakes"):
        assert f'<section id="{part}"' not in page
    assert "ECE after temperature" in page
    assert "surefoot audit --predictions FILE" in page


def test_script_inside_or_beside(found, tmp_path):
    inside = write_page(tmp_path / "a" / "report.html", [found])
    beside = write_page(tmp_path / "b" / "report.html", [found], assets="beside")
    assert not (inside.parent / SCRIPT).exists()
    script = beside.parent / SCRIPT
    assert script.stat().st_size > 4e6
    assert inside.stat().st_size - beside.stat().st_size > 4e6
    assert f'<script src="{SCRIPT}"></script>' in beside.read_text()
    before = script.stat().st_mtime_ns
    write_page(tmp_path / "b" / "other.html", [found], assets="beside")
    assert script.stat().st_mtime_ns == before
    script.write_text("an older one")
    write_page(tmp_path / "b" / "other.html", [found], assets="beside")
    assert script.stat().st_size > 4e6
    with pytest.raises(UnknownName, match="inline"):
        render_page([found], assets="inlne")


def test_the_page_of_a_folder(tmp_path):
    answers = sf.Predictions.from_logits(torch.eye(3).repeat(20, 1), torch.arange(60) % 3)
    sf.audit_predictions(answers, name="someone's", output=tmp_path / "audit")
    page = sf.write_page(tmp_path / "report.html", [tmp_path / "audit"])
    assert page.read_text() == render_page([read_audit(tmp_path / "audit")])
    assert "someone&#39;s" in page.read_text()


def test_pictures_and_points_are_there_once(found):
    mark = "data:image/png;base64,ONLYONCE"
    found["points"]["examples"]["cells"]["fog/3"]["pictures"][0] = mark
    page = render_page([found, found], assets="beside")
    assert page.count(mark) == 1
    assert page.count('"cosine"') == 0  # of the points, only what is drawn


def test_no_event_handler_stands_in_the_markup(found):
    page = render_page([found], assets="beside")
    assert not re.search(r"<[^>]+\son\w+=", page.split("<script")[0])
    assert "default-src 'none'" in page


def test_a_thousand_classes_stay_small(found):
    found["classes"] = [class_row(f"class number {k}", (k % 97) / 97, taken_for="another") for k in range(1000)]
    page = render_page([found], assets="beside")
    assert page.count("class number") < 1100
    assert len(page) < 1_000_000


def test_reading(tmp_path, found):
    with pytest.raises(NotFound, match="No audit at"):
        read_audit(tmp_path)
    points = found.pop("points")
    (tmp_path / "audit.json").write_text(json.dumps({**found, "schema": 99}))
    with pytest.raises(SurefootError, match="has schema 99, and this version reads 1 to 3"):
        read_audit(tmp_path)
    (tmp_path / "audit.json").write_text(json.dumps(found))
    (tmp_path / "audit-data").mkdir()
    (tmp_path / "audit-data" / "points.json").write_text(json.dumps(points))
    assert read_audit(tmp_path) == {**found, "points": points}
