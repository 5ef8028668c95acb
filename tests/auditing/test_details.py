"""Classes, groups, thresholds, sliders and pictures, each against a plain computation."""

import base64
import io
import math

import numpy as np
import pytest
import torch
from PIL import Image

import surefoot as sf
from surefoot.auditing.frames import numbers_of
from surefoot.calibration.risk import cross_fit_risk_threshold, fit_risk_threshold
from surefoot.data.subsets import choose
from surefoot.errors import NotFound, SurefootError, UnknownName
from surefoot.measurements import pictures as sliders
from surefoot.measurements.groups import class_results, confusion, group_results, read_groups
from surefoot.measurements.pictures import feature_scale_grid, grid, picture, temperature_grid
from surefoot.measurements.thresholds import thresholds
from surefoot.types import Predictions


@pytest.fixture
def answers():
    random = torch.Generator().manual_seed(3)
    labels = torch.randint(4, (400,), generator=random)
    logits = torch.randn(400, 4, generator=random) + 2 * torch.nn.functional.one_hot(labels, 4)
    return Predictions.from_logits(logits, labels, indices=torch.arange(1000, 1400))


def test_classes_by_counting(answers):
    found = class_results(answers, ["a", "b", "c", "d"])
    for number, result in enumerate(found):
        mine = [(int(y), int(k)) for y, k in zip(answers.labels, answers.classes, strict=True)]
        own = [answer for label, answer in mine if label == number]
        claimed = [label for label, answer in mine if answer == number]
        assert result.images == len(own)
        assert result.accuracy == pytest.approx(own.count(number) / len(own))
        assert result.precision == pytest.approx(claimed.count(number) / len(claimed))
        others = {other: own.count(other) for other in range(4) if other != number}
        assert others["abcd".index(result.taken_for)] == max(others.values()) == result.taken_for_images
        assert result.accuracy.low < result.accuracy < result.accuracy.high
        rows = answers.labels == number
        assert result.confidence == pytest.approx(answers.confidences[rows].mean().item(), rel=1e-5)


def test_a_class_without_images_has_no_accuracy():
    one = Predictions.from_logits(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([0]))
    found = class_results(one, ["a", "b", "c"])
    assert (found[1].images, found[1].accuracy, found[1].precision, found[1].taken_for) == (0, None, None, None)


def test_groups(answers, tmp_path):
    groups = ["day" if k % 3 else "night" for k in range(400)]
    found = group_results(answers, groups, 0)
    assert [(group.name, group.images) for group in found] == [("day", 266), ("night", 134)]
    night = answers[torch.tensor([k for k in range(400) if k % 3 == 0])]
    assert found[1].accuracy == pytest.approx(night.correct.double().mean().item())
    with pytest.raises(SurefootError, match="one for each of 400 images, got 2"):
        group_results(answers, ["a", "b"], 0)
    path = tmp_path / "groups.csv"
    path.write_text("time\n" + "\n".join(groups))
    assert read_groups(path, "time", answers) == groups
    rows = [f"{1000 + k},{group}" for k, group in enumerate(groups)][::-1]
    path.write_text("index,time\n" + "\n".join(rows))
    assert read_groups(path, "time", answers) == groups
    with pytest.raises(UnknownName, match="Did you mean 'time'"):
        read_groups(path, "tme", answers)
    path.write_text("index,time\n" + "\n".join(rows[:-1]))
    with pytest.raises(SurefootError, match="no row for 1 of 400 images"):
        read_groups(path, "time", answers)
    path.write_text("index,time\nfirst,day\n")
    with pytest.raises(SurefootError, match="must be whole numbers, got 'first'"):
        read_groups(path, "time", answers)
    path.write_bytes("time\ntagsüber\n".encode("latin-1"))
    with pytest.raises(SurefootError, match="must be text in UTF-8"):
        read_groups(path, "time", answers)
    path.write_text("time\na\nb\n")
    with pytest.raises(SurefootError, match="a row for each of 400 images; it has 2"):
        read_groups(path, "time", answers)
    with pytest.raises(NotFound):
        read_groups(tmp_path / "none.csv", "time", answers)


