"""Geometry as an audit has it is what the functions of geometry give on the same images, with intervals, figures and notes."""

import math
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from one_pass import context_of, rows_of, summary_of

from surefoot import geometry, load_model
from surefoot.attacks import evaluate
from surefoot.data.subsets import choose
from surefoot.errors import SurefootError
from surefoot.geometry.layers import main_blocks
from surefoot.measurements.bounds import Certificates, Complexity, MappingBound, favourable_bound
from surefoot.measurements.classes import Centres, CentreSearches, ClassShapes, Collapse
from surefoot.measurements.curvature import Curvature, CurvatureNoise, Fisher, Hessian, Landscape, LossSurface, Slopes
from surefoot.measurements.features import Bias, Cone, Displacement, Features, features_figure
from surefoot.measurements.layers import CLASSES, Layers, of_some_classes
from surefoot.measurements.plane import Plane
from surefoot.measurements.predictions import LogitStatistics, logit_geometry, logit_points
from surefoot.measurements.sensitivity import Radius, Sensitivity, Stability
from surefoot.measurements.summaries import columns_of, evenly
from surefoot.models.last_layer import head_of
from surefoot.seeds import generator
from surefoot.types import Batch

IMAGES = 30
CHUNK = 16


def batch_of(split, count=IMAGES):
    few = choose(split, count, 0)
    return Batch(few.images.float() / 255, few.labels, few.indices)


@pytest.fixture(scope="module")
def batch(digits):
    return batch_of(digits.test)


@pytest.fixture(scope="module")
def context(run, digits):
    run.model.eval()
    return context_of(run.predictor, digits)


@pytest.fixture(scope="module")
def space(run, batch):
    """The last layer and what enters it."""
    return head_of(run.predictor, batch.images), geometry.observed_features(run.predictor, batch.images).features


class Squared(torch.nn.Module):
    """A model that does not end in a linear layer."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3072, 10)

    def forward(self, images):
        return self.layer(images.flatten(1)).square()


PER_IMAGE = [
    Sensitivity(draws=2, max_images=20),
    Radius(draws=2, max_images=20),
    Stability(draws=2, max_images=20),
    Curvature(draws=2, max_images=20),
    CurvatureNoise(draws=2, curvature_draws=2, max_images=20),
    Hessian(draws=2, steps=2, max_images=20),
    Fisher(20),
    Slopes(max_images=20),
    LossSurface(points=3, max_images=20),
    Features(20),
    Displacement(20),
    Cone(20),
    ClassShapes(20),
    Certificates(draws=50, max_images=4),
]


@pytest.mark.parametrize("measurement", PER_IMAGE, ids=lambda each: type(each).__name__)
def test_columns_do_not_depend_on_the_chunk(measurement, context):
    whole = rows_of(measurement, replace(context, kept={}))
    apart = rows_of(measurement, replace(context, kept={}), 3)
    for name in measurement.adds:
        np.testing.assert_allclose(apart[name], whole[name], rtol=2e-3, atol=1e-4, err_msg=name)


def test_numbers_of_the_representation(context, run, digits):
    few = batch_of(digits.test, 40)
    with torch.no_grad():
        found = run.model.eval().outputs(few.images)
    plain = geometry.representation_statistics(head_of(run.model, few.images), found.features, few.labels)
    features, cones = (summary_of(each, context, CHUNK).values for each in (Features(40, attacked=0), Cone(40)))
    assert features["feature_rms"] == pytest.approx(found.features.square().mean(1).sqrt().mean().item(), rel=1e-4)
    assert features["feature_rms"].low < features["feature_rms"] < features["feature_rms"].high
    assert features["feature_rms_deviation"] == pytest.approx(plain.statistics.rms_std, rel=1e-3)
    assert features["feature_cosine"] == pytest.approx(plain.statistics.cosine_mean, rel=1e-4)
    assert features["feature_cosine_deviation"] == pytest.approx(plain.statistics.cosine_std, rel=1e-3)
    assert cones["exact_cone_index"] == pytest.approx(plain.cones.mean, rel=1e-3)
    assert cones["exact_full_cones"] == pytest.approx(plain.cones.full)
    assert summary_of(Bias(40), context).values["bias_dependence"] == pytest.approx(plain.bias.mean, abs=1e-6)
    kinds = summary_of(Centres(40), context).values["centre_correlations"]
    assert list(kinds) == ["class mean", "weight vector", "minimum-loss point"]
    assert list(kinds.values()) == pytest.approx(plain.correlations.values.tolist(), abs=1e-5)
    collapse = summary_of(Collapse(40), context).values["neural_collapse"]
    assert collapse["within_class"] == pytest.approx(plain.collapse.within_class, rel=1e-4)
    assert "classes" not in collapse
    moved = summary_of(Displacement(40), context, CHUNK)
    own = geometry.feature_displacement(run.model, few.images, few.labels)
    assert moved.values["perturbation_rms"] == pytest.approx(own.mean, rel=1e-4)
    assert moved.values["perturbation_correlation"] == pytest.approx(own.correlation, abs=1e-4)


def first_change(head, feature, label):
    """The paper's index by a loop: the first of 100 steps to the origin whose class is another one, 100 without any."""
    changed = [step for step in range(1, 100) if int(head(feature * (1 - step / 100)).argmax()) != label]
    return min(changed, default=100)


