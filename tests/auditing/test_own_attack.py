"""An attack of one's own in an audit: measured, written, shown, and compared like those with a name."""

import json

import pytest
import torch

import surefoot as sf
from surefoot.auditing.depths import Depth
from surefoot.auditing.number_names import find_number
from surefoot.auditing.plan import read_plan
from surefoot.data.subsets import choose
from surefoot.errors import SurefootError, UnknownName
from surefoot.report.page import read_audit
from surefoot.report.verdict import verdict
from surefoot.report.words import measure

OWN, BUDGETED, OUTSIDE = (f"{__name__}:{name}" for name in ("inverted", "darker", "outside"))


def inverted(model, images, labels):
    return 1 - images


def darker(model, images, labels, eps=0.25, *, seed=0, indices=None):
    assert (seed, len(indices)) == (0, len(images))
    return (images - eps).clamp(0, 1)


def outside(model, images, labels):
    return images + 1


@pytest.fixture
def little():
    """Next to nothing but attacks."""
    contrast = {"names": ("contrast",), "severities": (1,), "max_images": 10}
    return Depth("little", {"corruptions": contrast, "attacks": {"names": ("fgsm",), "max_images": 40}})


def test_it_is_measured_written_and_shown(run, digits, little, tmp_path):
    found = sf.audit(
        run.predictor, digits, depth=little, attacks=[OWN, BUDGETED, "noise", "fgsm"], output=tmp_path, progress=False
    )
    assert list(found.attacks) == ["fgsm", OWN, BUDGETED, "noise"]
    few = choose(digits.test, 40, 0)
    images = few.images.float() / 255
    with torch.no_grad():
        before, after = (run.predictor.eval()(x).argmax(1) == few.labels for x in (images, 1 - images))
    assert found.attacks[OWN].success_rate == pytest.approx((before & ~after).sum().item() / before.sum().item())
    assert found.attacks[OWN].robust_accuracy == pytest.approx((before & after).double().mean().item())
    assert (found.attacks[OWN].eps, found.attacks[BUDGETED].eps, found.attacks["noise"].eps) == (None, 0.25, 8 / 255)
    written = json.loads((tmp_path / "audit.json").read_text())
    assert written["attacks"].keys() == found.attacks.keys()
    assert written["attacks"][OWN]["eps"] is None
    name, number = find_number(f"attacks.{OWN}.success_rate", written)
    assert (name, number.value) == (f"attacks.{OWN}.success_rate", float(found.attacks[OWN].success_rate))
    page = sf.write_page(tmp_path / "report.html", [tmp_path]).read_text()
    assert f"<td>{OWN}</td><td>its own</td><td>40</td>" in page
    assert f"<td>{BUDGETED}</td><td>63.75/255</td>" in page
    assert "<td>random noise</td>" in page
    assert any(line.startswith(f"The attack {OWN} turns") for line in verdict(read_audit(tmp_path)))


def test_a_depth_of_ones_own_may_name_it(run, digits, little):
    found = sf.audit(run.predictor, digits, depth=little.having(attacks={"names": (OWN,)}), progress=False)
    assert list(found.attacks) == [OWN]


def test_an_attack_that_was_edited_is_other_work(run, digits, little, tmp_path, monkeypatch):
    keys = []
    for attack in (inverted, inverted, lambda model, images, labels: images):
        monkeypatch.setitem(globals(), "inverted", attack)
        sf.audit(run.predictor, digits, depth=little, attacks=[OWN], output=tmp_path, progress=False)
        keys.append(read_plan(tmp_path / "audit-data").about["code"])
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("attacks", "error", "message"),
    [
        (["fsgm"], UnknownName, "Unknown attack 'fsgm'. Did you mean 'fgsm'"),
        (["math:pi"], SurefootError, "attack 'math:pi' must be a function of"),
        ("fgsm", SurefootError, "attacks must be a list of names, got 'fgsm'"),
    ],
)
def test_a_wrong_name_is_refused_before_anything_is_measured(digits, attacks, error, message):
    with pytest.raises(error, match=message):
        sf.audit(torch.nn.Identity(), digits, attacks=attacks, progress=False)


def test_images_outside_the_range_are_no_attack(run, digits, little):
    with pytest.raises(SurefootError, match=r"an attack's images must be in \[0, 1\]"):
        sf.audit(run.predictor, digits, depth=little, attacks=[OUTSIDE], progress=False)


def test_its_numbers_in_words():
    assert measure("attacks.my.module:attack.success_rate") == "my.module:attack success"
    assert measure("attacks.fgsm.success_rate") == "FGSM success"