@pytest.mark.parametrize("memory", [0, 2])
@pytest.mark.parametrize("named", ["{letter}/{k}.png", "{k}.png"])
def test_groups_by_file_name(tmp_path, memory, named):
    for number in range(8):
        pixels = Image.fromarray(np.full((40, 40, 3), 30 * number, np.uint8))
        for split in ("train", "test"):
            path = tmp_path / "data" / split / "ab"[number % 2] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels.save(path)
    data = sf.load_data(str(tmp_path / "data"), memory_gib=memory)
    rows = [f"{named.format(letter='ab'[k % 2], k=k)},light {k}" for k in range(8)]
    (tmp_path / "g.csv").write_text("file,light\n" + "\n".join(rows))
    for split in (data.test, choose(data.test, 6)):
        shown = next(iter(split.batches(8))).images.flatten(1).mean(1) * 255 / 30
        assert read_groups(tmp_path / "g.csv", "light", split) == [f"light {k}" for k in shown.round().int().tolist()]
    (tmp_path / "g.csv").write_text("file,light\n" + "\n".join([*rows, rows[0]]))
    with pytest.raises(SurefootError, match="rows for the same image: 9 rows, 8 images"):
        read_groups(tmp_path / "g.csv", "light", data.test)
    with pytest.raises(SurefootError, match="these images come from no files"):
        read_groups(tmp_path / "g.csv", "light", sf.load_data("digits").test)


def test_a_name_of_two_files_is_no_name(tmp_path):
    for folder in ("train/a", "train/b", "test/a", "test/b"):
        (tmp_path / "data" / folder).mkdir(parents=True)
        for number in range(4):
            Image.fromarray(np.full((8, 8, 3), 30 * number, np.uint8)).save(tmp_path / "data" / folder / f"{number}.png")
    data = sf.load_data(str(tmp_path / "data"))
    (tmp_path / "g.csv").write_text("file,light\n" + "\n".join(f"{k}.png,dim" for k in range(4)))
    with pytest.raises(SurefootError, match=r"'0.png' in '.*g.csv' names 2 images: give more of their paths"):
        read_groups(tmp_path / "g.csv", "light", data.test)


def confident(images, seed):
    """The surer, the righter: labels follow softmax(z)."""
    draws = torch.Generator().manual_seed(seed)
    logits = torch.randn(images, 3, generator=draws) * 3
    labels = torch.multinomial(logits.softmax(1), 1, generator=draws).squeeze(1)
    return Predictions.from_logits(logits, labels, indices=torch.arange(images))


def test_a_threshold_is_promised_on_other_images_than_it_is_judged_on():
    chosen, judged = confident(1500, 0), confident(700, 1)
    (found,) = thresholds(judged, [0.1], 0, chosen)
    promise = fit_risk_threshold(chosen, 0.1, 0.95)
    kept = judged.confidences.double() >= promise.threshold
    assert found.thresholds == (promise.threshold,)
    assert found.coverage == pytest.approx(kept.double().mean().item())
    assert found.risk == pytest.approx((~judged.correct)[kept].double().mean().item())
    assert (found.confidence, found.notes) == (0.95, ())


def test_each_half_chooses_the_threshold_of_the_other():
    answers = confident(3001, 0)
    (found,) = thresholds(answers, [0.1], 0)
    promise = cross_fit_risk_threshold(answers, 0.1, 0.95)
    assert found.thresholds == promise.thresholds
    assert found.thresholds[0] != found.thresholds[1]
    kept = promise.answers(answers)
    assert found.coverage == pytest.approx(kept.double().mean().item())
    assert found.risk == pytest.approx((~answers.correct)[kept].double().mean().item())


@pytest.mark.parametrize("images", [1, 2, 3, 40])
def test_so_few_images_promise_nothing(images):
    for found in (
        thresholds(confident(images, 0), [0.01, 0.5], 0),
        thresholds(confident(9, 0), [0.01], 0, confident(images, 1)),
    ):
        assert set(found[0].thresholds) == {1.1}
        assert found[0].coverage == 0
        assert found[0].notes[0].startswith("No threshold can be promised with so few images: an error rate of 1 % ")


def test_nothing_is_answered_where_no_threshold_holds():
    wrong = Predictions.from_logits(torch.tensor([[2.0, 0.0]]).repeat(10, 1), torch.ones(10, dtype=torch.long))
    (found,) = thresholds(wrong, [0.01], 0)
    assert found.coverage == 0
    assert math.isnan(found.risk)


def test_the_grid_of_temperatures_is_exact(answers):
    found = temperature_grid(answers, [1.37])
    assert {1.0, 1.37} <= set(found["values"])
    assert found["values"] == sorted(found["values"])
    for place in range(0, len(found["values"]), 17):
        scaled = Predictions.from_logits(answers.logits / found["values"][place], answers.labels)
        plain = sf.calibration.scores(scaled, intervals=0)
        assert found["ece"][place] == pytest.approx(plain.ece, abs=2e-5)
        assert found["nll"][place] == pytest.approx(plain.nll, abs=2e-5)
        assert sum(found["counts"][place]) == 400
        assert sum(found["correct"][place]) == int(answers.correct.sum())


