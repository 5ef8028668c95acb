"""The studies that come with the package: every one is valid at every scale, and covers the papers."""

from functools import cache

import pytest
import timm
import torchvision

from surefoot.data.arguments import DATASETS
from surefoot.errors import SurefootError
from surefoot.measurements.registry import check_measure
from surefoot.models.builders import MODELS
from surefoot.studies import study_files
from surefoot.studies.cells import cells_of, needs_root, only
from surefoot.studies.layout import as_pair
from surefoot.studies.papers import FAMILIES, NOT_COMPUTED, find_figure, places_of
from surefoot.studies.schema import AXES
from surefoot.studies.settings import in_brackets
from surefoot.studies.study_files import SCALES, study_names
from surefoot.studies.table_formats import is_beyond, published_apart
from surefoot.training.recipes import Recipe

TABLES = {"macs": 11, "discriminative-noise": 5, "magnma": 5, "representation-space": 10}
FIGURES = {"macs": 6, "discriminative-noise": 13, "magnma": 8, "representation-space": 25}
COMPUTED = {
    "macs": [1, 3, 4, 5, 6],
    "discriminative-noise": [1, *range(8, 14)],
    "magnma": [2, 3, 5, 6, 7, 8],
    "representation-space": [*range(1, 8), *range(9, 26)],
}

read_study = cache(study_files.read_study)


@cache
def grid_of(name, scale):
    return cells_of(read_study(name, scale))


@pytest.mark.parametrize("paper", TABLES)
def test_every_table_and_figure_of_the_papers_is_there(paper):
    """In order, each with its studies; a figure that is not computed has a reason, and one that is, is drawn by its study."""
    places = places_of()[paper]
    numbered = [*(f"Table {n}" for n in range(1, TABLES[paper] + 1)), *(f"Figure {n}" for n in range(1, FIGURES[paper] + 1))]
    assert list(places) == numbered
    without = {place for place, names in places.items() if not names}
    computed = {f"Figure {number}" for number in COMPUTED[paper]}
    assert without == {place for place in numbered if place.startswith("Figure")} - computed == set(NOT_COMPUTED[paper])
    assert all(NOT_COMPUTED[paper].values())
    for place in computed:
        study, found = find_figure(f"{FAMILIES[paper]}-{place.lower().replace(' ', '')}")
        assert (study in places[place], found) == (True, place)


def test_every_study_has_its_place():
    """A table or a figure of a paper, a section, or none for the comparison of all methods."""
    listed = {name for places in places_of().values() for names in places.values() for name in names}
    assert set(study_names()) - listed == {"main", "hyperparameters", "robust-net"}


def test_figures_by_name():
    assert find_figure("macs-figure4") == ("macs-table3", "Figure 4")
    assert find_figure("discriminative-figure8") == ("discriminative-figure8", "Figure 8")
    assert find_figure("discriminative-figure8-svhn") == ("discriminative-figure8-svhn", None)
    assert find_figure("macs-table1") == ("macs-table1", None)
    with pytest.raises(SurefootError, match=r"Figure 2 of macs is not computed: it is a diagram"):
        find_figure("macs-figure2")
    with pytest.raises(SurefootError, match="Unknown figure 'macs-figure7'. Did you mean 'macs-figure"):
        find_figure("macs-figure7")
    with pytest.raises(SurefootError, match="Unknown study 'mac-figure4'"):
        find_figure("mac-figure4")


def test_wins_at_the_native_size():
    """The three data sets of 32 px, with the nets of the other study left as they are."""
    native, enlarged = (read_study(name, "full") for name in ("macs-wins-32px", "macs-wins"))
    assert set(native.data) == {"cifar10", "cifar100", "svhn"}
    assert native.models == {label: {**section, "stem": "imagenet"} for label, section in enlarged.models.items()}


THEIRS = {*timm.list_models(), *(f"torchvision/{name}" for name in torchvision.models.list_models())}


def exists(name):
    return name in MODELS or name in THEIRS


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", study_names())
def test_study_is_valid(name, scale):
    study, cells = read_study(name, scale), grid_of(name, scale)
    assert len({cell.name for cell in cells}) == len(cells)  # no two places of a grid are the same recipe
    for cell in cells:
        assert exists(cell.recipe.model["name"])
        folder = cell.recipe.data["name"] not in DATASETS
        assert folder == needs_root(study) or len(study.data) > 1
    sections = {name: value for name, value in vars(cells[0].recipe).items() if name != "file"}
    assert Recipe.check(sections) == cells[0].recipe  # the others were checked as they were made
    if scale == "smoke":
        assert {cell.recipe.data["name"] for cell in cells} == {"digits"}
        assert len(cells) <= 24
    if scale == "cpu":
        assert {cell.labels["data"] for cell in cells} == {"digits-8px" if name == "robust-net" else "cifar10-jpeg"}
        assert {cell.recipe.model["name"] for cell in cells} == {"small-resnet"}
    assert study.same_setting <= (scale == "full")
    for label, options in study.measure.items():
        check_measure(label, options)
    papers = places_of().get(study.paper or "", {})
    assert all(name in papers[place] for place in study.figures)


