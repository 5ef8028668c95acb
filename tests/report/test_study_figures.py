"""Drawings of a study's figures, from values that are known."""

import io
import json
import re

import pytest
from PIL import Image

from surefoot.errors import SurefootError
from surefoot.report.pictures import HEIGHT, WIDTH, check_picture, columns_of, sheet_png, sheet_svg, write_figures
from surefoot.report.plots.planes import loss_field_figure, plane_figure
from surefoot.report.study_figures import OF_ALL, OF_EACH, OF_NUMBERS, figure_drawings
from surefoot.studies.schema import NUMBERS, POINTS

NASTY = "<b>macs</b>"


def table(axes, rows, columns=("clean.accuracy",), baseline="ce"):
    """Rows are (labels, means); deviations are 0.5."""
    cells = [{"key": list(key), "cells": [m and {"mean": m, "spread": "0.5"} for m in means]} for key, means in rows]
    return {"axes": axes, "columns": [{"name": n, "title": n} for n in columns], "rows": cells, "baseline": baseline}


def figure(*parts, **options):
    return {"place": "Figure 1", "title": "T", "paper": "macs", "notes": ["A note."], "options": options, "parts": list(parts)}


def panels(draw, *points, label="m"):
    named = [{"name": f"method {k}", "label": label, "points": each} for k, each in enumerate(points)]
    return {"draw": draw, "panels": named}


def test_every_drawing_that_a_study_may_name_is_there():
    assert set(OF_NUMBERS) == set(NUMBERS)
    assert {*OF_EACH, *OF_ALL} == set(POINTS)


def test_bars_by_model_and_by_method():
    rows = [(("r18", "ce"), [80.0]), (("r18", NASTY), [82.0]), (("r50", "ce"), [81.0]), (("r50", NASTY), [None])]
    (by_model,) = figure_drawings(figure({"draw": "bars", "table": table(["model", "method"], rows)}))
    assert [trace["name"] for trace in by_model.figure["data"]] == ["ce", "&lt;b&gt;macs&lt;/b&gt;"]
    assert (by_model.figure["data"][0]["x"], by_model.figure["data"][0]["y"]) == (["r18", "r50"], [80.0, 81.0])
    assert by_model.figure["data"][1]["x"] == ["r18"]  # what was not measured is not drawn
    assert by_model.figure["data"][0]["error_y"]["array"] == [0.5, 0.5]
    two = table(["method"], [(("ce",), [80.0, 5.0]), (("macs",), [82.0, 3.0])], ("accuracy", "ece"))
    (beside,) = figure_drawings(figure({"draw": "bars", "table": two}))
    assert [(trace["name"], trace["y"]) for trace in beside.figure["data"]] == [("accuracy", [80.0, 82.0]), ("ece", [5.0, 3.0])]


def test_curves_and_slopes_over_data_and_models():
    rows = [
        ((d, m, w), [10.0 * k]) for k, (d, m, w) in enumerate([(d, m, w) for d in "ab" for m in "rs" for w in ("ce", "x")], 1)
    ]
    shown = table(["data", "model", "method"], rows)
    first, second = figure_drawings(figure({"draw": "curves", "table": shown}))
    assert (first.title, second.title) == ("Figure 1: a", "Figure 1: b")
    assert [(line["name"], line["x"], line["y"]) for line in second.figure["data"]] == [
        ("r", ["ce", "x"], [50.0, 60.0]),
        ("s", ["ce", "x"], [70.0, 80.0]),
    ]
    (slopes,) = figure_drawings(figure({"draw": "slopes", "table": shown}))
    assert [(line["name"], line["y"]) for line in slopes.figure["data"]][2] == ("b, r", [50.0, 60.0])
    one = table(["method"], [(("ce",), [80.0]), (("macs",), [82.0])])
    (line,) = figure_drawings(figure({"draw": "slopes", "table": one}))[0].figure["data"]
    assert line["y"] == [80.0, 82.0]


def test_profile_over_corruptions():
    columns = ("corruptions.accuracy.fog", "corruptions.accuracy.shot_noise")
    (drawn,) = figure_drawings(figure({"draw": "profile", "table": table(["method"], [(("ce",), [60.0, 40.0])], columns)}))
    assert (drawn.figure["data"][0]["x"], drawn.figure["data"][0]["y"]) == (["fog", "shot noise"], [60.0, 40.0])


