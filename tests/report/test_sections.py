import pytest
from made_up import class_row, geometry_points, grid, made_up, number

from surefoot.corruptions.families import EVERY_FAMILY as MEASURED_EVERY
from surefoot.corruptions.families import FAMILIES as MEASURED_FAMILIES
from surefoot.report.page import render_page
from surefoot.report.sections import sections_of
from surefoot.report.sections.attacks import attacks_section
from surefoot.report.sections.base import models_of
from surefoot.report.sections.calibration import reliability_section, thresholds_section
from surefoot.report.sections.classes import SHOWN, classes_section, groups_section, mistakes_section
from surefoot.report.sections.corruptions import EVERY_FAMILY, FAMILIES, corruptions_section, means
from surefoot.report.sections.geometry import explained, geometry_section, inner_names
from surefoot.report.sections.provenance import measurements_section, provenance_section


def one(**more):
    return models_of([made_up(**more)])


def figure_of(section, name):
    return next(each.figure for each in section.drawings if each.name == name)


def test_families_are_those_that_are_measured():
    assert FAMILIES == MEASURED_FAMILIES
    assert EVERY_FAMILY == MEASURED_EVERY


def test_names_that_come_again_get_a_number():
    models = models_of([made_up("a"), made_up("a"), made_up("b")])
    assert [model.name for model in models] == ["a", "a (2)", "b"]
    assert len({model.colour for model in models}) == 3


def test_heat_map_by_family_with_all_measures():
    heat = corruptions_section(one()).data["heat"][0]
    assert [(row["family"], row["name"]) for row in heat["rows"]] == [
        ("noise", "gaussian_noise"),
        ("weather", "fog"),
        ("digital", "contrast"),
    ]
    assert heat["severities"] == [1, 2, 3, 4, 5]
    third = heat["rows"][0]["cells"][2]
    assert third["accuracy"] == pytest.approx([0.6, 0.59, 0.61])
    assert third["nll"] == pytest.approx([0.8, 0.79, 0.81])
    assert set(third) == {"accuracy", "ece", "nll", "rms"}


def test_a_severity_that_was_not_measured_is_empty():
    audit = made_up()
    audit["corruptions"]["cells"] = [
        cell for cell in audit["corruptions"]["cells"] if (cell["name"], cell["severity"]) != ("fog", 2)
    ]
    fog = corruptions_section(models_of([audit])).data["heat"][0]["rows"][1]
    assert fog["cells"][1] is None
    assert fog["cells"][2]["accuracy"][0] == pytest.approx(0.75)


def test_severities_by_family_or_by_model():
    single = figure_of(corruptions_section(one()), "severities")
    assert [trace["name"] for trace in single["data"]] == ["noise", "weather", "digital", "all"]
    assert single["data"][0]["y"] == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    assert single["data"][3]["y"][5] == pytest.approx((0.4 + 0.8 + 0.65) / 3)
    both = figure_of(corruptions_section(models_of([made_up("a"), made_up("b")])), "severities")
    assert [trace["name"] for trace in both["data"]] == ["a", "b"]
    assert means(made_up(), "weather")[:2] == [(0, 0.9), (1, pytest.approx(0.85))]


def test_noise_in_pixel_levels_with_intervals():
    trace = figure_of(corruptions_section(one()), "noise")["data"][0]
    assert trace["x"] == pytest.approx([0, 2, 8, 20])
    assert trace["y"] == pytest.approx([0.9, 0.88, 0.82, 0.7])
    assert trace["error_y"]["array"] == pytest.approx([0.01] * 4)


def test_security_curve_with_calibration():
    lines = {trace["name"]: trace for trace in figure_of(attacks_section(one()), "security")["data"]}
    assert set(lines) == {"accuracy", "ECE", "mean confidence"}
    assert lines["accuracy"]["x"] == pytest.approx([0, 2, 8])
    assert lines["accuracy"]["y"] == [0.9, 0.5, 0.1]
    assert lines["mean confidence"]["y"] == [0.8] * 3
    assert attacks_section(one(attacks={}, security_curve=[])) is None


def test_a_page_without_a_grid_still_has_one_step():
    audit = made_up()
    del audit["points"]["temperatures"]
    audit["points"]["feature_scales"] = None
    slider = reliability_section(models_of([audit])).data["sliders"][0]
    assert slider["grids"] == {
        "temperatures": {
            "values": [1.0],
            "counts": [[0, 200, 800]],
            "confidences": [[0.0, 120.0, 760.0]],
            "correct": [[0, 100, 710]],
            "ece": [0.07],
            "nll": [0.4],
        }
    }


