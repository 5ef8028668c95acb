"""Every number is explained: all in one table, and the ones that are good or bad with what that means."""

import sys
from pathlib import Path

from surefoot.metrics import DAMAGE, FOREIGN, MEMBERS, METRICS, PREDICTIONS

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from numbers_page import GROUPS, PAGE, page

SAID_WITH_ANOTHER = {"clean accuracy", "pooled adaptive RMS calibration error", "joint risk by mixture"}  # as what they are of


def test_the_table_of_every_number_is_that_of_the_code():
    assert PAGE.read_text() == page(), "run scripts/numbers_page.py"
    assert {key for named in GROUPS.values() for key in named} == set(METRICS)
    assert all(one.meaning for one in METRICS.values())


def test_what_is_good_is_said_of_every_score():
    guide = " ".join(PAGE.with_name("read-the-page.md").read_text().split())
    judged = {**PREDICTIONS, **DAMAGE, **FOREIGN, **MEMBERS}
    labels = {one.label.removeprefix("AUROC of ") for one in judged.values() if one.better}
    assert sorted(label for label in labels - SAID_WITH_ANOTHER if label not in guide) == []