def test_attacks_that_the_figure_names():
    bins = {"edges": [0.0, 0.5, 1.0], "counts": [3, 4], "attacks": {"fgsm": [0.9, 0.5], "pgd-weak": [0.8, 0.2]}}
    points = {"cosine_attacks": bins}
    (drawn,) = figure_drawings(figure(panels("success", points), attacks=["fgsm", "autoattack-weak"]))
    assert [trace["name"] for trace in drawn.figure["data"]] == ["images", "FGSM"]
    assert drawn.figure["data"][1]["y"] == [0.9, 0.5]
    assert "Not measured at this scale: " in drawn.sentence
    assert figure_drawings(figure(panels("success", points), attacks=["pgd-strong"])) == []


def reliability(ece=0.1):
    parts = {"edges": [0.0, 0.5, 1.0], "confidence": [None, 0.8], "accuracy": [None, 0.7], "share": [0.0, 1.0]}
    return {**parts, "ece": ece}


def test_reliability_before_and_after_scaling():
    (drawn,) = figure_drawings(figure(panels("reliability", {"reliability": reliability()})))
    assert drawn.figure["data"][0]["marker"]["opacity"] == [0.0, 1.0]  # the fainter the fewer images
    assert drawn.figure["layout"]["annotations"][0]["text"] == "ECE 10.0 %"
    both = {"scaled": {"before": reliability(), "after": reliability(0.02), "scale": 0.5, "accuracy": 0.9}}
    titles = [each.title for each in figure_drawings(figure(panels("scaled-reliability", both)))]
    assert titles == ["Figure 1: method 0, S = 1", "Figure 1: method 0, S = 0.5, accuracy 90.0%"]


def test_models_in_one_drawing():
    moved = {"feature_rms": [1.0, 2.0], "values": [0.1, 0.2], "feature_rms_mean": 1.5, "mean": 0.15}
    (drawn,) = figure_drawings(figure(panels("displacement", {"perturbation": moved}, {"perturbation": moved})))
    assert [(trace["name"], trace["x"]) for trace in drawn.figure["data"] if trace["marker"]["size"] == 13] == [
        ("method 0", [1.5]),
        ("method 1", [1.5]),
    ]
    maps = [
        {"landscape": {"offsets": [0, 1], "loss": [[[a, 2.0], [3.0, 4.0]]], "names": ["i"], "right": [True]}}
        for a in (0.0, 9.0)
    ]
    scales = [
        (each.figure["data"][0]["zmin"], each.figure["data"][0]["zmax"])
        for each in figure_drawings(figure(panels("landscape", *maps)))
    ]
    assert scales == [(0.0, 9.0), (0.0, 9.0)]  # one scale of colours, so that models compare


def test_layers_in_the_rows_that_the_figure_names():
    shown = {
        "blocks": ["a.b1", "a.b2"],
        "level": 0.06,
        "labels": [0, 1],
        "clean": [[[0, 1], [2, 3]]] * 2,
        "noisy": [[[4, 5], [6, 7]]] * 2,
    }
    (noisy,) = figure_drawings(figure(panels("layers", {"layers": shown}), kinds=["noisy"]))
    assert [trace["x"] for trace in noisy.figure["data"]] == [[4, 6], [4, 6]]
    assert noisy.figure["layout"]["yaxis"]["domain"] == pytest.approx([0.04, 0.96])
    (both,) = figure_drawings(figure(panels("layers", {"layers": shown})))
    assert len(both.figure["data"]) == 4