def test_the_grid_is_the_same_block_by_block(answers, monkeypatch):
    whole = temperature_grid(answers)
    monkeypatch.setattr(sliders, "CELLS", 37 * answers.num_classes)
    parts = temperature_grid(answers)
    assert (parts["counts"], parts["correct"]) == (whole["counts"], whole["correct"])
    assert parts["ece"] == pytest.approx(whole["ece"], abs=2e-6)
    assert parts["nll"] == pytest.approx(whole["nll"], abs=2e-6)


def test_the_grid_of_feature_scales_keeps_the_bias(answers):
    bias = torch.tensor([0.5, -1.0, 0.0, 2.0])
    found = feature_scale_grid(answers, bias)
    assert found["values"] == [round(value, 6) for value in grid()]
    for place in (0, 40, 120):
        scaled = (answers.logits - bias) * grid()[place] + bias
        plain = sf.calibration.scores(Predictions.from_logits(scaled, answers.labels), intervals=0)
        assert found["ece"][place] == pytest.approx(plain.ece, abs=2e-5)
        assert found["nll"][place] == pytest.approx(plain.nll, abs=2e-5)
    assert feature_scale_grid(answers, None) is None
    assert feature_scale_grid(answers, torch.zeros(4)) is None


def test_pictures(digits):
    small = digits.test.images[0].float() / 255
    kind, data = picture(small).split(",", 1)
    assert kind == "data:image/png;base64"
    back = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    assert (back == digits.test.images[0].permute(1, 2, 0).numpy()).all()
    large = picture(torch.rand(3, 200, 100))
    assert large.startswith("data:image/jpeg")
    assert Image.open(io.BytesIO(base64.b64decode(large.split(",", 1)[1]))).size == (56, 112)
    grey = picture(torch.rand(1, 8, 8))
    assert Image.open(io.BytesIO(base64.b64decode(grey.split(",", 1)[1]))).mode == "L"


def test_every_number_has_a_path():
    audit = {
        "calibration": {"ece": {"value": 0.1, "low": 0.0, "high": 0.2}, "band": [1.0, 2.0], "none": None},
        "corruptions": {"cells": [{"name": "fog", "severity": 3, "accuracy": {"value": 0.5, "low": 0.4, "high": 0.6}}]},
    }
    assert list(numbers_of(audit)) == [
        ("calibration.ece", 0.1, 0.0, 0.2),
        ("calibration.band.0", 1.0, None, None),
        ("calibration.band.1", 2.0, None, None),
        ("corruptions.cells.fog.3.severity", 3, None, None),
        ("corruptions.cells.fog.3.accuracy", 0.5, 0.4, 0.6),
    ]


def test_a_short_row_of_groups_is_no_group(answers, tmp_path):
    (tmp_path / "g.csv").write_text("index,time\n" + "\n".join(f"{1000 + k},day" for k in range(399)) + "\n1399\n")
    with pytest.raises(SurefootError, match="line 401 of .* must be as long as the first"):
        read_groups(tmp_path / "g.csv", "time", answers)


@pytest.mark.parametrize(("images", "count"), [(300, 12), (200, 90)])
def test_mistakes_against_the_whole_matrix(images, count):
    """Counted by pairs that occur; the matrix of all classes would be squares of their number."""
    draws = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(images, count, generator=draws), torch.randint(count, (images,), generator=draws)
    matrix = torch.zeros(count, count, dtype=torch.long)
    for label, answer in zip(labels.tolist(), logits.argmax(1).tolist(), strict=True):
        matrix[label, answer] += 1
    given = sf.Predictions.from_logits(logits, labels)
    wrong = matrix.clone().fill_diagonal_(0)
    pairs = sorted(((-int(wrong[a, b]), a, b) for a, b in wrong.nonzero().tolist()))
    shown = confusion(given)["pairs"]
    assert shown == [[a, b, -times] for times, a, b in pairs[: len(shown)]]
    for number, result in enumerate(class_results(given, list(map(str, range(count))))):
        row = wrong[number]
        assert (result.images, result.taken_for_images) == (int(matrix[number].sum()), int(row.max()))
        assert result.taken_for == (str(int((row == row.max()).nonzero()[0])) if row.max() else None)