def test_the_cone_index_is_that_of_the_papers_steps(context, run, digits):
    """Of the right images alone; the exact one beside it is up to a step lower."""
    few = batch_of(digits.test, 40)
    model = deepcopy(run.model).eval()
    head = head_of(model, few.images)
    with torch.no_grad():
        head.bias.copy_(4 * torch.randn(head.out_features, generator=torch.Generator().manual_seed(0)))  # cut some cones
        outputs = model.outputs(few.images)
        right = (outputs.logits.argmax(1) == few.labels).nonzero().flatten().tolist()
        steps = [first_change(head, outputs.features[image], int(few.labels[image])) for image in right]
    found = summary_of(Cone(40), replace(context, space=model, kept={}), CHUNK)
    assert min(steps) < 95
    assert found.values["cone_index"] == pytest.approx(sum(steps) / len(steps))
    assert found.row["index_deviation"] == pytest.approx(np.std(steps))
    assert found.values["full_cones"] == pytest.approx(steps.count(100) / len(steps))
    assert found.figures["cones"]["values"] == steps
    assert 0 < found.values["cone_index"] - found.values["exact_cone_index"] < 1
    assert found.row["exact_index"] == found.values["exact_cone_index"]


def test_margin_to_sensitivity_and_the_radius(context, run, digits):
    few = batch_of(digits.test, 40)
    found = summary_of(Sensitivity(max_images=40), context, CHUNK)
    gaps = geometry.margins(run.model, few.images, few.labels)
    ratio = found.values["margin_to_sensitivity"]
    assert ratio == pytest.approx(float(gaps.mean()) / found.values["sensitivity"], rel=1e-3)
    assert ratio.low < ratio < ratio.high
    own = geometry.sensitivity(run.predictor, few.images, generator=generator(0, "sensitivity"), indices=few.indices)
    assert found.values["prediction_sensitivity"] == pytest.approx(own.probability_change.mean().item(), rel=1e-3)
    assert found.values["median_margin_to_sensitivity"] == pytest.approx((gaps / own.values).median().item(), rel=1e-3)
    assert set(found.figures["sensitivity"]) == {
        *("values", "probability_change", "std", "margins", "median", "ratio_of_means"),
    }
    radius = summary_of(Radius(max_images=40), context, CHUNK)
    about = geometry.radius_estimates(
        run.predictor, few.images, few.labels, generator=generator(0, "radius"), indices=few.indices
    )
    assert radius.values["radius"] == pytest.approx(about.values.mean().item(), rel=1e-3)
    assert radius.figures["radii"]["logit_radii"] == pytest.approx(about.logit_radii.tolist(), rel=2e-3, abs=1e-4)
    assert any("not a certificate" in note for note in radius.notes)


