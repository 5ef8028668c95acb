"""What the page must say, and must not, of models that are wrong in the usual ways; each is a real audit of digits."""

import json
import re

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.auditing.depths import Depth
from surefoot.report.advice import advice
from surefoot.report.page import read_audit, render_page
from surefoot.report.verdict import cards, headline, verdict

CLEAN = Depth("clean only")
CORRUPTED = Depth(
    "few corruptions", {"corruptions": {"names": ("gaussian_noise", "fog"), "severities": (3,), "max_images": 60}}
)
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)


class Around(nn.Module):
    """A model with something before it and something after it."""

    def __init__(self, model, before=lambda x: x, after=lambda x: x):
        super().__init__()
        self.model, self.before, self.after = model, before, after
        self.eval()

    def forward(self, images):
        return self.after(self.model(self.before(images)))


@pytest.fixture(scope="module")
def good(run):
    return run.model.eval()


def audited(model, data, folder, depth=CLEAN, **options):
    sf.audit(model, data, depth=depth, output=folder, progress=False, **options)
    return read_audit(folder)


def found(audit):
    return {finding["name"]: finding for finding in audit["preflight"]}


def words(audit):
    """All that the top of the page says."""
    said = [headline(audit), *verdict(audit), *advice(audit), *(finding["message"] for finding in audit["preflight"])]
    return re.sub(r"\s", " ", " ".join(said))


def tones(audit):
    return [card.tone for card in cards(audit)]


def imbalanced(classes=3, counts=(140, 14, 3)):
    """Digits of a few classes, one of them common."""
    digits = sf.load_data("digits")
    labels = digits.test.labels
    rows = torch.cat([(labels == number).nonzero().flatten().repeat(5)[:count] for number, count in enumerate(counts)])
    return sf.load_data((digits.test.images[rows].numpy(), labels[rows].numpy()))


def test_a_constant_answer_is_never_good(tmp_path):
    data = imbalanced()

    class Always(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, data.num_classes)

        def forward(self, images):
            logits = torch.zeros(len(images), data.num_classes) + 0.01 * self.layer(images.mean((2, 3)))
            return logits + torch.tensor([4.0, *[0.0] * (data.num_classes - 1)])

    audit = audited(Always().eval(), data, tmp_path, CORRUPTED)
    assert audit["calibration"]["accuracy"]["value"] == pytest.approx(audit["recognition"]["chance"])
    assert "good" not in tones(audit)
    assert found(audit)["chance"]["severity"] == "fatal"
    assert "for 100.0 % of the pictures" in words(audit)
    for praise in ("can be believed", "emperature", "Let it decide", "Nothing urgent"):
        assert praise not in words(audit)
    page = render_page([audit])
    assert 'class="panel fatal"' in page
    assert page.index("Nothing below can be believed") < page.index('class="headline"')


def test_a_good_model_is_told_so(good, digits, tmp_path):
    audit = audited(good, digits, tmp_path)
    assert audit["preflight"] == []
    assert "clearly better than" not in words(audit)
    assert 'class="panel fatal"' not in render_page([audit])
    assert audit["recognition"]["balanced_accuracy"]["value"] == pytest.approx(
        audit["calibration"]["accuracy"]["value"], abs=0.05
    )


def test_permuted_classes(good, digits, tmp_path):
    order = torch.tensor([3, 0, 1, 2, 9, 4, 5, 6, 7, 8])
    audit = audited(Around(good, after=lambda x: x[:, order]), digits, tmp_path)
    assert found(audit)["class-order"]["severity"] == "fatal"
    assert "good" not in tones(audit)


@pytest.mark.parametrize(
    ("before", "flag"),
    [
        (lambda z: z * STD + MEAN, "--mean 0.485,0.456,0.406"),
        (lambda z: z * 0.5 + 0.5, "--mean 0.5 --std 0.5"),
        (lambda x: (x - MEAN) / STD, "--mean 0 --std 1"),
        (lambda x: x / 255, f"--mean 0 --std {1 / 255:.6f}"),
    ],
    ids=["ImageNet's is missing", "a half is missing", "twice", "of 255"],
)
def test_wrong_normalisation(good, digits, tmp_path, before, flag):
    audit = audited(Around(good, before), digits, tmp_path)
    finding = found(audit)["normalisation"]
    assert finding["severity"] == "fatal"
    assert flag in finding["advice"]


