import base64
import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

import surefoot as sf
from surefoot.attacks.cache import fingerprint
from surefoot.auditing.arguments import AUDIT
from surefoot.auditing.depths import Depth, deeper, geometry
from surefoot.auditing.migration import SCHEMA
from surefoot.auditing.table import key_of
from surefoot.corruptions import COMMON15, NAMES
from surefoot.data.subsets import choose
from surefoot.errors import SurefootError, UnknownName
from surefoot.measurements.pictures import feature_scale_grid
from surefoot.models.classifier import predict


@pytest.fixture(scope="module")
def audit(run, digits, small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    return sf.audit(run.predictor, digits, depth=small, name="ce", output=folder, progress=False), folder


def test_groups_are_counted_before_anything_is_measured(digits):
    with pytest.raises(SurefootError, match=f"one for each of {len(digits.test)} images, got 2"):
        sf.audit(torch.nn.Identity(), digits, groups=["a", "b"], progress=False)


def test_an_audit_knows_its_table_and_weights(audit, run):
    _, folder = audit
    subject = json.loads((folder / AUDIT).read_text())["subject"]
    assert subject["table"] == key_of(folder / "audit-data" / "table")
    assert subject["weights"] == fingerprint(run.predictor)


def test_numbers_against_a_plain_pass(audit, run, digits):
    found, _ = audit
    run.model.eval()
    images, labels = digits.test.images.float() / 255, digits.test.labels
    with torch.no_grad():
        logits = run.model(images)
    assert found.calibration.accuracy == pytest.approx((logits.argmax(1) == labels).double().mean().item())
    assert found.calibration.nll == pytest.approx(torch.nn.functional.cross_entropy(logits, labels).item(), rel=1e-4)
    chosen = choose(digits.test, 60, 0)
    pictures = chosen.images.float() / 255
    with torch.no_grad():
        noisy = run.model(sf.corruptions.corrupt(pictures, "gaussian_noise", 4, indices=chosen.indices))
    cell = found.corruptions["gaussian_noise"][1]
    assert (cell.severity, cell.origin) == (4, "generated with seed 0")
    plain = sf.calibration.scores(sf.Predictions.from_logits(noisy, chosen.labels), intervals=0)
    for name in ("accuracy", "ece", "nll", "rms"):
        assert getattr(cell, name) == pytest.approx(getattr(plain, name), rel=1e-4, abs=1e-6)
    few = choose(digits.test, 40, 0)
    pictures = few.images.float() / 255
    attacked = sf.attacks.fgsm(run.model, pictures, few.labels, 8 / 255)
    with torch.no_grad():
        right = run.model(pictures).argmax(1) == few.labels
        after = run.model(torch.where(right[:, None, None, None], attacked, pictures))
    wrong = after.argmax(1) != few.labels
    assert found.attacks["fgsm"].success_rate == pytest.approx((right & wrong).sum().item() / right.sum().item())
    assert found.attacks["fgsm"].robust_accuracy == pytest.approx((right & ~wrong).double().mean().item())
    assert found.attacks["fgsm"].confidence == pytest.approx(after.softmax(1).amax(1).mean().item(), rel=1e-4)
    assert found.geometry.mean_margin == pytest.approx(sf.geometry.margins(run.model, images, labels).mean().item(), rel=1e-3)


def test_means_over_the_cells(audit):
    found, _ = audit
    worse = found.corruptions
    assert [(cell.name, cell.severity) for cell in worse.cells] == [
        ("gaussian_noise", 1), ("gaussian_noise", 4), ("contrast", 1), ("contrast", 4)
    ]  # fmt: skip
    for name in ("accuracy", "ece", "nll", "rms"):
        mean = sum(getattr(cell, name) for cell in worse.cells) / 4
        assert getattr(worse, f"mean_{name}") == pytest.approx(mean)
    assert worse.families.keys() == {"noise", "digital"}
    assert worse.families["noise"].accuracy == pytest.approx(sum(cell.accuracy for cell in worse["gaussian_noise"]) / 2)
    assert worse.mean_error is None  # the benchmark's mean is over its fifteen
    assert [(level.kind, level.draws) for level in found.noise] == [("gaussian", 2), ("uniform", 2)]
    names = ["occlusion", "occlusion+noise", "down_up", "down_up+occlusion", "stripes", "down_up+stripes"]
    assert [condition.name for condition in found.occlusions] == names
    assert [point["eps"] for point in found.security_curve] == [0, 2 / 255]
    assert found.security_curve[1]["accuracy"] <= found.security_curve[0]["accuracy"]


def test_mean_error_is_the_benchmarks(run, few):
    """Over the fifteen corruptions of ImageNet-C: one minus their mean accuracy, whatever the other four do."""
    depth = Depth("one", {"corruptions": {"names": NAMES, "severities": (3,), "max_images": 20}})
    worse = sf.audit(run.predictor, few, depth=depth, progress=False).corruptions
    fifteen = [cell.accuracy for cell in worse.cells if cell.name in COMMON15]
    assert len(fifteen) == 15
    assert worse.mean_error == pytest.approx(1 - sum(fifteen) / 15)
    assert worse.mean_error.low <= worse.mean_error <= worse.mean_error.high


def test_every_number_has_an_interval_around_it(audit):
    found, _ = audit
    numbers = [found.calibration.accuracy, found.calibration.nll, found.corruptions.mean_accuracy]
    numbers += [cell.accuracy for cell in found.corruptions.cells] + [found.attacks["fgsm"].success_rate]
    assert all(number.low <= number <= number.high for number in numbers)


def test_what_is_written(audit):
    found, folder = audit
    written = json.loads((folder / AUDIT).read_text())
    assert written == found.to_dict()
    assert written["schema"] == SCHEMA
    assert written["calibration"]["ece"] == {
        "value": float(found.calibration.ece),
        "low": found.calibration.ece.low,
        "high": found.calibration.ece.high,
    }
    assert written["subject"]["images"] == len(found.predictions)
    kept = sorted(path.name for path in (folder / "audit-data").iterdir())
    assert kept == ["plan.json", "points.json", "table"]


def test_same_seed_same_numbers_other_seed_other_noise(audit, run, digits, small):
    fewer = Depth("small", {name: small.measure[name] for name in ("corruptions", "attacks")})
    again = sf.audit(run.predictor, digits, name="ce", batch_size=100, depth=fewer, progress=False).to_dict()
    first = audit[0].to_dict()
    for part in ("calibration", "corruptions", "attacks"):
        assert flat(again[part]) == pytest.approx(flat(first[part]), abs=1e-3)


def flat(value):
    if isinstance(value, dict):
        return [x for item in value.values() for x in flat(item)]
    if isinstance(value, list):
        return [x for item in value for x in flat(item)]
    return [value] if isinstance(value, float) else []


def test_the_model_is_left_in_its_mode(run, few, small):
    run.model.train()
    sf.audit(run.predictor, few, depth=small, progress=False)
    assert run.model.training
    run.model.eval()
    assert all(p.requires_grad for p in run.model.parameters())


def test_unknown_split(run, digits, small):
    with pytest.raises(UnknownName, match=r"Unknown split 'tset'\. Did you mean 'test'\?"):
        sf.audit(run.predictor, digits, split="tset", depth=small, progress=False)


def test_temperature_of_a_run_and_of_a_foreign_model(run, few, small):
    """By default nothing is known of the model, so each half of the images gets the temperature of the other."""
    small = Depth("small", {"corruptions": small.measure["corruptions"]})
    foreign = sf.audit(run.predictor, few, depth=small, progress=False).temperature
    assert foreign.fitted_on == "two-fold cross-fitting on the test split"
    assert (len(foreign.temperatures), foreign.images) == (2, len(few.test))
    own = sf.audit(run.predictor, few, calibrate_on="calibration", depth=small, progress=False)
    clean = own.predictions
    answers = predict(run.predictor, few.calibration.batches(256))
    fitted = sf.calibration.fit_temperature(answers)
    assert own.temperature.temperatures == pytest.approx((fitted.temperature,))
    after = sf.calibration.scores(fitted.calibrate(clean))
    assert own.temperature.calibration.nll == pytest.approx(after.nll)
    assert own.temperature.calibration.accuracy == own.calibration.accuracy
    cells = own.corruptions.cells
    assert own.temperature.corrupted_scaled_ece == pytest.approx(sum(cell.scaled_ece for cell in cells) / len(cells))
    given = sf.audit(run.predictor, few, calibrate_on=answers, depth=small, progress=False).temperature
    assert given.temperatures == own.temperature.temperatures
    with pytest.raises(SurefootError, match="must not be the training split"):
        sf.audit(run.predictor, few, calibrate_on="train", depth=small, progress=False)
    with pytest.raises(SurefootError, match="images were fitted on"):
        sf.audit(run.predictor, few, calibrate_on="test", depth=small, progress=False)


def test_a_randomised_predictor_gives_the_same_audit_twice(few, small):
    """Random self-ensemble draws anew at every call; the audit's seed decides what."""
    model = sf.adapt(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10)), 0.5, 0.5, 32)
    ensemble = sf.objectives.RandomSelfEnsemble(noise_std=0.3, test_draws=2).predictor(model)
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    first, second = (sf.audit(ensemble, few, depth=small, progress=False) for _ in range(2))
    assert torch.equal(torch.rand(1), expected)  # the caller's generator is given back
    assert torch.equal(first.predictions.logits, second.predictions.logits)
    assert first.corruptions.mean_accuracy == second.corruptions.mean_accuracy


