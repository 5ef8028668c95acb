"""Without labels: each estimate against a plain one, against the truth where it is known, drift, alarms and the command."""

import json
import math
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

import surefoot as sf
from small_audits import audit, predictions, write
from surefoot.auditing.depths import Depth
from surefoot.auditing.monitoring import (
    Condition,
    Line,
    Reference,
    atc,
    atc_threshold,
    class_drift,
    confidence_drift,
    doc,
    estimates,
    feature_drift,
    left_out_errors,
    raised,
)
from surefoot.errors import SurefootError


def drawn(seed, accuracy, count=4000, name="clean"):
    """A calibrated model: each answer is right with its own confidence."""
    random = np.random.default_rng(seed)
    confidences = np.clip(random.normal(accuracy, 0.15, count), 0.02, 0.999)
    return Condition(name, confidences, random.random(count) < confidences)


def reference(count=4000):
    families = ("gaussian_noise", "defocus_blur", "fog", "contrast")
    conditions = [
        drawn(10 * i + s, 0.9 - 0.08 * s, count, f"{name}/{s}") for i, name in enumerate(families) for s in range(1, 6)
    ]
    return Reference(drawn(0, 0.9, count), np.arange(count) % 5, tuple(conditions), 5)


def test_the_threshold_misses_as_many_as_are_wrong():
    clean = drawn(1, 0.8, 501)
    bound = atc_threshold(clean.confidences, clean.correct)[0]
    wrong = int((~clean.correct).sum())
    assert bound == np.sort(clean.confidences)[wrong]
    assert atc(clean, clean.confidences) == pytest.approx(clean.accuracy, abs=1e-12)
    new = drawn(2, 0.6).confidences
    assert atc(clean, new) == pytest.approx(sum(value >= bound for value in new) / len(new))
    perfect = Condition("clean", np.array([0.5, 0.9]), np.array([True, True]))
    assert atc(perfect, np.array([0.1, 0.6, 0.7])) == pytest.approx(2 / 3)
    hopeless = Condition("clean", np.array([0.5, 0.9]), np.array([False, False]))
    assert atc(hopeless, np.array([0.1, 0.99])) == 0


def test_difference_of_confidences_by_hand():
    clean = Condition("clean", np.array([0.9, 0.7]), np.array([True, False]))
    assert doc(clean, np.array([0.6, 0.6])) == pytest.approx(0.5 - 0.2)
    assert doc(clean, np.array([0.0, 0.0])) == 0


def test_the_line_is_least_squares():
    from sklearn.linear_model import LinearRegression

    known = reference()
    line = Line.through(known.clean, known.conditions)
    falls = [[known.clean.confidences.mean() - each.confidences.mean()] for each in known.conditions]
    losses = [known.clean.accuracy - each.accuracy for each in known.conditions]
    plain = LinearRegression(fit_intercept=False).fit(falls, losses)
    assert line.slope == pytest.approx(plain.coef_[0])
    new = drawn(77, 0.7).confidences
    fall = known.clean.confidences.mean() - new.mean()
    assert doc(known.clean, new, line) == pytest.approx(known.clean.accuracy - plain.predict([[fall]])[0])
    assert Line.through(known.clean, [known.clean]).slope == 1


def test_a_calibrated_model_is_estimated_rightly():
    """Confidences that are true under every condition: doc and the line are right, and their intervals hold it mostly."""
    known, inside, offs = reference(), 0, []
    for seed in range(30):
        new = drawn(1000 + seed, 0.65, 1500)
        found = estimates(known, new.confidences, seed)
        truth = float(new.confidences.mean())  # what the accuracy would be on average
        offs.append(abs(float(found["doc"]) - truth))
        inside += found["doc"].low <= truth <= found["doc"].high
        assert abs(float(found["fit"]) - truth) < 0.03
    assert np.mean(offs) < 0.02
    assert inside >= 24


def test_errors_leave_a_family_out():
    known = reference()
    odd = tuple(
        Condition(each.name, each.confidences, np.zeros(len(each.correct), bool)) if each.name.startswith("fog") else each
        for each in known.conditions
    )
    errors = left_out_errors(Reference(known.clean, known.predicted, odd, 5))
    assert set(errors["fit"]) == {"noise", "blur", "weather", "digital"}
    assert errors["fit"]["weather"] > 0.4  # a line without fog cannot know
    without = Line.through(known.clean, [each for each in odd if each.family != "weather"])
    own = [each for each in odd if each.family == "weather"]
    expected = np.mean([doc(known.clean, each.confidences, without) for each in own])
    assert errors["fit"]["weather"] == pytest.approx(expected)


def test_drift_is_found_where_there_is_one_and_not_elsewhere():
    known = reference()
    same, other = drawn(5, 0.9, 1000), drawn(6, 0.7, 1000)
    assert confidence_drift(known, same.confidences)["p"] > 0.001
    assert confidence_drift(known, other.confidences)["p"] < 1e-6
    assert class_drift(known, np.arange(1000) % 5)["p"] > 0.5
    assert class_drift(known, np.arange(1000) % 2)["p"] < 1e-6
    assert class_drift(Reference(known.clean, np.zeros(9, int), (), 5), np.zeros(4, int)) == {"statistic": 0.0, "p": 1.0}
    random = np.random.default_rng(0)
    ours = random.normal(size=(500, 30)) * np.linspace(3, 0.1, 30)
    assert feature_drift(ours, random.normal(size=(400, 30)) * np.linspace(3, 0.1, 30))["p"] > 0.01
    moved = random.normal(size=(400, 30)) * np.linspace(3, 0.1, 30) + np.eye(30)[0] * 2
    assert feature_drift(ours, moved)["p"] < 1e-6