def test_figures_say_which_images_an_attack_broke(context, run, digits):
    few = batch_of(digits.test, 40)
    result = evaluate(run.predictor, few.images, few.labels, "fgsm")
    rows = rows_of(Features(40, attacked=0), context)
    attacked, untouched = (
        columns_of(logits, few.labels) | {"index": few.indices.numpy()}
        for logits in (result.attacked.logits, result.clean.logits)
    )
    shown = features_figure(rows, {"fgsm": attacked, "none": untouched})
    assert list(shown["success"]["attacks"]) == ["fgsm", "none"]
    assert {share for share in shown["success"]["attacks"]["none"] if share is not None} == {0}
    assert len(shown["rms"]) == len(shown["cosine"]) == 40
    bins = shown["success"] | {"values": shown["success"]["attacks"]["fgsm"]}
    assert sum(bins["counts"]) == 40
    right = result.clean.correct
    wanted = geometry.success_by_bin(torch.tensor(shown["cosine"]), result.broken, right)
    assert bins["edges"] == pytest.approx(wanted.edges.tolist(), abs=1e-3)
    total = sum(rate * count for rate, count in zip(bins["values"], among(bins, shown["cosine"], right), strict=True) if count)
    assert total == pytest.approx(int(result.broken.sum()), abs=1.01)  # a cosine that was rounded may change its bin
    half = {name: values[:20] for name, values in attacked.items()}
    tried = int((result.broken[:20] & right[:20]).sum())
    fewer = features_figure(rows, {"fgsm": half})["success"]
    fewer |= {"values": fewer["attacks"]["fgsm"]}
    only = torch.tensor([*right[:20].tolist(), *[False] * 20])
    counted = among(fewer, rows["feature_cosine"].tolist(), only)
    assert sum(rate * count for rate, count in zip(fewer["values"], counted, strict=True) if count) == pytest.approx(tried)
    assert features_figure(rows)["success"] is None


def among(bins, cosine, right):
    """How many right images each bin holds."""
    place = torch.bucketize(torch.tensor(cosine, dtype=torch.float64), torch.tensor(bins["edges"][1:-1]).double(), right=True)
    return torch.bincount(place[right], minlength=len(bins["counts"])).tolist()


def test_curvature_is_computed_once_where_it_is_measured(context, monkeypatch):
    found = summary_of(CurvatureNoise(curvature_draws=2, max_images=40), context)
    shown = found.figures["curvature"]
    values, counted = torch.tensor(shown["values"]), shown["by_count"]
    assert sum(counted["counts"]) == len(values) == 40
    whole = sum(mean * count for mean, count in zip(counted["values"], counted["counts"], strict=True) if count) / 40
    assert whole == pytest.approx(float(values.mean()), rel=1e-3)
    assert whole == pytest.approx(float(found.values["curvature"]), rel=1e-3)
    assert found.values["curvature"] > 0
    right = sum(number * count for number, count in enumerate(counted["counts"])) / (40 * counted["draws"])
    assert shown["accuracy"]["values"][-1] == pytest.approx(right)
    assert shown["spread"]["values"][0] == pytest.approx(geometry.curvature_spread({"": values}).values[0].tolist(), rel=1e-3)
    monkeypatch.setattr("surefoot.measurements.curvature.input_curvature", None)  # would fail if it were called again
    again = summary_of(Curvature(draws=2, max_images=40), context)
    assert float(again.values["curvature"]) == float(found.values["curvature"])


def test_what_is_kept_is_of_one_chunk(context):
    few, other = (batch_of(context.data.test, count) for count in (8, 9))
    fresh = replace(context, kept={})
    Curvature(draws=1).columns(fresh, few)
    kept = len(fresh.kept)
    fresh.forget()
    Curvature(draws=1).columns(fresh, other)
    assert len(fresh.kept) == kept


def test_a_plane_where_there_is_one(context, digits):
    model = load_model("tiny-resnet", data=digits, feature_dim=2, seed=0)
    plane = summary_of(Plane(40, paths=5), context_of(model, digits)).figures["plane"]
    assert len(plane["plane"]["features"][0]) == 2
    assert len(plane["path"]["features"]) > 1
    assert len(plane["path"]["features"][0]) == 5
    assert {"angles", "field", "field_path"} < set(plane)
    assert summary_of(Plane(40), context).figures == {}


