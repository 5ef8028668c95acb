"""The geometry in an audit is what the functions of geometry give on the same images."""

import pytest
import torch

import surefoot as sf
from surefoot.data.subsets import choose
from surefoot.measurements.context import Context
from surefoot.models.last_layer import head_of


@pytest.fixture(scope="module")
def only(small):
    """Geometry and one attack on the same images, and as little as possible of the rest."""
    nothing = {"noise": None, "noise_uniform": None, "occlusions": None, "security_curve": None}
    return small.having(corruptions={"names": ("contrast",), "severities": (1,), "max_images": 10}, **nothing)


@pytest.fixture(scope="module")
def audit(run, digits, only):
    return sf.audit(run.predictor, digits, depth=only, progress=False)


def test_numbers_of_the_representation(audit, run, digits):
    few = choose(digits.test, 40, 0)
    images = few.images.float() / 255
    with torch.no_grad():
        found = run.model.eval().outputs(images)
    means = sf.geometry.class_means(found.features, few.labels, found.logits.argmax(1), num_classes=10)
    measured = audit.geometry.measured
    plain = sf.geometry.representation_statistics(head_of(run.model, images), found.features, few.labels)
    assert measured["images"] == 40
    assert measured["feature_rms"] == pytest.approx(found.features.square().mean(1).sqrt().mean().item(), rel=1e-4)
    assert measured["exact_cone_index"] == pytest.approx(plain.cones.mean, rel=1e-3)
    assert measured["bias_dependence"] == pytest.approx(plain.bias.mean, abs=1e-6)
    assert means.shape == (10, found.features.shape[1])
    gaps = sf.geometry.margins(run.model, images, few.labels).mean()
    ratio = measured["margin_to_sensitivity"]
    assert ratio == pytest.approx(float(gaps) / measured["sensitivity"], rel=1e-3)
    assert measured["curvature"] > 0
    assert any("not a certificate" in note for note in audit.geometry.notes)


def test_figures_say_which_images_an_attack_broke(audit, run, digits):
    shown = audit.figures["geometry"]["features"]
    few = choose(digits.test, 40, 0)
    result = sf.attacks.evaluate(run.predictor, few.images.float() / 255, few.labels, "fgsm")
    assert list(shown["success"]["attacks"]) == ["fgsm"]
    assert len(shown["rms"]) == len(shown["cosine"]) == 40
    bins = shown["success"] | {"values": shown["success"]["attacks"]["fgsm"]}
    assert sum(bins["counts"]) == 40
    right = result.clean.correct
    wanted = sf.geometry.success_by_bin(torch.tensor(shown["cosine"]), result.broken, right)
    assert bins["edges"] == pytest.approx(wanted.edges.tolist(), abs=1e-3)
    total = sum(rate * count for rate, count in zip(bins["values"], among(bins, shown["cosine"], right), strict=True) if count)
    assert total == pytest.approx(int(result.broken.sum()), abs=1.01)  # a cosine that was rounded may change its bin


def among(bins, cosine, right):
    """How many right images each bin holds."""
    place = torch.bucketize(torch.tensor(cosine, dtype=torch.float64), torch.tensor(bins["edges"][1:-1]).double(), right=True)
    return torch.bincount(place[right], minlength=len(bins["counts"])).tolist()


def test_curvature_is_computed_once_where_it_is_measured(audit):
    shown = audit.figures["geometry"]["curvature"]
    values, counted = torch.tensor(shown["values"]), shown["by_count"]
    assert sum(counted["counts"]) == len(values) == 40
    whole = sum(mean * count for mean, count in zip(counted["values"], counted["counts"], strict=True) if count) / 40
    assert whole == pytest.approx(float(values.mean()), rel=1e-3)
    assert whole == pytest.approx(float(audit.geometry.measured["curvature"]), rel=1e-3)
    right = sum(number * count for number, count in enumerate(counted["counts"])) / (40 * counted["draws"])
    assert shown["accuracy"]["values"][-1] == pytest.approx(right)
    assert shown["spread"]["values"][0] == pytest.approx(
        sf.geometry.curvature_spread({"": values}).values[0].tolist(), rel=1e-3
    )


def test_a_plane_where_there_is_one(digits, only):
    model = sf.load_model("tiny-resnet", data=digits, feature_dim=2, seed=0)
    plane = sf.audit(model, digits, depth=only, progress=False).figures["geometry"]["plane"]
    assert len(plane["plane"]["features"][0]) == 2
    assert len(plane["path"]["features"]) > 1


def test_what_a_model_does_not_allow_is_said(digits, only, squared):
    audit = sf.audit(squared, digits, depth=only, progress=False)
    found = audit.geometry
    assert any(
        line.startswith("Left out, since it does not end in one linear layer: features") for line in audit.subject["model"]
    )
    assert "feature_rms" not in found.measured
    assert "curvature" in found.measured


def test_places_of_images_in_a_split(digits):
    few = choose(digits.test, 5, 0)
    context = Context(torch.nn.Identity(), digits, digits.test, torch.device("cpu"))
    assert torch.equal(digits.test.indices[context.rows_at(few.indices)], few.indices)
