"""What only deeper audits measure is what the functions of geometry give on the same images, or a note that says why not."""

import math
from dataclasses import replace

import pytest
import torch

import surefoot as sf
from surefoot import geometry
from surefoot.auditing.depths import DEPTHS
from surefoot.auditing.geometric import PREFIX, geometry_steps
from surefoot.auditing.geometry_of_bounds import favourable_bound
from surefoot.auditing.geometry_of_features import some
from surefoot.auditing.geometry_of_layers import CLASSES, of_some_classes
from surefoot.auditing.naming import numbers_in
from surefoot.auditing.setting import Setting, Speed
from surefoot.data.choosing import choose
from surefoot.errors import SurefootError
from surefoot.geometry.layers import main_blocks
from surefoot.metrics import of_path
from surefoot.models.observing import head_of
from surefoot.seeds import generator
from surefoot.types import Batch

IMAGES = 30
DEEPER = {"slopes", "hessian", "landscape", "stability", "centres", "complexity", "mapping", "layers", "certificates"}


@pytest.fixture(scope="module")
def only(small):
    nothing = {"gaussian_levels": (), "uniform_levels": (), "occlusions": (), "curve_budgets": (), "attacks": ()}
    few = {"corruptions": ("contrast",), "severities": (1,), "corruption_images": 10}
    return replace(small, geometry_images=IMAGES, certified_images=1, **few, **nothing)


@pytest.fixture(scope="module")
def audit(run, digits, only):
    return sf.audit(run.predictor, digits, depth=only, progress=False)


@pytest.fixture(scope="module")
def found(audit):
    return audit.geometry.measured


@pytest.fixture(scope="module")
def figures(audit):
    return audit.figures["geometry"]


def batch_of(split):
    few = choose(split, IMAGES, 0)
    return Batch(few.images.float() / 255, few.labels, few.indices)


@pytest.fixture(scope="module")
def batch(digits):
    return batch_of(digits.test)


@pytest.fixture(scope="module")
def space(run, batch):
    """The last layer and what enters it."""
    return head_of(run.predictor, batch.images), geometry.observed_features(run.predictor, batch.images).features


@pytest.fixture
def steps(digits, run):
    """The names of the steps at a depth, without what comes before the slash."""

    def named(depth):
        setting = Setting(run.predictor, digits, "test", digits.test, depth, torch.device("cpu"), 64, 0, Speed(1e-3, {}))
        listed = geometry_steps(setting)
        assert all(step.cost > 0 for step in listed)
        return {step.name.removeprefix(PREFIX) for step in listed}

    return named


def test_what_each_depth_measures(steps):
    quick, standard, full = (steps(DEPTHS[name]) for name in ("quick", "standard", "full"))
    assert quick == {"features", "displacement", "sensitivity", "curvature"}
    assert standard == quick | {"fisher", "classes"}
    assert full == standard | DEEPER


def test_class_shapes(found, figures, space, batch, digits):
    head, features = space
    shapes = geometry.class_shapes(head, features, batch.labels)
    assert found["class_dispersion"] == pytest.approx(shapes.dispersions.mean().item(), rel=1e-4)
    assert found["class_margin"] == pytest.approx(shapes.margins.mean().item(), rel=1e-3)
    assert found["signed_class_margin"] == pytest.approx(shapes.signed_margins.mean().item(), rel=1e-3)
    distances = geometry.hyperplane_distances(head, features, batch.labels)
    own = found["hyperplane_distance"]
    assert own == pytest.approx(distances.mean().item(), rel=1e-4)
    assert own.low < own < own.high
    assert figures["hyperplanes"] == pytest.approx(distances.tolist(), rel=1e-3, abs=1e-3)
    assert figures["class_shapes"]["dispersions"] == pytest.approx(shapes.dispersions.tolist(), rel=1e-3)
    assert figures["class_shapes"]["names"] == list(digits.class_names)
    assert sum(figures["class_shapes"]["counts"]) == IMAGES