def test_published_figures_stand_where_ours_will():
    """Labels of the paper's rows are those of the grid, their columns are measured, and percentages are percentages."""
    studies = {name: read_study(name, "full") for name in study_names()}
    assert sum(bool(study.published) for study in studies.values()) > 20
    for name, study in studies.items():
        beyond = [row for row in study.published if is_beyond(study, row)]
        assert [row["model"] for row in beyond] == (["alexnet"] if name == "representation-table3" else []), name
        for row in study.published:
            figures = {column: as_pair(value)[0] for column, value in row.items() if column not in AXES}
            assert figures, name
            for column, mean in figures.items():
                assert column.split(".")[0] in study.measure, (name, column)
                if ".accuracy" in column or ".success" in column:
                    assert 1 < mean <= 100, (name, column)


def test_figures_copied_from_the_papers():
    """Some cells of the papers, looked up by hand."""

    def figure(name, column, **labels):
        rows = read_study(name, "full").published
        return next(as_pair(row[column]) for row in rows if labels.items() <= row.items())

    assert figure("macs-table1", "clean.accuracy", data="cifar100", method="macs") == (69.23, 0.98)
    assert figure("macs-table5", "corruptions.accuracy", data="cifar10", model="resnet50", method="macs-augmix") == (48.4, 0.2)
    assert figure("magnma-table1", "corruptions.rms_pooled", data="cifar10", model="densenet121", method="magnma") == (
        1.33,
        0.11,
    )
    assert figure("magnma-table3", "corruptions.accuracy.frost", method="trades") == (76.23, 1.37)
    assert figure("magnma-table5", "clean.rms", method="(0.2, 5.0, 0.2, 1)") == (2.2, 0.73)
    assert figure("discriminative-table1", "noise.accuracy.16", method="stability") == (89.12, 0.15)
    assert figure("representation-table3", "corruptions.mce", model="swin-tiny", method="mixup") == (69.7, None)
    assert figure("representation-table3", "corruptions.ce.jpeg_compression", model="resnet50", method="cutmix") == (75.5, None)
    assert figure("representation-table9", "stability.pearson.cosine rate 0.01 steps 100") == (0.5412, None)
    surrogate = "transfer.success.convnext-baseline"
    assert figure("representation-table4", f"{surrogate}.pgd-strong", model="swin-tiny", method="mixup") == (24.2, None)
    assert figure("representation-table4", f"{surrogate}.autoattack-strong", model="resnet50", method="label-smoothing") == (
        18.1,
        None,
    )
    assert figure("representation-table2", "attacks.success.pgd-weak", model="swin-tiny", method="mixup") == (80.9, None)


def test_rows_of_the_papers_that_are_no_cell_of_a_grid():
    """Averages over models, the no-overlap rows of Table 7, deviations over images and classes, AlexNet, the sign of ECE."""
    rows = {name: read_study(name, "full").published for name in (*MACS, *REPRESENTATION)}
    average = {row["method"]: row["cost.relative"] for row in rows["macs-table9"] if row["model"] == "average"}
    assert average == {"focal": 1.03, "label-smoothing": 1.02, "mixup": 1.04, "macs": 1.96, "augmix": 2.97}
    for method, mean in average.items():  # which is what the paper's rows give, to their digits
        own = [row["cost.relative"] for row in rows["macs-table9"] if row["method"] == method and row["model"] != "average"]
        assert len(own) == 6
        assert sum(own) / 6 == pytest.approx(mean, abs=0.011)
    sums = {row["method"]: row for row in rows["macs-table7"]}
    kept = [sums[method].get("corruptions.accuracy.no_overlap") for method in ("cross-entropy", "augmix", "macs")]
    assert kept == [49.9, None, 51.0]
    assert [sums[method]["corruptions.accuracy"] for method in sums] == [42.4, 44.1, 43.1, 45.4]
    assert all("cone.index_deviation" in row for row in rows["representation-table5"])
    for name in ("representation-table6", "representation-table7"):
        assert all({"bias.size_deviation", "bias.changed_deviation"} <= row.keys() for row in rows[name])
    assert "clean.signed_error" in read_study("representation-table8", "full").table.columns
    apart = published_apart(read_study("representation-table3", "full"))
    assert next(row for row in apart["rows"] if row[0] == "alexnet")[2:5] == ["62.70", "100.0", "100.0"]
    assert "42" in read_study("macs-wins", "full").note
    assert len(read_study("macs-wins", "full").models) * len(read_study("macs-wins", "full").data) == 42


