"""Several predictions as one: averages and uncertainties by hand, draws, views, audits and the command."""

import json

import numpy as np
import pytest
import torch
from scipy.stats import entropy
from torch import nn

import surefoot as sf
from surefoot.auditing.depths import Depth
from surefoot.errors import SurefootError
from surefoot.models._export import export
from surefoot.models.ensembles import moved, uncertainties


def small(seed, classes=4):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, classes)).eval()


def test_probabilities_are_averaged():
    members, images = [small(seed) for seed in range(3)], torch.rand(5, 3, 8, 8)
    expected = sum(member(images).softmax(1) for member in members) / 3
    assert torch.allclose(sf.Ensemble(members)(images).softmax(1), expected, atol=1e-6)
    assert torch.allclose(sf.Ensemble(members)(images).exp().sum(1), torch.ones(5), atol=1e-5)
    twice = sf.Ensemble([members[0], members[0]])(images)
    assert torch.allclose(twice.softmax(1), members[0](images).softmax(1), atol=1e-6)


def test_uncertainties_by_hand():
    logits = torch.randn(5, 30, 4, dtype=torch.float64) * 3
    found, p = uncertainties(logits), logits.softmax(2).numpy()
    for row in range(30):
        own = p[:, row]
        assert float(found["mutual_information"][row]) == pytest.approx(
            entropy(own.mean(0)) - np.mean([entropy(each) for each in own]), abs=1e-9
        )
        votes = own.argmax(1)
        assert float(found["variation_ratio"][row]) == pytest.approx(1 - np.bincount(votes).max() / 5)
        pairs = [votes[i] != votes[j] for i in range(5) for j in range(5) if i != j]
        assert float(found["disagreement"][row]) == pytest.approx(np.mean(pairs))
    same = uncertainties(logits[:1].expand(3, -1, -1))
    assert all(float(values.abs().max()) < 1e-12 for values in same.values())


def test_dropout_draws_and_leaves_the_model_as_it_was():
    model, images = small(0), torch.rand(6, 3, 8, 8)
    dropping = sf.MonteCarloDropout(model, draws=4)
    with torch.no_grad():
        logits = dropping.member_logits(images)
    assert logits.shape == (4, 6, 4)
    assert not torch.allclose(logits[0], logits[1])
    assert not any(layer.training for layer in model.modules())
    torch.manual_seed(3)
    first = dropping(images)
    torch.manual_seed(3)
    assert torch.equal(first, dropping(images))
    with pytest.raises(SurefootError, match="no dropout"):
        sf.MonteCarloDropout(nn.Linear(2, 2))


def test_views_of_a_picture():
    images = torch.rand(2, 3, 8, 8)
    views = sf.TestTimeAugmentation(small(0), shift=0.125).views(images)
    assert len(views) == 10
    assert torch.equal(views[0], images)
    assert torch.equal(views[5], images.flip(-1))
    down = moved(images, 1, 0)
    assert torch.equal(down[:, :, 1:], images[:, :, :-1])
    assert torch.equal(down[:, :, 0], images[:, :, 0])
    assert torch.equal(moved(images, 0, -2)[..., :-2], images[..., 2:])
    assert len(sf.TestTimeAugmentation(small(0), shift=0).views(images)) == 2


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sf.Ensemble([small(0)]), "at least 2"),
        (lambda: sf.Ensemble([small(0), "runs/b"]), "models must be modules"),
        (lambda: sf.MonteCarloDropout(small(0), draws=1), "draws must be at least 2"),
        (lambda: sf.TestTimeAugmentation(small(0), shift=0.5), "shift must be"),
        (lambda: sf.TestTimeAugmentation(small(0), flip=False, shift=0), "flip must be on"),
    ],
)
def test_what_is_none(make, said):
    with pytest.raises(SurefootError, match=said):
        make()