def test_the_fitted_temperature_is_a_step_of_the_grid():
    slider = reliability_section(one()).data["sliders"][0]
    assert slider["fitted"] == [1.9]
    assert 1.9 in slider["grids"]["temperatures"]["values"]
    assert set(slider["grids"]) == {"temperatures", "feature_scales"}


def test_geometry_table_flattens_and_explains():
    rows = {row["name"]: row for row in geometry_section(one()).values["rows"]}
    assert rows["margin"]["cells"][0] == {"value": "2", "interval": "1.99 to 2.01"}
    assert rows["cone index: mean"]["cells"][0] == {"value": "7.25", "interval": ""}
    assert "steps to the origin" in rows["cone index: share of full cones"]["meaning"]
    assert "largest logit" not in rows
    assert geometry_section(one()).values["notes"] == [("mine", "Radii are estimates.")]


def test_geometry_figures_are_optional():
    names = {each.name for each in geometry_section(one()).drawings}
    assert names == {
        *("features-0", "success-0", "displacement-0", "plane-0", "field-0", "cones-0", "bias-0", "kinds-0", "collapse-0"),
        *("accuracy-by-curvature", "curvature-by-count-0", "curvature-spread", "curvature", "fisher"),
        *("shapes-0", "hyperplanes-0", "centres-0", "mapping-0", "layers-0", "separation-0"),
        *("logits-0", "margin-ratio-0", "sensitivity-0", "radii-0", "stability-0"),
        *("slopes-0", "loss-change-0", "landscape-0", "complexity-0", "certificates", "eigenvalues-0"),
    }
    audit = made_up()
    del audit["points"]["geometry"]
    assert geometry_section(models_of([audit])).drawings == ()


def test_deeper_figures_show_the_points_and_say_how_to_read_them():
    section = geometry_section(one())
    bars = figure_of(section, "shapes-0")["data"]
    assert [(bar["name"], bar["x"], bar["y"]) for bar in bars] == [
        ("dispersion", ["cat", "dog"], [4.0, 5.0]),
        ("margin", ["cat", "dog"], [0.5, 0.25]),
        ("signed margin", ["cat", "dog"], [0.5, -0.25]),
    ]
    assert sum(figure_of(section, "hyperplanes-0")["data"][0]["y"]) == pytest.approx(1)
    assert figure_of(section, "mapping-0")["layout"]["title"]["text"] == "vacuous"
    assert "4.5" not in figure_of(section, "complexity-0")["layout"]["xaxis"]["title"]["text"]
    assert figure_of(section, "complexity-0")["data"][0]["x"] == ["1. conv", "2. fc"]
    assert figure_of(section, "layers-0")["layout"]["xaxis"]["title"]["text"] == "blocks.0"
    assert figure_of(section, "separation-0")["data"][0]["y"] == [0.4, 0.6]
    points = made_up()["points"]["geometry"]
    assert figure_of(section, "loss-change-0")["data"][0]["y"] == points["loss_change"]["values"]
    assert figure_of(section, "slopes-0")["data"][0]["y"] == points["slopes"]["radii"]
    assert figure_of(section, "landscape-0")["data"][0]["z"][1][2] == 3
    assert figure_of(section, "certificates")["data"][0]["y"] == [0.5, 0.5, 0.0]
    assert figure_of(section, "bias-0")["data"][0]["x"] == ["cat", "&lt;b&gt;dog&lt;/b&gt;"]
    assert [bar["y"] for bar in figure_of(section, "cones-0")["data"]][1] == [2]
    assert figure_of(section, "margin-ratio-0")["data"][0]["y"] == [3.0, -1.0]
    assert [trace["name"] for trace in figure_of(section, "curvature")["data"]] == [
        "mine (Eq. 21, step 0.01)",
        "mine, fewer images (Hessian)",
    ]
    assert len(figure_of(section, "eigenvalues-0")["data"]) == 3
    assert figure_of(section, "field-0")["layout"]["annotations"][0]["ax"] == -1.0
    said = {each.name: each.sentence for each in section.drawings}
    assert "weak PGD breaks" in said["success-0"]
    assert "class cat" in said["field-0"]
    assert "vacuous" in said["mapping-0"]
    assert "attention are not counted" in said["complexity-0"]
    assert "nothing is certified" in said["slopes-0"]
    assert "within a distance of 0.1," in said["loss-change-0"]
    assert "noise of 0.06 below" in said["layers-0"]
    assert all(len(sentence) < 240 for sentence in said.values())


