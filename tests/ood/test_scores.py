"""Every score against a second implementation, its limits, and what is refused."""

import numpy as np
import plain_scores as plain
import pytest
import torch

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.ood.detectors import OF_FEATURES, OF_LOGITS, fit_known, head_in
from surefoot.ood.known import Known, load_known

CLASSES, DIMENSIONS, KNOWN = 5, 24, 1500


@pytest.fixture(scope="module")
def space():
    """Known features in clusters, rectified, far from the origin in some directions; new ones of both kinds."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(CLASSES, DIMENSIONS)) * 2 + 3
    labels = random.integers(CLASSES, size=KNOWN)
    spread = random.normal(size=(DIMENSIONS, DIMENSIONS)) / 3
    known = np.maximum(centres[labels] + random.normal(size=(KNOWN, DIMENSIONS)) @ spread, 0)
    weight, bias = random.normal(size=(CLASSES, DIMENSIONS)) / 4, random.normal(size=CLASSES)
    new = np.maximum(np.concatenate([known[:20] + 0.1, random.normal(size=(40, DIMENSIONS)) * 3 + 1]), 0.01)
    return {"known": known, "labels": labels, "weight": weight, "bias": bias, "new": new}


def fitted(name, space, **options):
    known, weight, bias = (torch.tensor(space[key]).float() for key in ("known", "weight", "bias"))
    logits = known @ weight.T + bias
    given = {"logits": logits, "features": known, "labels": torch.tensor(space["labels"]), "head": (weight, bias), **options}
    return sf.ood.fit(name, **given)


def scored(name, space, **options):
    new, weight, bias = (torch.tensor(space[key]).float() for key in ("new", "weight", "bias"))
    return fitted(name, space, **options).score(logits=new @ weight.T + bias, features=new).double().numpy()


@pytest.mark.parametrize("name", OF_LOGITS)
def test_scores_of_logits_are_those_of_their_papers(name, space):
    f = space["new"] @ space["weight"].T + space["bias"]
    assert scored(name, space) == pytest.approx(getattr(plain, name.replace("-", "_"))(f), rel=2e-4, abs=1e-5)


def test_gen_takes_its_largest_probabilities_only():
    f = np.random.default_rng(1).normal(size=(8, 150))
    ours = sf.ood.fit("gen").score(logits=torch.tensor(f)).numpy()
    assert ours == pytest.approx(plain.gen(f), rel=1e-4)
    assert not np.allclose(ours, plain.gen(f, largest=150), rtol=1e-2)


@pytest.mark.parametrize("name", OF_FEATURES)
def test_scores_of_features_are_those_of_their_papers(name, space):
    known, labels, weight, bias, h = (space[key] for key in ("known", "labels", "weight", "bias", "new"))
    f, known_logits = h @ weight.T + bias, known @ weight.T + bias
    expected = {
        "react": lambda: plain.react(h, known, weight, bias),
        "scale": lambda: plain.scale(h, weight, bias),
        "mahalanobis": lambda: plain.mahalanobis(h, known, labels),
        "relative-mahalanobis": lambda: plain.relative_mahalanobis(h, known, labels),
        "knn": lambda: plain.knn(h, known),
        "vim": lambda: plain.vim(f, h, known, known_logits, weight, bias),
        "neco": lambda: plain.neco(f, h, known, CLASSES),
    }[name]()
    assert scored(name, space) == pytest.approx(expected, rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("name", sf.ood.NAMES)
def test_what_is_far_away_looks_more_foreign(name):
    """Two tight classes on two axes; a picture between them and small looks more foreign to every score."""
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(400) % 2
    known = 10 * torch.nn.functional.one_hot(labels, 6).float() + 0.3 * torch.rand(400, 6, generator=random)
    weight, bias = torch.eye(2, 6), torch.zeros(2)
    detector = sf.ood.fit(name, logits=known @ weight.T, features=known, labels=labels, head=(weight, bias))
    foreign = torch.tensor([[1.0, 0.8, 0.2, 2.0, 0.2, 0.2]])
    ours = detector.score(logits=known @ weight.T, features=known)
    assert float(detector.score(logits=foreign @ weight.T, features=foreign)) > float(ours.max())


def test_confident_scores_keep_their_digits():
    logits = torch.tensor([[40.0, 0.0], [30.0, 0.0]])
    for name in ("msp", "gen"):
        first, second = sf.ood.fit(name).score(logits=logits).tolist()
        assert 0 < first < second


def test_statistics_in_parts_are_those_of_the_whole(space, tmp_path):
    known, weight, labels = (
        torch.tensor(space["known"]).float(),
        torch.tensor(space["weight"]).float(),
        torch.tensor(space["labels"]),
    )
    logits = known @ weight.T
    whole, parts = Known.of(logits, known, labels, bank=100), Known(CLASSES, DIMENSIONS, bank=100)
    for start in range(0, KNOWN, 130):
        part = slice(start, start + 130)
        parts.add(logits[part], known[part], labels[part])
    for name in ("mean", "class_means", "covariance", "within", "features", "largest"):
        assert torch.allclose(getattr(whole, name).double(), getattr(parts, name).double(), atol=1e-4), name
    assert whole.within.numpy() == pytest.approx(plain_within(space), abs=1e-4)
    assert len(parts.features) == 100
    parts.save(tmp_path / "known.safetensors", {"weights": "abc"})
    back = load_known(tmp_path / "known.safetensors", {"weights": "abc"})
    head = head_in((weight, None))
    new = torch.tensor(space["new"]).float()
    for name in sf.ood.NAMES:
        one, two = (fit_known(name, each, head).score(logits=new @ weight.T, features=new) for each in (parts, back))
        assert torch.equal(one, two), name
    assert load_known(tmp_path / "known.safetensors", {"weights": "other"}) is None


def plain_within(space):
    centred = space["known"].copy()
    for c in range(CLASSES):
        centred[space["labels"] == c] -= centred[space["labels"] == c].mean(0)
    return centred.T @ centred / KNOWN


def test_directions_that_known_pictures_do_not_vary_in_are_left_out(space):
    wider = {**space, "known": np.pad(space["known"], ((0, 0), (0, 3))), "new": np.pad(space["new"], ((0, 0), (0, 3)))}
    wider["weight"] = np.pad(space["weight"], ((0, 0), (0, 3)))
    for name in ("mahalanobis", "relative-mahalanobis"):
        assert scored(name, wider) == pytest.approx(scored(name, space), rel=1e-3)
    for name in sf.ood.NAMES:
        assert np.isfinite(scored(name, wider)).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sf.ood.fit("energi"), "Did you mean 'energy'?"),
        (lambda: sf.ood.fit("knn"), "'knn' needs logits of known pictures."),
        (lambda: sf.ood.fit("knn", logits=torch.rand(4, 3), labels=torch.arange(4) % 3), "'knn' needs features of known"),
        (
            lambda: sf.ood.fit("vim", logits=torch.rand(4, 3), features=torch.rand(4, 2), labels=torch.arange(4) % 3),
            "needs the last linear layer: give head.",
        ),
        (lambda: sf.ood.fit("msp", logits=torch.rand(4, 1)), "at least 2 classes"),
        (lambda: sf.ood.fit("msp").score(), "'msp' needs logits"),
        (lambda: sf.ood.fit("msp").score(logits=torch.tensor([[float("nan"), 0]])), "must be finite"),
        (
            lambda: sf.ood.fit("knn", logits=torch.rand(4, 3), features=torch.rand(4, 2), labels=torch.arange(4) % 3).score(
                logits=torch.rand(1, 3)
            ),
            "'knn' needs features to score pictures.",
        ),
        (
            lambda: sf.ood.fit("knn", logits=torch.rand(1, 3), features=torch.rand(1, 2), labels=torch.tensor([0])),
            "at least two known pictures",
        ),
        (
            lambda: sf.ood.fit("knn", logits=torch.rand(2, 3), features=torch.rand(2, 2) / 0, labels=torch.tensor([0, 1])),
            "features must be finite",
        ),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(call, said):
    with pytest.raises(SurefootError) as error:
        call()
    assert said in str(error.value)
    assert "\n" not in str(error.value)