def test_softmax_outputs_are_scored_as_probabilities(good, digits, tmp_path):
    plain = audited(good, digits, tmp_path / "logits")
    soft = audited(Around(good, after=lambda x: x.softmax(1)), digits, tmp_path / "soft")
    assert found(soft)["probabilities"]["severity"] == "note"
    for score in ("accuracy", "ece", "nll"):
        assert soft["calibration"][score]["value"] == pytest.approx(plain["calibration"][score]["value"], abs=1e-5)


def test_an_imbalanced_model_that_knows_its_classes_is_better_than_chance(tmp_path):
    labels = torch.tensor([0] * 1400 + [1] * 140 + [2] * 30)
    answers = labels.where(torch.arange(1570) % 33 > 0, (labels + 1) % 3)
    logits = 4.0 * nn.functional.one_hot(answers, 3) + torch.rand(1570, 3, generator=torch.Generator().manual_seed(0))
    sf.audit_predictions(sf.Predictions.from_logits(logits, labels), output=tmp_path)
    audit = read_audit(tmp_path)
    assert audit["preflight"] == []
    assert audit["recognition"]["chance"] == pytest.approx(1400 / 1570)
    assert "compare always answering '0' (89.2 %)" in re.sub(r"\s", " ", cards(audit)[0].meaning)


def test_two_classes_and_five_hundred(tmp_path):
    for classes in (2, 500):
        draw = torch.Generator().manual_seed(0)
        labels = torch.arange(1000) % classes
        logits = 3.0 * torch.randn(1000, classes, generator=draw)
        logits[torch.arange(1000), labels] += 6
        folder = tmp_path / str(classes)
        sf.audit_predictions(sf.Predictions.from_logits(logits, labels), output=folder)
        audit = read_audit(folder)
        assert audit["recognition"]["chance"] == pytest.approx(1 / classes)
        page = render_page([audit])
        assert ("The pairs it confuses most" in page) == (classes == 500)
        assert ('id="figure-confusion-0"' in page) == (classes == 2)


def test_one_channel(tmp_path):
    digits = sf.load_data("digits")
    data = sf.load_data((digits.test.images[:, :1].numpy(), digits.test.labels.numpy()))
    linear = nn.Linear(1024, 10)
    nn.init.zeros_(linear.weight)
    audit = audited(sf.adapt(nn.Sequential(nn.Flatten(), linear).eval(), 0.5, 0.5, 32, channels=1), data, tmp_path, CORRUPTED)
    assert data.channels == 1
    assert set(found(audit)) == {"chance", "constant"}
    assert "good" not in tones(audit)


def test_strict_ends_with_one_and_fatal_is_said_even_under_quiet(surefoot, here, run, quicker):
    (here / "turned.py").write_text(
        "import torch, surefoot as sf\n"
        "class Turned(torch.nn.Module):\n"
        "    def __init__(self, model):\n        super().__init__()\n        self.model = model\n"
        "    def forward(self, x):\n        return self.model(x).roll(1, 1)\n"
        f"def build():\n    return Turned(sf.load_run({str(run.folder)!r}).model).eval()\n"
    )
    words = ("audit", "--import", "turned:build", "--data", "digits", "--output", "out", "--only", "corruptions", "--quiet")
    for flags, code in (((), 0), (("--strict",), 1)):
        outcome = surefoot(*words, *flags)
        assert outcome.code == code
        assert "FATAL ! Accuracy is" in outcome.err
        assert outcome.out == ""
    assert json.loads((here / "out" / "audit.json").read_text())["preflight"][0]["severity"] == "fatal"
    lines = (here / "out" / "predictions.csv").read_text().splitlines()
    assert lines[0] == "image,label,predicted,correct,confidence"
    assert 'href="predictions.csv"' in (here / "out" / "report.html").read_text()