@pytest.mark.parametrize(
    "measurement",
    [
        *(Features(), Centres(), Cone(), Bias(), Collapse(), Displacement(), ClassShapes(), CentreSearches(), MappingBound()),
        *(Layers(), Stability()),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_a_head_that_is_not_linear_does_not_allow(measurement, digits):
    context, few = context_of(Squared(), digits), batch_of(digits.test, 4)
    with pytest.raises(SurefootError, match="Squared must end in one linear layer"):
        measurement.columns(context, few) or measurement.run(context)


def test_what_it_allows(digits):
    context = context_of(Squared(), digits)
    found = [Slopes(max_images=4), Hessian(2, 2, max_images=4), Landscape(points=3), Complexity(max_images=10), Fisher(4)]
    names = {name for each in found for name in summary_of(each, context).values}
    assert {"local_lipschitz", "loss_change", "largest_rise_of_the_loss", "log_margin_term", "fisher_trace"} <= names


def test_class_shapes(context, space, batch, digits):
    head, features = space
    found = summary_of(ClassShapes(IMAGES), context, CHUNK)
    shapes = geometry.class_shapes(head, features, batch.labels)
    assert found.values["class_dispersion"] == pytest.approx(shapes.dispersions.mean().item(), rel=1e-4)
    assert found.values["class_margin"] == pytest.approx(shapes.margins.mean().item(), rel=1e-3)
    assert found.values["signed_class_margin"] == pytest.approx(shapes.signed_margins.mean().item(), rel=1e-3)
    distances = geometry.hyperplane_distances(head, features, batch.labels)
    own = found.values["hyperplane_distance"]
    assert own == pytest.approx(distances.mean().item(), rel=1e-4)
    assert own.low < own < own.high
    spreads = [(features[batch.labels == each] - features[batch.labels == each].mean(0)).norm(dim=1) for each in range(10)]
    assert found.values["boundary_ratio"] == pytest.approx((distances.mean() / torch.cat(spreads).mean()).item(), rel=1e-4)
    assert found.figures["hyperplanes"] == pytest.approx(distances.tolist(), rel=1e-3, abs=1e-3)
    assert found.figures["class_shapes"]["dispersions"] == pytest.approx(shapes.dispersions.tolist(), rel=1e-3)
    assert found.figures["class_shapes"]["names"] == list(digits.class_names)
    assert sum(found.figures["class_shapes"]["counts"]) == IMAGES


def test_slopes(context, run, batch):
    found = summary_of(Slopes(max_images=IMAGES), context, CHUNK)
    own = geometry.local_lipschitz(run.predictor, batch.images, batch.labels)
    assert found.values["local_lipschitz"] == pytest.approx(own.values.mean().item(), rel=1e-3)
    assert found.values["first_order_radius"] == pytest.approx(own.radii.mean().item(), rel=1e-3)
    assert found.values["local_lipschitz"].low < found.values["local_lipschitz"].high
    assert found.figures["slopes"]["radii"] == pytest.approx(own.radii.tolist(), rel=2e-3, abs=1e-4)


def test_loss_change_with_the_eigenvalue_it_is_made_of(context, run, batch):
    found = summary_of(Hessian(2, max_images=IMAGES), context, CHUNK)
    drawn = {"generator": generator(0, "eigenvalues"), "indices": batch.indices}
    own = geometry.loss_change_bound(run.predictor, batch.images, batch.labels, **drawn)
    assert found.values["loss_change"] == pytest.approx(own.values.mean().item(), rel=1e-2)
    assert found.values["two_sided_loss_change"] == pytest.approx(own.two_sided.mean().item(), rel=1e-2)
    assert found.values["largest_eigenvalue"] == pytest.approx(own.largest_eigenvalues.mean().item(), rel=1e-2)
    assert found.values["hessian_curvature"] > 0
    shown = found.figures["loss_change"]
    assert shown["distance"] == 0.1
    assert len(shown["values"]) == len(shown["gradient_norms"]) == IMAGES


def test_fisher_trace(context, run, digits):
    few = batch_of(digits.test, 8)
    found = summary_of(Fisher(8), context, 3)
    own = geometry.fisher_trace(run.predictor, few.images).values
    assert found.values["fisher_trace"] == pytest.approx(own.mean().item(), rel=1e-3)
    assert found.figures["fisher"]["method"] == "exact"


def test_landscapes(context, run, digits):
    ends = batch_of(digits.test, 2)
    found = summary_of(Landscape(), context)
    drawn = {"generator": generator(0, "landscape"), "indices": ends.indices}
    own = geometry.loss_landscape(run.predictor, ends.images, ends.labels, **drawn)
    shown = found.figures["landscape"]
    assert shown["names"] == [f"image {index}" for index in ends.indices.tolist()]
    assert torch.tensor(shown["loss"]) == pytest.approx(own.loss, rel=1e-2, abs=1e-4)
    rises = own.loss.flatten(1).amax(1) - own.loss[:, 12, 12]
    assert list(found.values["largest_rise_of_the_loss"].values()) == pytest.approx(rises.tolist(), rel=1e-2)
    with torch.no_grad():
        assert shown["right"] == (run.predictor(ends.images).argmax(1) == ends.labels).tolist()


def test_stability_and_its_bounds(context, run, batch):
    """K_max is that of all images, whatever the chunks."""
    found = summary_of(Stability(max_images=IMAGES), context, 7)
    drawn = {"generator": generator(0, "stability"), "indices": batch.indices}
    own = geometry.curvature_bounds(run.predictor, batch.images, batch.labels, **drawn)
    assert found.values["eigenvalue_upper_bound"] == pytest.approx(own.values.mean().item(), rel=1e-3)
    assert found.values["eigenvalue_lower_bound"] == pytest.approx(own.lower.mean().item(), rel=1e-2)
    distances = own.stability.feature_distances
    assert found.values["feature_distance_under_noise"] == pytest.approx(distances.mean().item(), rel=1e-3)
    assert found.figures["stability"]["values"] == pytest.approx(own.stability.values.tolist(), abs=1e-3)
    assert found.notes[0].startswith("eigenvalue bounds: Thm 6.1 assumes")


def test_centre_stability(context, space):
    found = summary_of(CentreSearches(max_images=IMAGES), context)
    own = geometry.centre_stability(*space)
    wanted = (own.values.min(), own.values.max(), own.least_cosine.min())
    assert list(found.values["centre_stability"].values()) == pytest.approx([value.item() for value in wanted], abs=1e-4)
    assert len(found.figures["centre_stability"]["values"]) == 18


def test_complexity_is_of_training_images(context, run, digits):
    train = batch_of(digits.train)
    found = summary_of(Complexity(max_images=IMAGES), context)
    own = geometry.margin_term(run.predictor, train.images, train.labels)
    assert found.values["log_margin_term"] == pytest.approx(own.log_term, rel=1e-4)
    assert found.values["log_spectral_complexity"] == pytest.approx(own.complexity.log_complexity, rel=1e-4)
    assert found.values["share_below_margin"] == pytest.approx(own.share_below)
    assert found.figures["complexity"]["names"] == list(own.complexity.names)
    notes = " ".join(found.notes)
    assert "shortcuts and attention are not in it" in notes
    assert "not a bound" in notes
    assert f"Of {IMAGES} images of the train split" in notes


def test_the_mapping_bound_says_that_it_is_vacuous(context, run, digits):
    train = batch_of(digits.train)
    found = summary_of(MappingBound(IMAGES), context)
    features = geometry.observed_features(run.predictor, train.images).features.double()
    bounds = []
    for number in range(10):
        own = features[train.labels == number]
        far = (own - own.mean(0)).norm(dim=1).max().item()
        bounds.append(geometry.mapping_bound(own, own.mean(0), math.sqrt(2) * far, far**2))
    assert found.values["mapping_bound"] == pytest.approx(min(bound.bound for bound in bounds), rel=1e-4)
    assert found.values["vacuous_mapping_bounds"] == 1
    assert found.figures["mapping"]["empirical"] == pytest.approx(0, abs=1e-9)
    assert found.notes[0].startswith("mapping bound: vacuous for 10 of 10 classes")


def test_the_ball_of_the_mapping_bound_by_hand():
    """Two points at distance 1 from their mean (10, 0): r^2 = 2, rho = 1, R = 10, Lambda = 11."""
    found = favourable_bound(torch.tensor([[9.0, 0.0], [11.0, 0.0]]))
    assert (found.empirical, found.outside) == (0, 0)
    assert found.capacity == pytest.approx(2 / 1 * (11**2 + 2 * 10 * 11 + 10**2 / math.sqrt(2)))
    assert favourable_bound(torch.ones(1, 2)).empirical == 0


def test_layers(context, run, batch):
    found = summary_of(Layers(max_images=IMAGES), context)
    blocks = main_blocks(run.predictor, batch.images)
    assert blocks == tuple(f"module.blocks.{k}" for k in range(3))
    own = geometry.block_features(run.predictor, batch.images, blocks)
    last = geometry.observed_features(run.predictor, batch.images).features
    for name in blocks:
        wanted = geometry.class_separation(own[name], last, batch.labels).values.mean().item()
        assert found.values["class_separation"][name] == pytest.approx(wanted, abs=1e-3)
    assert found.values["class_separation_bound"] >= 0
    shown = found.figures["layers"]
    places = torch.tensor(shown["clean"])
    assert places.shape == torch.tensor(shown["noisy"]).shape == (3, IMAGES, 2)
    assert shown["labels"] == batch.labels.tolist()
    again = geometry.layer_projection(run.predictor, batch.images, batch.labels, blocks, seed=0, indices=batch.indices)
    assert places[2] == pytest.approx(again.clean[2].float(), rel=0.05, abs=0.5)
    assert len(found.figures["separation"]["values"][0]) == len(found.figures["separation"]["pairs"]) == 10


def test_few_images_come_from_all_classes():
    """A folder of images is read class by class."""
    labels = torch.arange(20).repeat_interleave(50)
    assert labels[evenly(1000, 20)].unique().tolist() == list(range(20))
    assert torch.equal(evenly(1000, 5000), torch.arange(1000))
    assert labels[of_some_classes(labels)].unique().tolist() == list(range(CLASSES))


def test_one_image_of_a_class_says_nothing_of_layers():
    with pytest.raises(SurefootError, match="two images of a class"):
        of_some_classes(torch.arange(3))
    assert of_some_classes(torch.tensor([2, 0, 2, 1])).tolist() == [0, 2]


def test_certificates(context, run, digits):
    few = batch_of(digits.test, 4)
    found = summary_of(Certificates(draws=100, max_images=4), context, 3)
    own = geometry.certify(run.predictor, few.images, few.labels, 0.25, n=100, indices=few.indices)
    shares = found.values["certified_accuracy"]
    assert list(shares) == ["0", "0.25", "0.5", "0.75"]
    assert [float(share) for share in shares.values()] == [own.accuracy(radius) for radius in (0, 0.25, 0.5, 0.75)]
    assert shares["0"] >= shares["0.5"]
    assert found.values["certified_images"] == 4
    assert found.figures["certificates"]["predictions"] == own.predictions.tolist()
    assert found.figures["certificates"]["labels"] == few.labels.tolist()


def test_logits_by_hand():
    """Margins 1 and -1, norms 5 and 5, largest 4 and 4."""
    rows = columns_of(torch.tensor([[4.0, 0.0, 3.0], [3.0, 4.0, 0.0]]), torch.tensor([0, 0]))
    found = logit_geometry(rows, 0)
    assert [float(found[name]) for name in ("mean_margin", "logit_norm", "largest_logit")] == [0, 5, 4]
    points = logit_points(rows)
    assert (points["values"], points["norms"], points["largest"]) == ([1, -1], [5, 5], [4, 4])
    assert (points["mean_margin"], points["mean_norm"], points["mean_largest"]) == (0, 5, 4)


def test_logits_are_of_all_images(context, digits):
    found = summary_of(LogitStatistics(), context)
    assert len(found.figures["logits"]["values"]) == min(2000, len(digits.test))
    assert found.values["mean_margin"].low < found.values["mean_margin"] < found.values["mean_margin"].high


def test_keys_of_the_figures(context):
    """What the page can draw of a model with more than three features."""
    few = 12
    audited = [
        *(Features(few, attacked=0), Centres(few), Cone(few), Bias(few), Collapse(few), Displacement(few), LogitStatistics()),
        *(
            Sensitivity(draws=1, max_images=few),
            Radius(draws=1, max_images=few),
            CurvatureNoise(curvature_draws=1, max_images=few),
        ),
        *(Fisher(few), ClassShapes(few), Slopes(max_images=few), Hessian(1, 1, max_images=few), Landscape(points=3)),
        *(Stability(draws=1, max_images=few), CentreSearches(steps=(1,), max_images=few), Complexity(max_images=few)),
        *(MappingBound(few), Layers(max_images=few), Certificates(draws=10, max_images=2), Plane(few)),
    ]
    drawn = [key for each in audited for key in summary_of(each, context).figures]
    assert sorted(drawn) == sorted(
        {
            *("features", "perturbation", "cones", "bias", "centre_correlations", "neural_collapse", "centre_stability"),
            *("class_shapes", "hyperplanes", "logits", "sensitivity", "radii", "stability", "slopes", "curvature", "hessian"),
            *("fisher", "loss_change", "landscape", "eigenvalue_bounds", "certificates", "mapping", "complexity"),
            *("layers", "separation"),
        }
    )