def test_margin_terms_of_several_models_stand_beside_each_other():
    assert "margin-term" not in {each.name for each in geometry_section(one()).drawings}
    section = geometry_section(models_of([made_up("a"), made_up("b")]))
    bars = figure_of(section, "margin-term")["data"][0]
    assert (bars["x"], bars["y"]) == (["a", "b"], [4.5, 4.5])
    titles = {each.name: each.title for each in section.drawings}
    assert titles["layers-1"].endswith(": b")


def test_names_of_layers_without_what_all_begin_with():
    assert inner_names(["module.conv", "module.blocks.0.conv"]) == ["conv", "blocks.0.conv"]
    assert inner_names(["blocks.0", "blocks.1"]) == ["blocks.0", "blocks.1"]
    assert inner_names(["a.b.c"]) == ["c"]
    assert inner_names([]) == []


def test_every_measurement_of_a_full_audit_has_a_meaning():
    names = {
        *(
            "class_dispersion",
            "class_margin",
            "signed_class_margin",
            "boundary_ratio",
            "hyperplane_distance",
            "centre_stability",
        ),
        *("local_lipschitz", "first_order_radius", "loss_change", "two_sided_loss_change", "largest_rise_of_the_loss"),
        *("log_spectral_complexity", "log_margin_term", "share_below_margin", "mapping_bound", "vacuous_mapping_bounds"),
        *("class_separation", "class_separation_bound"),
    }
    said = {name: explained(name)["meaning"] for name in names}
    papers = ("macs", "magnma", "discriminative-noise", "representation-space")
    assert [name for name, text in said.items() if not any(f"({paper} " in text for paper in papers)] == []


def test_the_page_draws_what_the_audit_computed():
    section, points = geometry_section(one()), geometry_points()
    bars, line = figure_of(section, "success-0")["data"]
    assert (bars["y"], line["y"]) == (points["features"]["success"]["counts"], points["features"]["success"]["values"])
    assert figure_of(section, "accuracy-by-curvature")["data"][0]["y"] == points["curvature"]["accuracy"]["values"]
    counted = figure_of(section, "curvature-by-count-0")["data"][0]
    assert (counted["y"], counted["name"]) == (points["curvature"]["by_count"]["values"], "r = -0.50 over groups")
    box = figure_of(section, "curvature-spread")["data"][0]
    assert [box[key][0] for key in ("lowerfence", "q1", "median", "q3", "upperfence")] == [0.1, 0.5, 1.0, 2.0, 4.0]
    assert figure_of(section, "displacement-0")["data"][1]["x"] == [2.0]


def test_two_groups_of_curvature_have_no_correlation():
    audit = made_up()
    two = {"draws": 2, "values": [3.0, None, 1.0], "counts": [1, 0, 2], "correlation": None}
    audit["points"]["geometry"]["curvature"]["by_count"] = two
    drawn = figure_of(geometry_section(models_of([audit])), "curvature-by-count-0")["data"][0]
    assert (drawn["name"], drawn["y"]) == ("groups", [3.0, None, 1.0])


def test_classes_worst_first_and_the_rest_on_demand():
    rows = [class_row(f"c{k}", k / 100) for k in range(99, 0, -1)] + [class_row("unseen", 0) | {"accuracy": None}]
    section = classes_section(one(classes=tuple(f"c{k}" for k in range(100))))
    assert section.values["count"] == 100
    audit = made_up()
    audit["classes"] = rows
    section = classes_section(models_of([audit]))
    assert [row[0] for row in section.values["rows"]] == [f"c{k}" for k in range(1, SHOWN + 1)]
    assert section.data["classes"]["rows"][-1][:3] == ["unseen", 100, None]
    assert len(section.data["classes"]["rows"]) == 100
    few = classes_section(one())
    assert few.data == {}
    several = classes_section(models_of([made_up("a"), made_up("b")]))
    assert several.values["rows"][0] == ["dog", 100, 0.75, 0.75]


