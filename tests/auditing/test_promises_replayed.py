"""Promises under every condition: columns by hand, the map, the gate, and that they do break."""

import json

import numpy as np
import pytest
import torch

import surefoot as sf
from surefoot.auditing.depths import Depth
from surefoot.auditing.rules import judge, parse_rule
from surefoot.errors import SurefootError
from surefoot.measurements.promises import BROKEN, KEPT, UNKNOWN, fit_promises, judged
from surefoot.report.sections.promises import groups_of

DEPTH = Depth(
    "quick",
    {
        "corruptions": {"names": ("gaussian_noise", "brightness"), "severities": (1, 5), "max_images": 120},
        "noise": {"levels": (2, 120), "draws": 2, "max_images": 60},
        "attacks": {"names": ("fgsm",), "max_images": 40},
    },
)


@pytest.fixture(scope="module")
def audited(run, digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("promises")
    return sf.audit(run.predictor, digits, depth=DEPTH, calibrate_on="calibration", output=folder, progress=False), folder


def test_columns_are_what_the_fits_say(audited, run, digits):
    audit, _ = audited
    with torch.inference_mode():
        held_out, clean = (
            sf.Predictions.from_logits(run.predictor(batch.images), batch.labels, indices=batch.indices)
            for batch in (next(split.batches(2000)) for split in (digits.calibration, digits.test))
        )
    sets = sf.calibration.fit_prediction_sets(held_out, 0.9, "lac")
    rows = audit.table("clean")
    assert np.mean(rows["covered"] == sets.apply(clean.logits).gather(1, clean.labels[:, None])[:, 0].numpy()) > 0.995
    assert rows["set_size"].mean() == pytest.approx(sets.apply(clean.logits).sum(1).float().mean().item(), abs=0.01)
    risks = [sf.calibration.fit_risk_threshold(held_out, risk) for risk in (0.01, 0.02, 0.05)]
    chosen = next((fit for fit in risks if fit.threshold is not None), risks[-1])
    assert audit.promises["wanted_risk"] == chosen.risk
    assert np.mean(rows["answered"] == chosen.answers(clean.logits).numpy()) > 0.995


def test_numbers_of_a_condition_are_those_of_its_rows(audited):
    audit, _ = audited
    for condition, images in (("gaussian_noise/5", 120), ("noise-gaussian/120", 60), ("fgsm", 40)):
        rows, found = audit.table(condition), audit.promises["conditions"][condition]
        assert found["images"] == len(rows) == images
        assert found["coverage"] == pytest.approx(rows["covered"].mean())
        assert found["set_size"] == pytest.approx(rows["set_size"].mean())
        assert found["answered"] == pytest.approx(rows["answered"].mean())
        answered = rows[rows["answered"]]
        assert np.isnan(found["risk"]) if not len(answered) else found["risk"] == pytest.approx(1 - answered["correct"].mean())
    assert not any("#" in name for name in audit.promises["conditions"])


def test_severe_noise_breaks_the_coverage(audited):
    found = audited[0].promises
    assert found["conditions"]["clean"]["coverage_promise"] != BROKEN
    assert found["conditions"]["noise-gaussian/120"]["coverage_promise"] == BROKEN
    assert found["conditions"]["noise-gaussian/2"]["coverage_promise"] != BROKEN
    assert found["first_broken"]["coverage"]["noise-gaussian"] == 120
    assert "fgsm" not in found["first_broken"]["coverage"]


def rows_with(covered, answered, correct):
    columns = {"covered": covered, "answered": answered, "correct": correct}
    rows = {name: np.array(values, dtype=bool) for name, values in columns.items()}
    return {**rows, "index": np.arange(len(covered)), "set_size": np.full(len(covered), 2, np.int32)}


def test_states_by_hand():
    promises = fit_promises(sf.Predictions.from_logits(torch.eye(4).repeat(100, 1) * 9, torch.arange(400) % 4), None, 0)
    assert promises.wanted_risk == 0.02  # 160 images without a mistake show 2 % and not 1 %
    count = 200
    kept = judged(rows_with([1] * 180 + [0] * 20, [1] * count, [1] * 198 + [0] * 2), promises)
    assert (kept["coverage_promise"], kept["risk_promise"]) == (KEPT, KEPT)
    broken = judged(rows_with([1] * 140 + [0] * 60, [1] * count, [1] * 170 + [0] * 30), promises)
    assert (broken["coverage_promise"], broken["risk_promise"]) == (BROKEN, BROKEN)
    doubtful = judged(rows_with([1] * 175 + [0] * 25, [1] * count, [1] * 195 + [0] * 5), promises)
    assert doubtful["coverage"] < 0.9 < doubtful["coverage"].high
    assert doubtful["risk"].low < 0.02 < doubtful["risk"]
    assert (doubtful["coverage_promise"], doubtful["risk_promise"]) == (UNKNOWN, UNKNOWN)
    nothing = judged(rows_with([1] * count, [0] * count, [1] * count), promises)
    assert nothing["risk_promise"] == UNKNOWN
    assert np.isnan(nothing["risk"])


def test_nothing_is_promised_with_too_few_images():
    few = sf.Predictions.from_logits(torch.rand(3, 4), torch.tensor([0, 1, 2]))
    assert fit_promises(few, None, 0) is None
    some = fit_promises(sf.Predictions.from_logits(torch.rand(8, 4), torch.arange(8) % 4), None, 0)
    assert not some.columns(torch.rand(8, 4) * 9, torch.arange(8) % 4, torch.arange(8))["answered"].any()


def test_a_gate_asks_under_a_condition(audited):
    _, folder = audited
    plain = json.loads((folder / "audit.json").read_text())
    rules = ["coverage@noise-gaussian/120 > 0.88", "coverage@noise-gaussian/2 > 0.5", "set_size@brightness/1 < 11"]
    verdicts = judge([parse_rule(rule) for rule in rules], plain)
    assert [verdict.holds for verdict in verdicts] == [False, True, True]
    assert verdicts[0].name == "promises.conditions.noise-gaussian/120.coverage"
    assert judge([parse_rule("answered.high@fgsm <= 1")], plain)[0].holds
    for rule, said in (
        ("coverage@brightnes/1 > 0", "Did you mean 'brightness/1'?"),
        ("covrage@fgsm > 0", "Did you mean 'coverage'?"),
    ):
        with pytest.raises(SurefootError) as error:
            judge([parse_rule(rule)], plain)
        assert said in str(error.value)


def test_the_page_has_the_map(audited, tmp_path):
    _, folder = audited
    text = sf.write_page(tmp_path / "page.html", [folder]).read_text()
    section = text[text.index('id="promises"') :].split("</section>")[0]
    assert 'class="promise-broken"' in section
    assert 'class="promise-kept"' in section
    assert section.count("first broken at") == 2


def test_rows_share_a_table_where_they_share_severities():
    def row(title, *severities, state=KEPT, value=0.9):
        return {"title": title, "cells": {severity: {"state": state, "number": {"value": value}} for severity in severities}}

    rows = [row("fog", "1", "3"), row("FGSM", ""), row("noise", "16", "2"), row("snow", "3", "1")]
    found = [(group["severities"], [row["title"] for row in group["rows"]]) for group in groups_of(rows)]
    assert found == [(("1", "3"), ["fog", "snow"]), (("",), ["FGSM"]), (("2", "16"), ["noise"])]
    unknown = [row("fog", "1", state=UNKNOWN), row("FGSM", "", state=UNKNOWN)]
    assert len(groups_of(unknown)) == 2  # there are numbers to show
    assert groups_of([row(each["title"], *each["cells"], state=UNKNOWN, value=None) for each in unknown]) == []
