import json

import pytest
import torch

import surefoot as sf
from surefoot.auditing.result import AUDIT
from surefoot.errors import SurefootError, UnknownName
from surefoot.models.prediction import predict


@pytest.fixture(scope="module")
def audit(run, digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    return sf.audit(run.predictor, digits, name="ce", output=folder, progress=False), folder


def test_numbers_against_a_plain_pass(audit, run, digits):
    found, _ = audit
    run.model.eval()
    images, labels = digits.test.images.float() / 255, digits.test.labels
    with torch.no_grad():
        logits = run.model(images)
        noisy = run.model(sf.corruptions.corrupt(images, "gaussian_noise", 4, indices=digits.test.indices))
    assert found.calibration.accuracy == pytest.approx((logits.argmax(1) == labels).double().mean().item())
    assert found.calibration.nll == pytest.approx(torch.nn.functional.cross_entropy(logits, labels).item(), rel=1e-4)
    cell = found.corruptions["gaussian_noise"][3]
    assert cell.severity == 4
    assert cell.accuracy == pytest.approx((noisy.argmax(1) == labels).double().mean().item(), abs=1e-9)
    right = logits.argmax(1) == labels
    attacked = sf.attacks.fgsm(run.model, images, labels, 8 / 255)
    with torch.no_grad():
        wrong = run.model(attacked).argmax(1) != labels
    assert found.attacks["fgsm"].success_rate == pytest.approx((right & wrong).sum().item() / right.sum().item(), abs=0.01)
    assert found.attacks["fgsm"].robust_accuracy == pytest.approx((right & ~wrong).double().mean().item(), abs=0.01)
    assert found.geometry.mean_margin == pytest.approx(sf.geometry.margins(run.model, images, labels).mean().item(), rel=1e-3)


def test_mean_accuracy_is_the_mean_over_all_cells(audit):
    found, _ = audit
    assert len(found.corruptions.cells) == 5 * 3
    mean = sum(cell.accuracy for cell in found.corruptions.cells) / len(found.corruptions.cells)
    assert found.corruptions.mean_accuracy == pytest.approx(mean)


def test_every_number_has_an_interval_around_it(audit):
    found, _ = audit
    numbers = [found.calibration.accuracy, found.calibration.nll, found.corruptions.mean_accuracy]
    numbers += [cell.accuracy for cell in found.corruptions.cells] + [found.attacks["fgsm"].success_rate]
    assert all(number.low <= number <= number.high for number in numbers)


def test_what_is_written(audit):
    found, folder = audit
    written = json.loads((folder / AUDIT).read_text())
    assert written == found.to_dict()
    assert written["schema"] == 2
    assert written["calibration"]["ece"] == {
        "value": float(found.calibration.ece),
        "low": found.calibration.ece.low,
        "high": found.calibration.ece.high,
    }
    assert written["subject"]["images"] == len(found.predictions)
    assert sorted(p.name for p in (folder / "audit-data").iterdir()) == ["points.json", "predictions.safetensors"]


def test_same_seed_same_numbers_other_seed_other_noise(audit, run, digits):
    again = sf.audit(run.predictor, digits, name="ce", batch_size=100, progress=False).to_dict()
    first = audit[0].to_dict()
    for part in ("calibration", "corruptions", "attacks"):
        assert flat(again[part]) == pytest.approx(flat(first[part]), abs=1e-3)


def flat(value):
    if isinstance(value, dict):
        return [x for item in value.values() for x in flat(item)]
    if isinstance(value, list):
        return [x for item in value for x in flat(item)]
    return [value] if isinstance(value, float) else []


def test_the_model_is_left_in_its_mode(run, digits):
    run.model.train()
    sf.audit(run.predictor, digits, split="calibration", progress=False)
    assert run.model.training
    assert all(p.requires_grad for p in run.model.parameters())


def test_unknown_split(run, digits):
    with pytest.raises(UnknownName, match=r"Unknown split 'tset'\. Did you mean 'test'\?"):
        sf.audit(run.predictor, digits, split="tset", progress=False)


def test_temperature_of_a_run_and_of_a_foreign_model(run, digits):
    """By default nothing is known of the model, so each half of the images gets the temperature of the other."""
    foreign = sf.audit(run.predictor, digits, progress=False).temperature
    assert foreign.fitted_on == "two-fold cross-fitting on the test split"
    assert (len(foreign.temperatures), foreign.images) == (2, len(digits.test))
    own = sf.audit(run.predictor, digits, calibrate_on="calibration", progress=False)
    clean = own.predictions
    answers = predict(run.predictor, digits.calibration.batches(256))
    fitted = sf.calibration.fit_temperature(answers)
    assert own.temperature.temperatures == pytest.approx((fitted.temperature,))
    after = sf.calibration.scores(fitted.calibrate(clean))
    assert own.temperature.calibration.nll == pytest.approx(after.nll)
    assert own.temperature.calibration.accuracy == own.calibration.accuracy
    cells = own.corruptions.cells
    assert own.temperature.corrupted_scaled_ece == pytest.approx(sum(cell.scaled_ece for cell in cells) / len(cells))
    given = sf.audit(run.predictor, digits, calibrate_on=answers, progress=False).temperature
    assert given.temperatures == own.temperature.temperatures
    with pytest.raises(SurefootError, match="must not be the training split"):
        sf.audit(run.predictor, digits, calibrate_on="train", progress=False)
    with pytest.raises(SurefootError, match="images were fitted on"):
        sf.audit(run.predictor, digits, calibrate_on="test", progress=False)


def test_a_randomised_predictor_gives_the_same_audit_twice(digits):
    """Random self-ensemble draws anew at every call; the audit's seed decides what."""
    model = sf.adapt(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10)), 0.5, 0.5, 32)
    ensemble = sf.objectives.RandomSelfEnsemble(noise_std=0.3, test_draws=2).predictor(model)
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    first, second = (sf.audit(ensemble, digits, progress=False) for _ in range(2))
    assert torch.equal(torch.rand(1), expected)  # the caller's generator is given back
    assert torch.equal(first.predictions.logits, second.predictions.logits)
    assert first.corruptions.mean_accuracy == second.corruptions.mean_accuracy