def space(dimensions, steps=5):
    """A space of two classes whose border is the first coordinate's 0."""
    axis = [float(k) for k in range(-(steps // 2), steps // 2 + 1)]

    def grid(value, left):
        return value if left == 0 else [grid(value, left - 1) for _ in axis]

    classes = [grid(int(x > 0), dimensions - 1) for x in axis]
    ends = [[1.0] + [0.0] * (dimensions - 1), [-1.0] + [0.0] * (dimensions - 1)]
    same = {"weights": ends, "centres": ends, "means": ends, "features": ends, "labels": [1, 0]}
    return {"axis": axis, "classes": classes, "confidence": grid(0.9, dimensions), **same}


def test_regions_of_two_classes_in_three_dimensions():
    solids = [trace for trace in plane_figure(space(3)).data if trace.type == "isosurface"]
    assert [solid.name for solid in solids] == ["region of class 0", "region of class 1"]
    for number, solid in enumerate(solids):  # every other point: coordinates -2, 0 and 2
        assert len(solid.value) == 27
        assert all(value == float((x > 0) == bool(number)) for x, value in zip(solid.x, solid.value, strict=True))
    assert not [trace for trace in plane_figure(space(2)).data if trace.type == "isosurface"]


def test_loss_with_clean_and_perturbed_features_enlarged():
    grid = space(2)
    field = {"axis": grid["axis"], "loss": grid["confidence"], "classes": grid["classes"], "label": 1, "centre": [1.0, 0.0]}
    field |= {
        "places": [[0.0, 0.0]],
        "gradients": [[1.0, 0.0]],
        "finite": True,
        "converged": True,
        "centre_steps": 5,
        "class": "one",
    }
    moved = {"features": [[[1.0, 1.0]], [[0.5, 0.5]]], "labels": [1]}
    drawn = loss_field_figure(field, None, moved, enlarged=4)
    ends = {trace.name: (list(trace.x), trace.marker.symbol) for trace in drawn.data if trace.name in ("clean", "perturbed")}
    assert ends == {"clean": ([1.0], "circle"), "perturbed": ([0.5], "triangle-up")}
    assert list(drawn.layout.xaxis.range) == [-0.5, 0.5]
    points = {"plane": {"plane": grid, "path": None, "field": field, "field_path": {**moved}, "moved": moved}}
    _, larger = figure_drawings(figure(panels("field", points), enlarged=4))
    assert larger.title == "Figure 1: method 0, loss of class one, enlarged 4 times"
    assert figure_drawings(figure(panels("plane", {}), path=True)) == []  # of a model with more features


def test_snapshots_of_training():
    shots = {"starts": [{"epoch": 0, "plane": space(2)}, {"epoch": 7, "plane": space(2)}]}
    titles = [each.title for each in figure_drawings(figure(panels("starts", shots)))]
    assert titles == ["Figure 1: method 0, before training", "Figure 1: method 0, epoch 7"]


def test_a_figure_as_a_page(tmp_path):
    rows = [(("ce",), [80.0]), ((NASTY,), [82.0])]
    shown = figure({"draw": "bars", "table": table(["method"], rows)})
    page = write_figures(tmp_path / "f.html", [shown], "Tables", "surefoot study figure x").read_text()
    assert "Figure 1 of macs: T" in page
    assert "A note." in page
    assert "surefoot study figure x" in page
    assert "The table" not in page
    assert NASTY not in page
    found = json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.S)[1])["figures"]
    assert found["figure-1-0"]["data"][0]["y"] == [80.0, 82.0]
    assert 'format: "svg"' in page  # what a reader saves is a drawing that scales


def test_panels_on_one_sheet():
    assert [columns_of(count) for count in (1, 3, 4, 5, 6, 8, 9)] == [1, 3, 4, 4, 3, 4, 3]
    svg = sheet_svg([b"<svg/>"] * 3, 2).decode()
    assert f'width="{2 * WIDTH}" height="{2 * HEIGHT}"' in svg
    assert re.findall(r"translate\((\d+) (\d+)\)", svg) == [("0", "0"), (str(WIDTH), "0"), ("0", str(HEIGHT))]
    colours = []
    for colour in ("red", "lime", "blue"):
        file = io.BytesIO()
        Image.new("RGB", (WIDTH, HEIGHT), colour).save(file, "PNG")
        colours.append(file.getvalue())
    sheet = Image.open(io.BytesIO(sheet_png(colours, 2)))
    places = [(10, 10), (WIDTH + 10, 10), (10, HEIGHT + 10), (WIDTH + 10, HEIGHT + 10)]
    assert [sheet.getpixel(place) for place in places] == [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)]


def test_formats_of_a_file(tmp_path, monkeypatch):
    with pytest.raises(SurefootError, match=r"Unknown format of a figure .* '.svgg'. Did you mean '.svg'"):
        check_picture(tmp_path / "f.svgg")
    monkeypatch.setitem(__import__("sys").modules, "kaleido", None)
    check_picture(tmp_path / "f.html")
    with pytest.raises(SurefootError, match=r"pip install 'surefoot\[pictures\]'"):
        check_picture(tmp_path / "f.png")


@pytest.mark.stress
@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_figure_as_a_picture(tmp_path, suffix):
    """By kaleido and the browser that is here."""
    pytest.importorskip("kaleido")
    shown = figure({"draw": "bars", "table": table(["method"], [(("ce",), [80.0])])})
    path = write_figures(tmp_path / f"f.{suffix}", [shown, shown], "Tables")
    if suffix == "svg":
        assert path.read_text().count("main-svg") >= 2
    else:
        with Image.open(path) as picture:
            assert picture.size == (2 * WIDTH, HEIGHT)
