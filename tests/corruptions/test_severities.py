import json
from pathlib import Path

import pytest

from surefoot.corruptions import NAMES, PAPERS4
from surefoot.corruptions.severities import between, constants, scale_for, tables

PARTS = {  # how the published list joins constants
    "sigma_delta_rounds": ["sigma", "delta", "rounds"],
    "radius_alias": ["radius", "alias"],
    "radius_sigma": ["radius", "sigma"],
    "stop_step": ["stop", "step"],
    "amount_decay": ["amount", "decay"],
    "image_frost_weights": ["image_weight", "frost_weight"],
    "mean_std_zoom_threshold_radius_sigma_keep": ["mean", "std", "zoom", "threshold", "radius", "sigma", "keep"],
    "mean_std_sigma_threshold_strength_mud": ["mean", "std", "sigma", "threshold", "strength", "mud"],
    "scale_shift": ["scale", "shift"],
    "side_fractions_alpha_sigma_affine": ["alpha", "sigma", "affine"],
}


def test_tables_are_whole():
    assert set(tables()) == {"32", "64", "224", "papers"}
    for scale in ("32", "64", "224"):
        assert set(tables()[scale]) == set(NAMES)
    assert set(tables()["papers"]) == set(PAPERS4)
    assert all(len(five) == 5 for table in tables().values() for entry in table.values() for five in entry.values())


@pytest.mark.parametrize(
    ("scale", "name", "constant", "five"),
    [
        ("32", "gaussian_noise", "std", [0.04, 0.06, 0.08, 0.09, 0.10]),
        ("64", "shot_noise", "photons", [250, 100, 50, 30, 15]),
        ("224", "impulse_noise", "fraction", [0.03, 0.06, 0.09, 0.17, 0.27]),
        ("224", "glass_blur", "delta", [1, 2, 2, 3, 4]),
        ("32", "snow", "keep", [0.95, 0.9, 0.9, 0.85, 0.8]),
        ("64", "jpeg_compression", "quality", [65, 58, 50, 40, 25]),
        ("224", "elastic_transform", "stretch", [pytest.approx(244 / 224)] * 5),
    ],
)
def test_published_values(scale, name, constant, five):
    assert [constants(name, severity, scale)[constant] for severity in (1, 2, 3, 4, 5)] == five


def test_every_constant_is_the_published_one():
    """The whole list, where the reference lies beside the repo."""
    reference = Path(__file__).parents[3] / "shared" / "reference" / "severities.json"
    if not reference.is_file():
        pytest.skip("no reference of severities beside the repo")
    published = json.loads(reference.read_text())
    for scale in ("32", "64", "224"):
        for name, entry in published[scale].items():
            ours = tables()[scale][name]
            for key, values in entry.items():
                for place, part in enumerate(PARTS.get(key, [key] if isinstance(values, list) else [])):
                    assert ours[part] == [row[place] if key in PARTS else row for row in values], (scale, name, part)


def test_between_whole_severities():
    assert constants("gaussian_noise", 2.5, "32")["std"] == pytest.approx(0.07)
    assert constants("jpeg_compression", 1.5, "32")["quality"] in (72, 73)
    assert constants("glass_blur", 3.4, "32")["rounds"] == 1
    assert constants("glass_blur", 3.6, "32")["rounds"] == 2
    water, last_water, mud = (constants("spatter", severity, "224") for severity in (3, 3.9, 4))
    assert last_water == water
    assert (water["mud"], mud["mud"]) == (0, 1)
    assert between({"x": [1, 2, 3, 4, 5]}, 4.25) == {"x": 4.25}


def test_the_table_follows_the_shorter_side():
    sides = {(48, 500): "32", (49, 64): "64", (144, 145): "64", (145, 145): "224", (8, 8): "32"}
    assert {size: scale_for(*size) for size in sides} == sides
