"""A cell is named by what it is: not by where its data are, who asks for it, or what the defaults are written as."""

import pytest
from tiny import cells

from surefoot.errors import SurefootError
from surefoot.measurements.registry import check_measure
from surefoot.studies.cells import cells_of, identity, measure_digest, only
from surefoot.studies.study_files import read_study


def test_grid_is_every_combination(tmp_path):
    found = cells(tmp_path, fractions=[0.5, 1.0], seeds=2, seeds_of={"focal": 1})
    assert len(found) == 2 * 2 + 2 * 1
    assert len({cell.name for cell in found}) == 6
    half = next(cell for cell in found if cell.labels["fraction"] == 0.5)
    assert half.recipe.data["fraction"] == pytest.approx(0.1)  # of the fifth that the data section asks for


def test_name_depends_on_the_recipe_alone(tmp_path):
    name = cells(tmp_path)[0].name
    assert cells(tmp_path, title="Another", measure={"logits": {}})[0].name == name
    assert cells(tmp_path, methods={"cross-entropy": {"name": "cross-entropy", "class_weights": None}})[0].name == name
    assert cells(tmp_path, training={"epochs": 1, "batch_size": 64, "momentum": 0.9})[0].name == name
    others = [
        cells(tmp_path, training={"epochs": 2, "batch_size": 64})[0].name,
        cells(tmp_path, models={"tiny-resnet": {"name": "tiny-resnet", "bias": False}})[0].name,
        cells(tmp_path, data={"digits": {"name": "digits", "fraction": 0.3, "max_images": 60}})[0].name,
        cells(tmp_path, augmentation={"flip": True})[0].name,
        cells(tmp_path)[1].name,
        cells(tmp_path, seeds=2)[2].name,
    ]
    assert len({name, *others}) == 7


def test_held_out_shares_are_in_the_name_only_where_they_are_given(tmp_path):
    data = {"name": "digits", "fraction": 0.2, "max_images": 60}
    plain, same, other = (
        cells(tmp_path, data={"digits": {**data, **shares}})[0]
        for shares in ({}, {"calibration": None, "validation": None}, {"calibration": 0, "validation": 0})
    )
    assert plain.name == same.name != other.name


def test_later_options_of_the_augmentation_are_in_the_name_only_where_they_are_used(tmp_path):
    plain, said, other = (
        cells(tmp_path, augmentation=given, models={"small-resnet": "small-resnet"})[0]
        for given in ({"flip": True}, {"flip": True, "resized_crop": 0}, {"flip": True, "resized_crop": 0.08})
    )
    assert plain.name == said.name == "ecc90fc61f3c7208"  # as it was before there were any
    assert plain.name != other.name


def test_name_does_not_depend_on_the_folder_of_the_data(tmp_path):
    study = read_study("macs-table1", "cpu")
    here, there = cells_of(study, tmp_path / "a"), cells_of(study, "/elsewhere")
    assert [cell.name for cell in here] == [cell.name for cell in there] == [cell.name for cell in cells_of(study)]
    assert here[0].recipe.data["root"] == str(tmp_path / "a")


def test_measurement_is_named_by_recipe_and_options(tmp_path):
    plain = cells(tmp_path)[0]
    same = cells(tmp_path, measure={"clean": {"bins": 15}})[0]
    other = cells(tmp_path, measure={"clean": {"bins": 10}})[0]
    called = cells(tmp_path, measure={"mine": {"measurement": "clean"}})[0]
    assert plain.measure_name("clean") == same.measure_name("clean") == called.measure_name("mine")
    assert plain.measure_name("clean") != other.measure_name("clean")
    assert plain.measure_name("clean") != cells(tmp_path)[1].measure_name("clean")


def test_only(tmp_path):
    found = cells(tmp_path, seeds=2)
    assert [c.labels["method"] for c in only(found, {"objective": ["ce"]})] == ["cross-entropy"] * 2
    assert len(only(found, {"method": ["focal"], "seed": ["1"]})) == 1
    with pytest.raises(SurefootError, match="Unknown method 'fokal'. Did you mean 'focal'?"):
        only(found, {"method": ["fokal"]})
    with pytest.raises(SurefootError, match="Unknown axis 'sead'. Did you mean 'seed'?"):
        only(found, {"sead": ["1"]})


def test_options_for_every_method_of_an_objective(tmp_path):
    methods = {"a": {"name": "magnma", "mix_weight": 0}, "b": "magnma", "c": "focal"}
    found = cells(tmp_path, methods=methods, baseline=None, objective_options={"magnma": {"samples": 1}})
    assert [cell.recipe.objective.get("samples") for cell in found] == [1, 1, None]
    assert [cell.recipe.objective.get("mix_weight") for cell in found] == [0, 0.3, None]


def test_what_a_method_says_itself_is_not_changed(tmp_path):
    """Else two points of a search over an option that a scale sets would be the same."""
    methods = {"a": {"name": "magnma", "samples": 3}, "b": "magnma"}
    found = cells(tmp_path, methods=methods, baseline=None, objective_options={"magnma": {"samples": 1}})
    assert [cell.recipe.objective["samples"] for cell in found] == [3, 1]