def test_an_audit_has_columns_and_scores_of_the_members(digits):
    models = [sf.load_model("tiny-resnet", data=digits, seed=seed).eval() for seed in (0, 1)]
    ensemble = sf.Ensemble(models)
    with pytest.raises(SurefootError, match="differ in num_classes"):
        sf.Ensemble([models[0], sf.load_model("tiny-resnet", num_classes=3, image_size=32, seed=0)])
    depth = Depth("quick", {"foreign": {"max_images": 30}})
    audit = sf.audit(ensemble, digits, depth=depth, foreign=["noise-uniform"], progress=False)
    rows = audit.table("clean")
    expected = uncertainties(ensemble.member_logits(digits.test.images[:20].float() / 255).detach())
    order = np.searchsorted(rows["index"], digits.test.indices[:20].numpy())
    for name, values in expected.items():
        assert rows[name].to_numpy()[order] == pytest.approx(values.numpy(), abs=1e-4)
    assert set(audit.measurements["members"]) >= {"mutual_information", "variation_ratio", "disagreement"}
    assert "mutual-information" in audit.foreign["sets"]["noise-uniform"]["scores"]
    assert "energy" in audit.foreign["sets"]["noise-uniform"]["scores"]
    fitted = sf.calibration.fit_temperature(audit.predictions)
    assert fitted.module(ensemble)(digits.test.images[:3].float() / 255).shape == (3, 10)


def test_the_command_audits_runs_as_one(run, surefoot, tmp_path, monkeypatch):
    from surefoot.auditing import depths

    monkeypatch.setitem(depths.DEPTHS, "quick", Depth("quick", {}))
    outcome = surefoot("audit", "--ensemble", run.folder, run.folder, "--output", tmp_path, "--json", "--quiet")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["measurements"]["members"]["disagreement"]["value"] == 0
    for arguments, said in (
        ((run.folder, run.folder), "give --ensemble"),
        (("--ensemble", run.folder), "two run folders or more"),
    ):
        outcome = surefoot("audit", *arguments)
        assert (outcome.code, said in outcome.err) == (2, True)


@pytest.mark.parametrize(("suffix", "format"), [(".onnx", "onnx"), (".pt2", "torch")])
def test_calibrated_and_exported_like_any_model(tmp_path, suffix, format):
    """The file of an ensemble, and of views at test time, against torch; the temperature is behind the average."""
    images, labels = torch.rand(40, 3, 8, 8), torch.arange(40) % 4
    several = sf.Ensemble([small(0), sf.TestTimeAugmentation(small(1), shift=0.125)])
    with torch.no_grad():
        logits = several(images)
    fitted = sf.calibration.fit_temperature(sf.Predictions.from_logits(logits, labels))
    path = tmp_path / f"several{suffix}"
    export(several, images, path, format=format, temperature=fitted.temperature)
    expected = fitted.module(several)(images).softmax(1).detach()
    if format == "onnx":
        from onnxruntime import InferenceSession

        found = torch.from_numpy(InferenceSession(str(path)).run(["probabilities"], {"images": images.numpy()})[0])
    else:
        found = torch.export.load(path).module()(images)[0]
    assert torch.allclose(found, expected, atol=1e-5)


def test_dropout_that_draws_is_not_written(tmp_path):
    with pytest.raises(SurefootError, match="draws at random when it predicts"):
        export(sf.MonteCarloDropout(small(0)), torch.rand(3, 3, 8, 8), tmp_path / "a.onnx")


def test_the_command_exports_runs_as_one(run, surefoot, tmp_path):
    path = tmp_path / "both.pt2"
    given = ("--ensemble", run.folder, run.folder, "--format", "torch", "--output", path, "--temperature", "fit")
    outcome = surefoot("export", *given, "--json")
    assert outcome.code == 0, outcome.err
    assert "calibration" in json.loads(outcome.out)["calibration"]
    images = torch.rand(3, 3, 32, 32)
    temperature = json.loads(outcome.out)["temperature"]
    expected = (run.predictor(images).log_softmax(1) / temperature).softmax(1)
    assert torch.allclose(torch.export.load(path).module()(images)[0], expected, atol=1e-5)
    outcome = surefoot("export", run.folder, run.folder)
    assert (outcome.code, "give --ensemble" in outcome.err) == (2, True)