def test_false_alarms_of_the_feature_test_are_as_rare_as_promised():
    random = np.random.default_rng(1)
    few = [feature_drift(random.normal(size=(80, 12)), random.normal(size=(80, 12)))["p"] < 0.05 for _ in range(200)]
    assert sum(few) <= 20  # 10 expected at most


def test_alarms():
    numbers = {"accuracy": 0.7, "foreign": None}
    on, off = raised(["accuracy < 0.8", "accuracy < 0.5"], numbers)
    assert (on.on, off.on) == (True, False)
    for rule, said in (
        ("acuracy < 1", "Did you mean 'accuracy'?"),
        ("foreign > 0.1", "foreign is not known here"),
        ("accuracy: no worse than b.json", "alarm must be NAME < NUMBER"),
        ("accuracy", "must be NAME < NUMBER"),
    ):
        with pytest.raises(SurefootError, match="(?i)") as error:
            raised([rule], numbers)
        assert said in str(error.value)


DEPTH = Depth(
    "quick",
    {
        "corruptions": {
            "names": ("gaussian_noise", "gaussian_blur", "fog", "contrast"),
            "severities": (1, 5),
            "max_images": 100,
        },
        "foreign": {"max_images": 100, "train_images": 300},
    },
)


@pytest.fixture(scope="module")
def folder(run, digits, tmp_path_factory):
    """A copy of the run's folder with its audit, and folders of new pictures beside it."""
    mine = tmp_path_factory.mktemp("monitored") / "run"
    shutil.copytree(run.folder, mine)
    sf.audit(run.predictor, digits, depth=DEPTH, calibrate_on="calibration", output=mine, progress=False)
    pictures = {"same": digits.test.images, "noise": torch.randint(0, 255, (60, 3, 32, 32), dtype=torch.uint8)}
    for name, images in pictures.items():
        place = mine.parent / name
        place.mkdir(exist_ok=True)
        for number, image in enumerate(images):
            Image.fromarray(image.permute(1, 2, 0).numpy()).save(place / f"{number:03}.png")
    return mine


def test_the_audited_pictures_themselves_and_noise(folder):
    same = sf.monitor(folder, folder.parent / "same")
    for name in ("atc", "doc", "fit"):
        assert float(same.estimates[name]) == pytest.approx(same.audited_accuracy, abs=1e-4), name
    assert same.by in same.estimates
    assert set(same.errors["fit"]) == {"noise", "blur", "weather", "digital"}
    assert same.drift["confidence"]["p"] > 0.99
    assert same.drift["features"]["p"] > 0.5
    assert float(same.foreign) < 0.12
    noise = sf.monitor(folder, folder.parent / "noise", alarm=["foreign > 0.5", "features_p < 0.001"])
    assert float(noise.foreign) > 0.9
    assert noise.alarmed
    assert noise.images == 60


def test_the_command(folder, surefoot, tmp_path):
    page = tmp_path / "monitor.html"
    quiet = surefoot("monitor", folder, "--data", folder.parent / "same", "--alarm", "accuracy < 0.01", "--output", page)
    assert quiet.code == 0
    assert "accuracy, estimated" in quiet.out
    assert "How good the estimates are" in page.read_text()
    loud = surefoot("monitor", folder, "--data", folder.parent / "noise", "--json", "--alarm", "classes_p < 1")
    assert loud.code == 1
    found = json.loads(loud.out)
    assert found["accuracy"]["low"] <= found["accuracy"]["value"] <= found["accuracy"]["high"]
    few = surefoot("monitor", folder, "--data", folder.parent / "noise", "--json", "--max-images", 10)
    assert json.loads(few.out)["images"] == 10


def test_files_of_predictions_without_labels(folder, run, digits, tmp_path):
    logits = run.predictor(digits.validation.images[:50].float() / 255).detach()
    np.savez(tmp_path / "new.npz", logits=logits.numpy())
    from_file = sf.monitor(folder, tmp_path / "new.npz")
    assert from_file.images == 50
    assert "features" not in from_file.drift
    assert from_file.foreign_score in ("msp", "max-logit", "energy", "entropy", "gen")
    assert any("features are not known" in note for note in from_file.notes)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("nowhere/here", "No foreign pictures at"),
        ("empty", "has no pictures"),
        ("other.npz", "have 3 classes, and the audit 10"),
        ("broken.npz", "must hold labels, and logits or probabilities"),
    ],
)
def test_what_cannot_be_watched_is_one_line(folder, surefoot, tmp_path, data, said):
    (tmp_path / "empty").mkdir()
    np.savez(tmp_path / "other.npz", logits=np.zeros((5, 3), np.float32))
    np.savez(tmp_path / "broken.npz", numbers=np.zeros(5))
    outcome = surefoot("monitor", folder, "--data", tmp_path / data)
    assert outcome.code == 2
    assert said in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_run_without_an_audit_and_an_audit_without_corruptions(tmp_path, surefoot):
    (tmp_path / "run").mkdir()
    outcome = surefoot("monitor", tmp_path / "run", "--data", "digits")
    assert (outcome.code, "has no audit.json" in outcome.err) == (2, True)
    bare = audit() | {"corruptions": None, "attacks": {}}
    place = write(tmp_path / "bare", bare, predictions(0))
    predictions(1).save(tmp_path / "new.npz")
    found = sf.monitor(place, tmp_path / "new.npz")
    assert set(found.estimates) == {"atc", "doc"}
    assert not math.isnan(found.accuracy)
    assert found.foreign is None
