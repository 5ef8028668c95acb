"""Neural collapse: 0 on a simplex, and the definitions written out."""

import pytest
import torch
from torch import nn

from surefoot.errors import SurefootError
from surefoot.geometry import (
    bias_dependence,
    centre_correlations,
    class_centres,
    cone_index,
    feature_statistics,
    neural_collapse,
    representation_statistics,
)
from surefoot.plain import plain


def simplex(classes, dimensions):
    """The corners of a regular simplex around 0, rotated."""
    corners = torch.eye(classes, dtype=torch.float64) - 1 / classes
    turn = torch.linalg.qr(torch.randn(dimensions, dimensions, dtype=torch.float64))[0]
    return nn.functional.pad(corners, (0, dimensions - classes)) @ turn


@pytest.mark.parametrize(("classes", "dimensions"), [(2, 3), (5, 8)])
def test_zero_on_a_simplex(classes, dimensions):
    corners, labels = simplex(classes, dimensions), torch.arange(classes).repeat_interleave(6)
    head = nn.Linear(dimensions, classes, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(2 * corners)
    found = plain(neural_collapse(head, 3 * corners[labels] + 1.5, labels, batch_size=7))
    assert found.pop("classes") == classes
    for name, value in found.items():
        assert value == pytest.approx(0, abs=1e-7), name


def test_as_defined():
    """The formulas of Papyan et al. with dense matrices."""
    head = nn.Linear(6, 4, dtype=torch.float64)
    features, labels = torch.randn(90, 6, dtype=torch.float64), torch.arange(90) % 7 % 4
    found = neural_collapse(head, features, labels, batch_size=11)
    means = torch.stack([features[labels == c].mean(0) for c in range(4)])
    centred = means - means.mean(0)
    between = sum(torch.outer(m, m) for m in centred) / 4
    within = sum(torch.outer(f - means[y], f - means[y]) for f, y in zip(features, labels, strict=True)) / 90
    assert found.within_class == pytest.approx(float(torch.trace(within @ torch.linalg.pinv(between, rtol=1e-10)) / 4))
    for points, suffix in ((centred, ""), (head.weight.detach(), "weight_")):
        norms = points.norm(dim=1)
        cosines = torch.stack([points[i] @ points[j] / norms[i] / norms[j] for i in range(4) for j in range(4) if i != j])
        assert getattr(found, suffix + "equinorm") == pytest.approx(float(norms.std(correction=0) / norms.mean()))
        assert getattr(found, suffix + "equiangularity") == pytest.approx(float(cosines.std(correction=0)))
        assert getattr(found, suffix + "maximal_angle") == pytest.approx(float((cosines + 1 / 3).abs().mean()))
    weight = head.weight.detach()
    dual = weight / weight.norm() - centred / centred.norm()
    assert found.self_duality == pytest.approx(float(dual.square().sum()))


def test_more_classes_than_dimensions():
    head = nn.Linear(3, 6, dtype=torch.float64)
    features, labels = torch.randn(60, 3, dtype=torch.float64), torch.arange(60) % 6
    means = torch.stack([features[labels == c].mean(0) for c in range(6)])
    between = torch.cov((means).T, correction=0)
    within = torch.cov((features - means[labels]).T, correction=0)
    expected = float(torch.trace(within @ torch.linalg.inv(between)) / 6)
    assert neural_collapse(head, features, labels).within_class == pytest.approx(expected)


def test_absent_classes_are_left_out():
    corners = simplex(3, 8)
    head = nn.Linear(8, 5, dtype=torch.float64)
    with torch.no_grad():
        head.weight[:3] = corners
    labels = torch.arange(9) % 3
    found = neural_collapse(head, corners[labels], labels)
    assert found.classes == 3
    assert found.self_duality == pytest.approx(0, abs=1e-12)
    with pytest.raises(SurefootError, match="at least 2 classes"):
        neural_collapse(head, corners[labels[:1]], labels[:1])


def test_all_at_once_as_one_by_one():
    torch.manual_seed(1)
    head = nn.Linear(8, 5)
    features = torch.randn(120, 8)
    labels = torch.where(torch.rand(120) < 0.7, head(features).argmax(1), torch.randint(5, (120,)))
    found = representation_statistics(head, features, labels, batch_size=32)
    predicted = head(features).argmax(1)
    right = predicted == labels
    assert found.accuracy == pytest.approx(float(right.double().mean()))
    torch.testing.assert_close(found.confidence, head(features).softmax(1).amax(1).detach())
    singles = {
        "statistics": feature_statistics(features, class_centres(head), predicted),
        "correlations": centre_correlations(head, features, labels),
        "cones": cone_index(head, features[right]),
        "bias": bias_dependence(head, features, labels),
        "collapse": neural_collapse(head, features, labels),
    }
    for name, single in singles.items():
        for field, value in vars(single).items():
            other = getattr(getattr(found, name), field)
            if isinstance(value, torch.Tensor):
                torch.testing.assert_close(other, value, equal_nan=True, rtol=1e-4, atol=1e-4)
            else:
                assert other == pytest.approx(value, rel=1e-4) if isinstance(value, float) else other == value


def test_equal_means_are_no_collapse():
    features = torch.randn(6, 3).repeat(2, 1)
    labels = torch.tensor([0] * 6 + [1] * 6)
    found = neural_collapse(nn.Linear(3, 2), features, labels)
    assert found.within_class != found.within_class  # NaN: nothing to compare with