def test_mean_gains_of_magnma():
    """The text's 13.0 and 16.9 are the means over the nets of its Table 2."""
    rows = read_study("magnma-table2", "full").published
    for data, gain in (("cifar10", 13.0), ("cifar100", 16.9)):
        by_method = {
            method: [row["corruptions.accuracy"][0] for row in rows if (row["data"], row["method"]) == (data, method)]
            for method in ("cross-entropy", "magnma")
        }
        gains = [after - before for before, after in zip(*by_method.values(), strict=True)]
        assert len(gains) == 3
        assert sum(gains) / 3 == pytest.approx(gain, abs=0.06)


MACS = ("macs-table7", "macs-table9")
REPRESENTATION = ("representation-table5", "representation-table6", "representation-table7")


def test_settings_of_the_papers():
    """What their training sections say, where a table departs from the others of its paper."""

    def training(name, **labels):
        wanted = {axis: [label] for axis, label in labels.items()}
        return only(grid_of(name, "full"), wanted)[0].recipe.training

    swin = {
        data: training("representation-table5", model="swin-tiny", data=data) for data in ("cifar10", "cifar100", "imagenet")
    }
    assert [each["learning_rate"] for each in swin.values()] == [0.01, 0.01, 0.001]  # G.2: higher on CIFAR only
    assert training("representation-table5", model="resnet50", data="cifar10")["learning_rate"] == 0.001
    magnma = training("magnma-table2", model="resnet18")
    assert (magnma["epochs"], magnma["learning_rate"], magnma["decay_epochs"], magnma["keep"]) == (150, 0.1, 50, "best")
    road = training("discriminative-table3", method="discriminative")
    assert (road["epochs"], road["optimiser"], road["learning_rate"], road["keep"]) == (70, "adam", 1e-4, "best")


DISCRIMINATIVE = [name for name in study_names() if name.startswith("discriminative")]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", DISCRIMINATIVE)
def test_the_discriminative_loss_is_as_the_text_and_as_the_authors_have_it(name, scale):
    """Both with the noise of their data, and alike but for what the code changes."""
    cells = {cell.labels["method"]: cell.recipe for cell in grid_of(name, scale) if cell.seed == 0}
    if name == "discriminative-table5":  # without noise
        text, authors = (cells[method].build_objective() for method in ("both", "both, authors"))
        assert (authors.momentum, authors.regularised, authors.noise_weight) == (0.99, "momentum", 0)
        assert (text.compact_weight, text.margin_weight) == (authors.compact_weight, authors.margin_weight) == (1, 1)
        return
    text, authors = (cells[method].build_objective() for method in ("discriminative", "discriminative-authors"))
    assert (text.variant, text.compact_weight, text.momentum, text.clip) == ("text", 1, 0.9, False)
    assert (authors.variant, authors.compact_weight, authors.noise_weight) == ("authors", 0.5, 0.5)
    assert (authors.momentum, authors.regularised, authors.clip, authors.second_augmentation) == (0.99, "momentum", True, True)
    assert (text.noise_std, text.distance) == (authors.noise_std, authors.distance)
    svhn = name in ("discriminative-table2", "discriminative-figure11") or name.endswith("svhn")
    road = name in ("discriminative-table3", "discriminative-table4")
    assert text.noise_std == pytest.approx(0.15 if svhn else 40 / 255 if road else 0.06)
    if "clean-and-noisy" in cells:
        theirs = cells["clean-and-noisy-authors"].build_objective()
        assert (theirs.batch_norm, theirs.perturb.clip) == ("together", True)
        assert theirs.perturb.std == pytest.approx(text.noise_std)


@pytest.mark.parametrize("number", [8, 9, 10, 11])
def test_figures_of_curvature_are_also_of_svhn(number):
    """At the level of noise of each data set (discriminative-noise Fig. 8 to 11); Fig. 11 of SVHN first."""
    first, second = (f"discriminative-figure{number}", f"discriminative-figure{number}-{'cifar10' if number == 11 else 'svhn'}")
    one, other = (read_study(name, "full") for name in (first, second))
    assert [*one.data, *other.data] == (["svhn", "cifar10"] if number == 11 else ["cifar10", "svhn"])
    assert one.table == other.table
    assert (one.place, other.place) == (f"Figure {number}", f"Figure {number}")
    if number < 10:
        assert [each.measure["gaussian"]["level"] for each in (one, other)] == [0.06, 0.15]


@pytest.mark.parametrize("name", ["discriminative-table3", "discriminative-table4"])
def test_adam_has_no_weight_decay_in_the_road_tables(name):
    training = grid_of(name, "full")[0].recipe.training
    assert (training["optimiser"], training["weight_decay"]) == ("adam", 0)