def test_groups_and_mistakes():
    assert groups_section(one()) is None
    row = {"images": 10, "ece": number(0.1), "nll": number(0.5), "signed_error": 0.1}
    shown = groups_section(
        one(groups=[{"name": "a", "accuracy": number(0.9), **row}, {"name": "b", "accuracy": number(0.5), **row}])
    )
    assert [each["name"] for each in shown.values["rows"]] == ["b", "a"]
    first = mistakes_section(one()).values["shown"][0]["rows"][0]
    assert (first["label"], first["answer"], first["confidence"]) == ("cat", "dog", 0.97)


def test_how_to_make_it_again():
    row = provenance_section(one()).values["rows"][0]
    assert row["command"] == "surefoot audit RUN --data digits --depth standard --split test --seed 0"
    assert row["facts"]["data"] == "name: digits, seed: 0"
    assert row["facts"]["notes"] == "A note on the data."
    assert row["facts"]["corruptions"] == "500 images, generated with seed 0"
    audit = made_up()
    audit["subject"]["data"] = {}
    assert provenance_section(models_of([audit])).values["rows"][0]["facts"]["data"] == "given in Python"
    del audit["subject"]["depth"]
    assert provenance_section(models_of([audit])).values["rows"][0]["facts"]["data"] == "given as predictions"
    audit = made_up()
    audit["subject"] |= {"command": "surefoot audit runs/a b", "recipe": {"seed": 3}}
    row = provenance_section(models_of([audit])).values["rows"][0]
    assert (row["command"], row["recipe"]) == ("surefoot audit runs/a b", '{\n "seed": 3\n}')


def test_thresholds_are_written_as_they_hold():
    row = {"wanted_risk": 0.01, "thresholds": [0.9987, 1.1], "coverage": number(0.4), "risk": number(0.01)}
    section = thresholds_section(models_of([made_up(thresholds=[row])]))
    assert section.values["rows"][0]["bounds"] == ["0.9987", "none"]


def test_order_of_the_parts():
    names = [section.name for section in sections_of(one())]
    assert names == [
        *("classes", "mistakes", "reliability", "thresholds", "corruptions", "attacks"),
        *("scores", "geometry", "provenance"),
    ]


def test_made_up_grid_is_sane():
    found = grid()
    assert found["ece"][10] == pytest.approx(
        sum(abs(s - c) for s, c in zip(found["confidences"][10], found["correct"][10], strict=True)) / 1000
    )
    assert found["values"][10] == 1.0


OWN = "pkg.mod:<Name>"


def test_measurements_of_ones_own_are_rows():
    audit = made_up("a") | {"measurements": {OWN: {"changed": number(0.25), "deep": {"er": 3}, "none": None}}}
    section = measurements_section(models_of([audit]))
    assert [(row["label"], row["number"], row["value"]) for row in section.values["rows"]] == [
        (OWN, "changed", 0.25),
        (OWN, "deep.er", 3),
        (OWN, "none", None),
    ]
    assert (section.values["rows"][0]["low"], section.values["rows"][1]["low"]) == (0.24, None)
    assert measurements_section(one()) is None
    assert measurements_section(models_of([made_up() | {"measurements": {}}])) is None


def test_measurements_of_ones_own_side_by_side():
    """A measurement after the other, the models of each below one another; one that only one has is a row of its own."""
    audits = [
        made_up("a") | {"measurements": {OWN: {"changed": number(0.25)}}},
        made_up("b") | {"measurements": {"other": {"x": 1.5}, OWN: {"changed": number(0.5)}}},
        made_up("c"),
    ]
    rows = measurements_section(models_of(audits)).values["rows"]
    assert [(row["label"], row["model"], row["value"]) for row in rows] == [
        (OWN, "a", 0.25),
        (OWN, "b", 0.5),
        ("other", "b", 1.5),
    ]
    page = render_page(audits)
    assert page.count("Your measurements") >= 1
    escaped = "pkg.mod:&lt;Name&gt;"
    assert f'<td>{escaped}</td><td class="text">b</td><td class="text">changed</td><td>0.5</td><td>0.49 to 0.51</td>' in page
    assert '<td class="text">x</td><td>1.5</td><td>\N{EN DASH}</td>' in page
    assert "pkg.mod:<Name>" not in page
    assert "Your measurements" not in render_page([made_up()])


def test_an_audit_without_corruptions_has_a_page():
    page = render_page([made_up() | {"corruptions": None}])
    assert "worst family" not in page
