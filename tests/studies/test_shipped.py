"""The studies that come with the package: every one is valid at every scale, and covers the papers."""

import pytest
import timm
import torchvision

from surefoot.data.loading import DATASETS
from surefoot.measurements.registry import check_measure
from surefoot.models.building import MODELS
from surefoot.studies.cells import cells_of, needs_root, only
from surefoot.studies.layout import as_pair
from surefoot.studies.reading import SCALES, read_study, study_names
from surefoot.studies.schema import AXES
from surefoot.studies.setting import in_brackets
from surefoot.training.recipes import Recipe

PAPERS = {
    "macs-table": range(1, 12),
    "discriminative-table": range(1, 6),
    "discriminative-figure": range(8, 12),
    "magnma-table": range(1, 6),
    "representation-table": range(1, 11),
}
OTHERS = ["main", "hyperparameters", "macs-wins", *(f"representation-figure{number}" for number in (3, 4, 7, 12, 25))]


def test_every_table_of_the_papers_is_there():
    wanted = {f"{words}{number}" for words, numbers in PAPERS.items() for number in numbers} | set(OTHERS)
    assert set(study_names()) == wanted


THEIRS = {*timm.list_models(), *(f"torchvision/{name}" for name in torchvision.models.list_models())}


def exists(name):
    return name in MODELS or name in THEIRS


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", study_names())
def test_study_is_valid(name, scale):
    study = read_study(name, scale)
    cells = cells_of(study)
    assert len({cell.name for cell in cells}) == len(cells)  # no two places of a grid are the same recipe
    for cell in cells:
        assert exists(cell.recipe.model["name"])
        folder = cell.recipe.data["name"] not in DATASETS
        assert folder == needs_root(study) or len(study.data) > 1
    sections = {name: value for name, value in vars(cells[0].recipe).items() if name != "file"}
    assert Recipe.check(sections) == cells[0].recipe  # the others were checked as they were made
    if scale == "smoke":
        assert {cell.recipe.data["name"] for cell in cells} == {"digits"}
        assert len(cells) <= 21
    if scale == "cpu":
        assert {cell.labels["data"] for cell in cells} == {"cifar10-jpeg"}
        assert {cell.recipe.model["name"] for cell in cells} == {"small-resnet"}
    assert study.same_setting <= (scale == "full")
    for label, options in study.measure.items():
        check_measure(label, options)


@pytest.mark.parametrize("name", [name for name in study_names() if read_study(name, "full").published])
def test_published_figures_stand_where_ours_will(name):
    """Labels of the paper's rows are those of the grid, their columns are measured, and percentages are percentages."""
    study = read_study(name, "full")
    labels = {"data": study.data, "model": study.models, "method": study.methods, "fraction": study.fractions}
    for row in study.published:
        for axis in AXES:
            assert axis not in row or row[axis] in labels[axis], row
        figures = {column: as_pair(value)[0] for column, value in row.items() if column not in AXES}
        assert figures
        for column, mean in figures.items():
            assert column.split(".")[0] in study.measure, column
            if ".accuracy" in column or ".success" in column:
                assert 1 < mean <= 100


def test_figures_copied_from_the_papers():
    """Some cells of the papers, looked up by hand."""

    def figure(name, column, **labels):
        rows = read_study(name, "full").published
        return next(as_pair(row[column]) for row in rows if labels.items() <= row.items())

    assert figure("macs-table1", "clean.accuracy", data="cifar100", method="macs") == (69.23, 0.98)
    assert figure("macs-table5", "corruptions.accuracy", data="cifar10", model="resnet50", method="macs-augmix") == (48.4, 0.2)
    assert figure("magnma-table1", "corruptions.rms", data="cifar10", model="densenet121", method="magnma") == (1.33, 0.11)
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


def test_settings_of_the_papers():
    """What their training sections say, where a table departs from the others of its paper."""

    def training(name, **labels):
        wanted = {axis: [label] for axis, label in labels.items()}
        return only(cells_of(read_study(name, "full")), wanted)[0].recipe.training

    swin = {
        data: training("representation-table5", model="swin-tiny", data=data) for data in ("cifar10", "cifar100", "imagenet")
    }
    assert [each["learning_rate"] for each in swin.values()] == [0.01, 0.01, 0.001]  # G.2: higher on CIFAR only
    assert training("representation-table5", model="resnet50", data="cifar10")["learning_rate"] == 0.001
    magnma = training("magnma-table2", model="resnet18")
    assert (magnma["epochs"], magnma["learning_rate"], magnma["decay_epochs"], magnma["keep"]) == (150, 0.1, 50, "best")
    road = training("discriminative-table3", method="discriminative")
    assert (road["epochs"], road["optimiser"], road["learning_rate"], road["keep"]) == (70, "adam", 1e-4, "best")


@pytest.mark.parametrize("name", [name for name in study_names() if read_study(name, "full").same_setting])
def test_figures_of_the_papers_stand_in_brackets_only_where_all_images_were_trained_on(name):
    """Where training images are held out they stand apart; so do figures on corrupted pictures unless copies are read."""
    study = read_study(name, "full")
    held_out = any((cell.recipe.data["calibration"], cell.recipe.data["validation"]) != (0, 0) for cell in cells_of(study))
    figures = dict.fromkeys(column for row in study.published for column in row if column not in AXES)
    beside = [column for column in figures if in_brackets(study, column)]
    assert not (study.trained and held_out and beside)
    assert not any(column.startswith("corruptions.") for column in beside)
    assert ("of our training images is held out" in (study.differs or "")) <= (study.trained and held_out)


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
    study = read_study("main", "cpu")
    cells = cells_of(study)
    seeds = {method: sum(cell.labels["method"] == method for cell in cells) for method in study.methods}
    often = {"cross-entropy", "label-smoothing", "mixup", "augmix", "macs"}
    assert seeds == {method: 5 if method in often else 3 for method in study.methods}
    assert len(study.methods) == 16
    assert all(cell.recipe.training["epochs"] == 20 and cell.recipe.data["fraction"] == 0.25 for cell in cells)
    assert study.measure["corruptions"]["max_images"] == 2000


def test_tables_share_their_baseline():
    names = ("main", "macs-table1", "macs-table8", "magnma-table2", "discriminative-table1", "representation-table3")
    for scale in ("smoke", "cpu"):
        baselines = []
        for name in names:
            cells = cells_of(read_study(name, scale))
            whole = [c for c in cells if c.labels["method"] == "cross-entropy" and c.seed == 0 and c.labels["fraction"] == 1]
            baselines += [cell.name for cell in whole]
        assert len(set(baselines)) == 1
