"""One table of the facts of every number: it knows all that audits, studies and gates can name, and suggests for the rest."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.auditing.comparison import MCE
from surefoot.auditing.number_names import good_direction
from surefoot.auditing.rules import USUAL
from surefoot.auditing.shared_images import CLEAN_SCORES, MEANS, SCALED_ECE
from surefoot.calibration.scoring import NAMES
from surefoot.errors import SurefootError, UnknownName
from surefoot.metrics import (
    DOWN,
    IN_AUDITS,
    IN_STUDIES,
    METRICS,
    NEITHER,
    PREDICTIONS,
    SHARE,
    UP,
    find,
    known_in_studies,
    of_column,
    of_path,
    path_label,
)
from surefoot.studies.schema import AXES
from surefoot.studies.study_files import SCALES, read_study, study_names

ROOT = Path(__file__).parents[1]


def kind(column):
    return column.split(".")[1]


def test_every_metric_has_its_facts():
    for name, metric in METRICS.items():
        assert metric.label, name
        assert metric.meaning, name
        assert metric.better in (UP, DOWN, NEITHER), name
        assert metric.unit in ("", SHARE, "ms"), name
    labels = [metric.label for metric in METRICS.values()]
    assert len(set(labels)) == len(labels)
    for words in (IN_AUDITS, IN_STUDIES):
        assert set(words.values()) <= set(METRICS)
    assert not set(IN_AUDITS) & set(METRICS)


def test_every_score_is_on_the_page():
    assert set(NAMES) < set(PREDICTIONS)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", study_names())
def test_columns_of_the_studies_are_known(name, scale):
    study = read_study(name, scale)
    published = [key for row in study.published for key in row if key not in AXES]
    columns = {*study.table.columns, *published, *(each for each in (study.table.wins, study.select) if each)}
    assert [column for column in columns if not known_in_studies(kind(column))] == []


def test_numbers_of_the_committed_cells_are_known():
    names = set()
    for path in (ROOT / "docs" / "results").glob("*/cells/*.json"):
        for measured in json.loads(path.read_text())["measurements"].values():
            names |= {name.split(".")[0] for name in measured["metrics"]}
    assert len(names) > 20
    assert [name for name in names if not known_in_studies(name)] == []


def test_what_a_gate_and_a_comparison_judge_has_a_direction():
    attacks = [f"attacks.fgsm.{score}" for score in ("success_rate", "robust_accuracy")]
    for path in (*USUAL, SCALED_ECE, *MEANS, MCE, *attacks, *(f"calibration.{score}" for score in CLEAN_SCORES)):
        assert good_direction(path) in (UP, DOWN), path
    with pytest.raises(SurefootError, match="give a bound"):
        good_direction("calibration.signed_error")


def test_paths_of_an_audit():
    assert of_path("corruptions.cells.gaussian_noise.3.accuracy.low") == find("accuracy")
    assert of_path("noise.gaussian.0.0313.deviation") == find("deviation")
    assert of_path("geometry.measured.certified_accuracy.0.25").better == UP
    assert of_path("classes.images.precision") == find("precision")
    assert path_label("corruptions.mean_scaled_ece") == "corrupted ECE after temperature scaling"
    assert path_label("temperature.corrupted_ece") == "corrupted ECE"
    assert path_label("temperature.calibration.nll") == "NLL after temperature scaling"
    assert path_label("corruptions.alexnet_mce") == "mCE"
    assert path_label("attacks.pgd-weak.robust_accuracy") == "pgd-weak robust accuracy"


def test_columns_of_a_study():
    found = of_column("corruptions.accuracy.gaussian_noise")
    assert (found.title, found.factor, found.arrow) == ("corruptions accuracy % (gaussian noise)", 100, "↑")
    assert of_column("clean.nll").title == "NLL"
    assert of_column("cost.milliseconds").title == "step, ms"
    assert of_column("noise.draws.8").title == "noise deviation over draws % (8)"
    own = of_column("mine.own_number")
    assert (own.title, own.factor, own.better) == ("mine own number", 1, NEITHER)


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UnknownName, match=r"Unknown metric 'acuracy'\. Did you mean 'accuracy'\?"):
        find("acuracy")
    with pytest.raises(UnknownName, match="Did you mean 'success_rate'"):
        good_direction("attacks.fgsm.sucess_rate")


def test_no_torch():
    code = "import surefoot.metrics, sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_threshold_that_cannot_be_promised_is_a_number_of_an_audit():
    """It is written as 1.1, and a gate reads the file all the same."""
    from surefoot.measurements.thresholds import NONE
    from surefoot.metrics import range_of

    low, high = range_of("thresholds.0.01.thresholds.0")
    assert low == 0
    assert low <= 1 < NONE <= high
    assert range_of("thresholds.0.01.coverage") == (0.0, 1.0)
