"""What only deeper audits measure of the geometry is in the audit, or a note that says why not."""

import pytest

import surefoot as sf
from audit_schema import faults
from surefoot.auditing.depths import DEPTHS, Depth, deeper, deepest, geometry
from surefoot.auditing.number_names import numbers_in
from surefoot.metrics import of_path

IMAGES = 30
QUICK = {"features", "centres", "cone", "bias", "collapse", "displacement", "sensitivity", "radius", "curvature-noise", "plane"}
STANDARD = {"fisher", "classes"}
FULL = {"slopes", "hessian", "landscape", "stability", "centre-stability", "complexity", "mapping", "layers", "certificates"}


@pytest.fixture(scope="module")
def only():
    measure = {"corruptions": {"names": ("contrast",), "severities": (1,), "max_images": 10}}
    measure |= {**geometry(IMAGES, 2), **deeper(IMAGES), **deepest(IMAGES, 2)}
    return Depth("small", {**measure, "certificates": {"max_images": 2}})


@pytest.fixture(scope="module")
def audit(run, digits, only):
    return sf.audit(run.predictor, digits, depth=only, progress=False)


def test_what_each_depth_measures():
    quick, standard, full = (set(DEPTHS[name].measure) for name in ("quick", "standard", "full"))
    assert quick & (QUICK | STANDARD | FULL) == QUICK
    assert standard & (QUICK | STANDARD | FULL) == QUICK | STANDARD
    assert full >= QUICK | STANDARD | FULL


def test_what_a_head_that_is_not_linear_leaves(digits, only, squared):
    found = sf.audit(squared, digits, depth=only, progress=False)
    result, (line,) = found.geometry, (line for line in found.subject["model"] if line.startswith("Left out"))
    assert line.startswith("Left out, since it does not end in one linear layer: ")
    for name in ("features", "classes", "centre-stability", "mapping", "layers"):
        assert name in line.replace(".", ",").replace(" ", "").split(":")[1].split(","), name
    assert {"local_lipschitz", "loss_change", "largest_rise_of_the_loss"} <= result.measured.keys()
    assert not {"class_margin", "centre_stability", "mapping_bound", "class_separation"} & result.measured.keys()


def test_every_number_has_its_facts(audit):
    """Label, unit, direction and meaning of whatever a gate can name."""
    paths = numbers_in(audit.to_dict())
    assert len(paths) > 100
    assert all(of_path(path).meaning for path in paths)


def test_the_audit_keeps_to_its_schema(audit):
    assert faults(audit.to_dict()) == []


def test_certificates_and_the_hessian(audit):
    found = audit.geometry.measured
    assert found["certified_accuracy"]["0"] >= found["certified_accuracy"]["0.5"]
    assert {"hessian_curvature", "largest_eigenvalue", "fisher_trace", "eigenvalue_upper_bound"} <= found.keys()


def test_notes_say_what_a_number_is_not(audit):
    notes = " ".join(audit.geometry.notes)
    assert "shortcuts and attention are not in it" in notes
    assert f"Of {IMAGES} images of the train split" in notes
    assert "mapping bound: vacuous for 10 of 10 classes" in notes


def test_every_figure_of_geometry_has_its_points(audit):
    """What the page can draw of a model with more than three features."""
    drawn = {
        *("features", "perturbation", "cones", "bias", "centre_correlations", "neural_collapse", "centre_stability"),
        *("class_shapes", "hyperplanes", "logits", "sensitivity", "radii", "stability", "slopes", "curvature", "hessian"),
        *("fisher", "loss_change", "landscape", "eigenvalue_bounds", "certificates", "mapping", "complexity"),
        *("layers", "separation"),
    }
    assert set(audit.figures["geometry"]) == drawn