DIGESTS = [  # as the first version with stored results had them; it must find them
    ("clean", {}, "f873156ea9bc47a1"),
    ("clean", {"bins": 10}, "57de4b0d15cd8c04"),
    ("temperature", {}, "29654b715740b169"),
    ("temperature", {"bins": 10}, "d1a517d08affa678"),
    ("validation", {}, "cce0459a4a16011b"),
    ("validation", {"bins": 10}, "c35d9b946de30e96"),
    ("logits", {}, "d4c435977d7ecbfa"),
    ("feature-scaling", {}, "5324b201ccc5eee6"),
    ("feature-scaling", {"bins": 10}, "97306e4b7cb1701c"),
    ("corruptions", {}, "b59df7f34ef2aa09"),
    (
        "corruptions",
        {"names": ["fog", "frost"], "severities": [1, 3], "max_images": 100, "bins": 10, "each": True},
        "bb5e57a9bdb47a8c",
    ),
    ("corruptions", {"generator": 1}, "3601ac2a0781f867"),
    ("noise", {}, "1cbe2e9ee369931b"),
    ("noise", {"levels": [1, 5], "distribution": "uniform", "draws": 3, "max_images": 100}, "91ef5d6640ce6878"),
    ("occlusions", {}, "7de551cf992ca064"),
    ("occlusions", {"noise": 20, "severity": 2, "draws": 3, "max_images": 100}, "453503a029df9b63"),
    ("attacks", {}, "8be7a55ed768383b"),
    ("attacks", {"names": ["fgsm"], "max_images": 100}, "f7d5013ae213f258"),
    ("attacks", {"generator": 1}, "9cf107e0136b65a9"),
    ("transfer", {"surrogates": {"a": {"seed": 1}}}, "99643429e82d43e1"),
    ("transfer", {"surrogates": {"a": {}}, "names": ["fgsm"], "max_images": 100}, "310aafd21e2a8db7"),
    ("transfer", {"surrogates": {"a": {}}, "generator": 1}, "6c52ac16aee089df"),
    ("cosine-attacks", {}, "8821c380bacf2743"),
    ("cosine-attacks", {"names": ["fgsm"], "max_images": 100}, "2130f36d979417ab"),
    ("cosine-attacks", {"generator": 1}, "122f91aa58be158b"),
    ("cost", {}, "4c4d6e3b734f1ad7"),
    ("cost", {"steps": 3, "batch_size": 16}, "4bb980e3eb3ca690"),
    ("probe", {}, "3209805cd22360a9"),
    ("probe", {"data": "cifar100", "max_images": 100}, "a5ad12a445e99dc3"),
    ("sensitivity", {}, "dd8d0358ea7ace26"),
    ("sensitivity", {"std": 0.2, "draws": 3, "max_images": 100}, "d2733a9aef0a332f"),
    ("curvature", {}, "3c008bc40f348d21"),
    ("curvature", {"draws": 3, "step": 0.02, "max_images": 100}, "403e329284cfdbef"),
    ("curvature-noise", {}, "6391318122960119"),
    (
        "curvature-noise",
        {"level": 0.1, "distribution": "uniform", "draws": 3, "curvature_draws": 4, "max_images": 100},
        "148955675ee47a2e",
    ),
    ("loss-surface", {}, "61d58171c9b5b81b"),
    ("loss-surface", {"reach": 0.5, "points": 5, "max_images": 10}, "80c28aadac8519aa"),
    ("features", {}, "6bb043438dd7def6"),
    ("features", {"max_images": 100, "attacked": 50}, "d018eb7a8da5f84e"),
    ("centres", {}, "c89f5eb06d396b2a"),
    ("centres", {"max_images": 100}, "5eb68c6ca785e4dc"),
    ("centre-stability", {}, "f47ab20a762759ea"),
    (
        "centre-stability",
        {"learning_rates": [0.1], "steps": [10], "schedules": ["constant"], "max_images": 100},
        "680c1e65dcde9ecb",
    ),
    ("cone", {}, "88c78dc26916d7ad"),
    ("cone", {"max_images": 100}, "445451ead975e8f3"),
    ("plane-start", {}, "1403439e8e1ef50b"),
    ("plane-start", {"features": True, "regions": True, "epochs": 2, "max_images": 100}, "57a616c0e4b4d501"),
    ("bias", {}, "83fad28894770f3c"),
    ("bias", {"max_images": 100}, "4e8c6c98163c7a36"),
]


@pytest.mark.parametrize(("name", "options", "stored"), DIGESTS)
def test_names_of_stored_measurements_stay(name, options, stored):
    assert measure_digest("0123456789abcdef", check_measure(name, options)) == stored


OF_THE_EXACT_INDEX = {"cone": "5cb14002da500d60", "plane-start": "ae2ab247a1e4c0fa"}


@pytest.mark.parametrize(("name", "stored"), OF_THE_EXACT_INDEX.items())
@pytest.mark.parametrize("version", [1, 2])
def test_the_exact_index_is_not_taken_for_that_of_the_steps(name, stored, version):
    """Results from before there was a version have neither name."""
    assert measure_digest("0123456789abcdef", check_measure(name, {"version": version})) != stored


def test_a_default_that_has_changed_is_not_taken_for_the_first(tmp_path):
    """Cells of macs-augmix were trained with batch norm apart, when that was the default: that name is theirs."""
    methods = {"first": {"name": "macs-augmix", "batch_norm": "apart"}, "now": "macs-augmix"}
    first, now = cells(tmp_path, methods=methods, baseline=None)
    assert identity(first.recipe, "digits")["objective"] == {"name": "macs-augmix"}
    assert identity(now.recipe, "digits")["objective"] == {"name": "macs-augmix", "batch_norm": "together"}
    assert first.name != now.name