def test_as_a_table_for_pandas_and_for_a_notebook(audit):
    found, _ = audit
    frame = found.to_dataframe().set_index("name")
    assert frame.loc["calibration.ece", "value"] == found.calibration.ece
    assert frame.loc["corruptions.cells.contrast.4.accuracy", "high"] == found.corruptions["contrast"][1].accuracy.high
    assert frame.loc["geometry.measured.curvature", "value"] == found.geometry.measured["curvature"]
    shown = replace(found, subject={**found.subject, "name": "<b>"})._repr_html_()
    assert f"{found.calibration.ece:.4f}" in shown
    assert "&lt;b&gt;" in shown


@pytest.fixture(scope="module")
def only():
    """One corruption and the geometry of an audit at standard depth."""
    worse = {"corruptions": {"names": ("contrast",), "severities": (1, 2), "max_images": 10}}
    return Depth("standard", {**worse, **geometry(40, 2), **deeper(40)})


def test_a_class_without_images(run, digits, only, tmp_path):
    """What is not defined is null in the files, at once and not only when the audit is read again."""
    rows = digits.test.labels != 3
    held = replace(digits.test, **{key: getattr(digits.test, key)[rows] for key in ("images", "labels", "indices")})
    sf.audit(run.predictor, replace(digits, test=held), depth=only, output=tmp_path, progress=False)
    points = json.loads((tmp_path / "audit-data" / "points.json").read_text())
    assert "NaN" not in (tmp_path / "audit-data" / "points.json").read_text()
    shapes = points["geometry"]["class_shapes"]
    assert shapes["margins"][3] is None
    assert shapes["margins"][2] is not None