def test_table_4_has_deviations_over_draws_and_noise_first():
    columns = list(read_study("discriminative-table4", "full").table.columns)
    for kind in ("occlusion", "occlusion+noise", "noise+occlusion", "down_up+occlusion", "stripes", "down_up+stripes"):
        where = columns.index(f"occlusions.accuracy.{kind}")
        assert columns[where + 1] == f"occlusions.draws.{kind}"


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("number", range(1, 6))
def test_magnmas_corrupted_error_is_the_pooled_one(number, scale):
    """With the mean and bins of 100 images beside it; all its tables measure the same, so that they share their results."""
    study = read_study(f"magnma-table{number}", scale)
    assert study.measure["clean"]["images_per_bin"] == study.measure["corruptions"]["images_per_bin"] == 100
    columns = list(study.table.columns)
    if "clean.rms" in columns:
        where = columns.index("clean.rms")
        assert columns[where + 1 : where + 3] == ["corruptions.rms_pooled", "corruptions.rms"]
        assert columns[where + 3 :] == ["clean.adaptive_rms", "corruptions.adaptive_rms_pooled", "corruptions.adaptive_rms"]
        assert not any("corruptions.rms" in row for row in study.published)
    assert ("clean.rms" in columns) == (number in (1, 5))


PLANES = {f"representation-figure{number}" for number in (1, 4, 9, 10, 11, 12)}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", study_names())
def test_spaces_of_two_dimensions_are_linear(name, scale):
    """No ReLU before the plane, momentum without Nesterov (representation-space G.1, H); the other paper keeps its ReLU."""
    for cell in grid_of(name, scale):
        dimensions = cell.recipe.model["feature_dim"]
        if name in PLANES:
            assert dimensions in (2, 3)
            assert (cell.recipe.model["rectified"], cell.recipe.training["nesterov"]) == (False, False)
            assert (cell.recipe.training["optimiser"], cell.recipe.training["momentum"]) == ("sgd", 0.9)
        else:
            assert dimensions in (None, 128)
            assert cell.recipe.model["rectified"]


def test_figures_of_the_papers_stand_in_brackets_only_where_all_images_were_trained_on():
    """Where training images are held out they stand apart; so do figures on corrupted pictures unless copies are read."""
    same = [name for name in study_names() if read_study(name, "full").same_setting]
    assert len(same) > 5
    for name in same:
        study, grid = read_study(name, "full"), grid_of(name, "full")
        held_out = any((cell.recipe.data["calibration"], cell.recipe.data["validation"]) != (0, 0) for cell in grid)
        figures = dict.fromkeys(column for row in study.published for column in row if column not in AXES)
        beside = [column for column in figures if in_brackets(study, column)]
        assert not (study.trained and held_out and beside), name
        assert not any(column.startswith("corruptions.") for column in beside), name
        assert ("of our training images is held out" in (study.differs or "")) <= (study.trained and held_out), name


def test_tables_of_macs_with_other_units_or_nets_have_no_brackets():
    for name in ("macs-table9", "macs-table10"):
        study = read_study(name, "full")
        assert study.published
        assert not study.same_setting
    study = read_study("macs-table1", "full")
    assert (in_brackets(study, "clean.accuracy"), in_brackets(study, "corruptions.accuracy")) == (True, False)
    read = study.model_copy(update={"measure": {**study.measure, "corruptions": {"origin": "CIFAR-10-C (0)"}}})
    assert in_brackets(read, "corruptions.accuracy")


def test_main_is_the_comparison_that_was_asked_for():
    study, cells = read_study("main", "cpu"), grid_of("main", "cpu")
    seeds = {method: sum(cell.labels["method"] == method for cell in cells) for method in study.methods}
    often = {"cross-entropy", "label-smoothing", "mixup", "augmix", "macs", "surefoot", "macs-stride-4", "macs-stride-8"}
    once = {"adversarial", "trades", "rse"}
    assert seeds == {method: 5 if method in often else 1 if method in once else 3 for method in study.methods}
    assert len(study.methods) == 24
    assert all(cell.recipe.training["epochs"] == 20 and cell.recipe.data["fraction"] == 0.25 for cell in cells)
    assert study.measure["corruptions"]["max_images"] == 2000


def test_tables_share_their_baseline():
    names = ("main", "macs-table1", "macs-table8", "magnma-table2", "discriminative-table1", "representation-table3")
    for scale in ("smoke", "cpu"):
        baselines = []
        for name in names:
            cells = grid_of(name, scale)
            whole = [c for c in cells if c.labels["method"] == "cross-entropy" and c.seed == 0 and c.labels["fraction"] == 1]
            baselines += [cell.name for cell in whole]
        assert len(set(baselines)) == 1