def test_slopes(found, figures, run, batch):
    own = geometry.local_lipschitz(run.predictor, batch.images, batch.labels)
    assert found["local_lipschitz"] == pytest.approx(own.values.mean().item(), rel=1e-3)
    assert found["first_order_radius"] == pytest.approx(own.radii.mean().item(), rel=1e-3)
    assert found["local_lipschitz"].low < found["local_lipschitz"].high
    assert figures["slopes"]["radii"] == pytest.approx(own.radii.tolist(), rel=2e-3, abs=1e-4)


def test_loss_change_with_the_eigenvalue_it_is_made_of(found, figures, run, batch):
    own = geometry.loss_change_bound(run.predictor, batch.images, batch.labels, generator=generator(0, "eigenvalues"))
    assert found["loss_change"] == pytest.approx(own.values.mean().item(), rel=1e-2)
    assert found["two_sided_loss_change"] == pytest.approx(own.two_sided.mean().item(), rel=1e-2)
    assert found["largest_eigenvalue"] == pytest.approx(own.largest_eigenvalues.mean().item(), rel=1e-2)
    assert figures["loss_change"]["distance"] == 0.1
    assert len(figures["loss_change"]["values"]) == len(figures["loss_change"]["gradient_norms"]) == IMAGES


def test_landscapes(found, figures, run, batch):
    ends = torch.tensor([0, IMAGES - 1])
    own = geometry.loss_landscape(run.predictor, batch.images[ends], batch.labels[ends], generator=generator(0, "landscape"))
    shown = figures["landscape"]
    assert shown["names"] == [f"image {index}" for index in batch.indices[ends].tolist()]
    assert torch.tensor(shown["loss"]) == pytest.approx(own.loss, rel=1e-2, abs=1e-4)
    rises = own.loss.flatten(1).amax(1) - own.loss[:, 12, 12]
    assert list(found["largest_rise_of_the_loss"].values()) == pytest.approx(rises.tolist(), rel=1e-2)
    with torch.no_grad():
        assert shown["right"] == (run.predictor(batch.images[ends]).argmax(1) == batch.labels[ends]).tolist()


def test_centre_stability(found, figures, space):
    own = geometry.centre_stability(*space)
    wanted = (own.values.min(), own.values.max(), own.least_cosine.min())
    assert list(found["centre_stability"].values()) == pytest.approx([value.item() for value in wanted], abs=1e-4)
    assert len(figures["centre_stability"]["values"]) == 18


def test_complexity_is_of_training_images(found, figures, audit, run, digits):
    train = batch_of(digits.train)
    own = geometry.margin_term(run.predictor, train.images, train.labels)
    assert found["log_margin_term"] == pytest.approx(own.log_term, rel=1e-4)
    assert found["log_spectral_complexity"] == pytest.approx(own.complexity.log_complexity, rel=1e-4)
    assert found["share_below_margin"] == pytest.approx(own.share_below)
    assert figures["complexity"]["names"] == list(own.complexity.names)
    notes = " ".join(audit.geometry.notes)
    assert "shortcuts and attention are not in it" in notes
    assert "not a bound" in notes
    assert f"Of {IMAGES} images of the train split" in notes


def test_the_mapping_bound_says_that_it_is_vacuous(found, figures, audit, run, digits):
    train = batch_of(digits.train)
    features = geometry.observed_features(run.predictor, train.images).features.double()
    bounds = []
    for number in range(10):
        own = features[train.labels == number]
        far = (own - own.mean(0)).norm(dim=1).max().item()
        bounds.append(geometry.mapping_bound(own, own.mean(0), math.sqrt(2) * far, far**2))
    assert found["mapping_bound"] == pytest.approx(min(bound.bound for bound in bounds), rel=1e-4)
    assert found["vacuous_mapping_bounds"] == 1
    assert figures["mapping"]["empirical"] == pytest.approx(0, abs=1e-9)
    assert any(note.startswith("mapping bound: vacuous for 10 of 10 classes") for note in audit.geometry.notes)