@pytest.mark.parametrize("layout", ["arrays", "folders"])
def test_copies_on_disk(run, few, tmp_path, layout):
    """The cells are those of the same images generated, rounded to bytes."""
    copies = sf.corruptions.write(few, tmp_path / "c", names=["contrast"], layout=layout, seed=0, progress=False)
    depth = Depth("standard", {"corruptions": {"names": ("contrast",), "severities": (1, 2)}})
    generated, read = (sf.audit(run.predictor, few, depth=depth, corrupted=folder, progress=False) for folder in (None, copies))
    for ours, theirs in zip(generated.corruptions.cells, read.corruptions.cells, strict=True):
        assert theirs.origin == f"read from {copies}"
        assert theirs.nll == pytest.approx(ours.nll, rel=0.02)
        assert theirs.accuracy == pytest.approx(ours.accuracy, abs=0.01)
    shown, expected = (each.figures["examples"] for each in (read, generated))
    assert shown["labels"] == expected["labels"]
    assert pixels(shown["cells"]["contrast/2"]["pictures"][1]) == pytest.approx(
        pixels(expected["cells"]["contrast/2"]["pictures"][1]), abs=1
    )
    with pytest.raises(SurefootError, match="holds 60 images, and the split has 178"):
        sf.audit(run.predictor, few, split="calibration", depth=depth, corrupted=copies, progress=False)


def pixels(url):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))).astype(int)


class Misnamed(torch.nn.Module):
    """Its `head` is not its last layer."""

    def __init__(self):
        super().__init__()
        self.head, self.out = torch.nn.Linear(3072, 16), torch.nn.Linear(16, 10)

    def forward(self, images):
        return self.out(self.head(images.flatten(1)).relu())


def test_the_final_layer_is_found_whatever_its_name(few, only):
    net = Misnamed()
    found = sf.audit(net, few, depth=only, progress=False)
    answers = found.predictions
    expected = feature_scale_grid(answers, net.out.bias)
    assert found.figures["feature_scales"] == expected
    assert expected is not None


def test_words_that_an_audit_says_itself(digits):
    with pytest.raises(SurefootError, match="provenance must be without the audit's own name, data, .*, got 'seed'"):
        sf.audit(torch.nn.Identity(), digits, provenance={"seed": "3"}, progress=False)
    answers = sf.Predictions.from_logits(torch.rand(4, 2), torch.tensor([0, 1, 0, 1]))
    with pytest.raises(SurefootError, match="got 'name'"):
        sf.audit_predictions(answers, provenance={"name": "x"})