def test_the_ball_of_the_mapping_bound_by_hand():
    """Two points at distance 1 from their mean (10, 0): r^2 = 2, rho = 1, R = 10, Lambda = 11."""
    found = favourable_bound(torch.tensor([[9.0, 0.0], [11.0, 0.0]]))
    assert (found.empirical, found.outside) == (0, 0)
    assert found.capacity == pytest.approx(2 / 1 * (11**2 + 2 * 10 * 11 + 10**2 / math.sqrt(2)))
    assert favourable_bound(torch.ones(1, 2)).empirical == 0


def test_layers(found, figures, audit, run, batch):
    blocks = main_blocks(run.predictor, batch.images)
    assert blocks == tuple(f"module.blocks.{k}" for k in range(4))
    own = geometry.block_features(run.predictor, batch.images, blocks)
    last = geometry.observed_features(run.predictor, batch.images).features
    for name in blocks:
        wanted = geometry.class_separation(own[name], last, batch.labels).values.mean().item()
        assert found["class_separation"][name] == pytest.approx(wanted, abs=1e-3)
    assert found["class_separation_bound"] >= 0
    shown = figures["layers"]
    places = torch.tensor(shown["clean"])
    assert places.shape == torch.tensor(shown["noisy"]).shape == (4, IMAGES, 2)
    assert shown["labels"] == batch.labels.tolist()
    again = geometry.layer_projection(run.predictor, batch.images, batch.labels, blocks, seed=0)
    assert places[3] == pytest.approx(again.clean[3].float(), rel=0.05, abs=0.5)
    assert len(figures["separation"]["values"][0]) == len(figures["separation"]["pairs"]) == 10


def test_few_images_come_from_all_classes():
    """A folder of images is read class by class."""
    labels = torch.arange(20).repeat_interleave(50)
    batch = Batch(torch.zeros(1000, 1), labels, torch.arange(1000))
    assert some(batch, 20).labels.unique().tolist() == list(range(20))
    assert torch.equal(some(batch, 5000).indices, batch.indices)
    assert of_some_classes(batch).labels.unique().tolist() == list(range(CLASSES))


def test_what_a_head_that_is_not_linear_leaves(digits, only, squared):
    result = sf.audit(squared, digits, depth=only, progress=False).geometry
    for name in ("class shapes", "centre stability", "mapping bound", "layers"):
        assert any(note.startswith(f"{name}: Squared must end in one linear layer") for note in result.notes), name
    assert {"local_lipschitz", "loss_change", "largest_rise_of_the_loss", "log_margin_term"} <= result.measured.keys()
    assert not {"class_margin", "centre_stability", "mapping_bound", "class_separation"} & result.measured.keys()


def test_one_image_of_a_class_says_nothing_of_layers():
    with pytest.raises(SurefootError, match="two images of a class"):
        of_some_classes(Batch(torch.zeros(3, 1), torch.arange(3), torch.arange(3)))
    few = of_some_classes(Batch(torch.zeros(4, 1), torch.tensor([2, 0, 2, 1]), torch.tensor([5, 6, 7, 8])))
    assert few.indices.tolist() == [5, 7]


def test_every_number_has_its_facts(audit):
    """Label, unit, direction and meaning of whatever a gate can name."""
    paths = numbers_in(audit.to_dict())
    assert len(paths) > 100
    assert all(of_path(path).meaning for path in paths)


def test_every_figure_of_geometry_has_its_points(figures):
    """What the page can draw of a model with more than three features."""
    drawn = {
        *("features", "perturbation", "cones", "bias", "centre_correlations", "neural_collapse", "centre_stability"),
        *("class_shapes", "hyperplanes", "logits", "sensitivity", "radii", "stability", "slopes", "curvature", "hessian"),
        *("fisher", "loss_change", "landscape", "eigenvalue_bounds", "certificates", "mapping", "complexity"),
        *("layers", "separation"),
    }
    assert set(figures) == drawn
