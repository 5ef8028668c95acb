"""Every figure of a geometry result is drawn from its plain values, after a trip through JSON, and shows them."""

import json
import math

import pytest
import torch
from torch import nn

from surefoot import geometry
from surefoot.plain import plain
from surefoot.report.plots.base import histogram
from surefoot.report.plots.curvature import (
    certificates_figure,
    curvature_bounds_figure,
    curvature_figure,
    loss_change_figure,
    mapping_bound_figure,
    margin_term_figure,
    spectral_complexity_figure,
    trace_figure,
)
from surefoot.report.plots.features import (
    class_shapes_figure,
    hyperplane_distance_figure,
    local_lipschitz_figure,
    logit_statistics_figure,
    margin_ratio_figure,
    noise_stability_figure,
    radius_estimates_figure,
    sensitivity_figure,
)
from surefoot.report.plots.layers import separation_by_layer_figure
from surefoot.seeds import generator


def travelled(result):
    return json.loads(json.dumps(plain(result), allow_nan=False))


@pytest.fixture
def net():
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))


@pytest.fixture
def batch():
    return torch.rand(6, 3, 2, 2), torch.arange(6) % 3


def centre_of(trace):
    """The mean of a histogram."""
    return sum(x * y for x, y in zip(trace.x, trace.y, strict=True)) / sum(trace.y)


def width_of(figure):
    return figure.data[0].x[1] - figure.data[0].x[0]


def test_points_of_images(net, batch):
    """The scatter plots hold the numbers of the result."""
    images, labels = batch
    moved = travelled(geometry.sensitivity(net, images, generator=generator(0)))
    figure = sensitivity_figure(moved)
    assert list(figure.data[0].x) == moved["values"]
    assert list(figure.data[0].y) == moved["probability_change"]
    ratio = travelled(geometry.margin_ratio(net, images, labels, generator=generator(0)))
    figure = margin_ratio_figure(ratio)
    assert list(figure.data[0].y) == ratio["margins"]
    assert figure.data[1].y[1] / figure.data[1].x[1] == pytest.approx(ratio["ratio_of_means"])
    slopes = travelled(geometry.local_lipschitz(net, images, labels))
    assert list(local_lipschitz_figure(slopes).data[0].x) == slopes["values"]
    change = travelled(geometry.loss_change_bound(net, images, labels))
    figure = loss_change_figure(change)
    assert list(figure.data[0].y) == change["values"]
    assert len(figure.data) == 2


def test_images_without_a_number_are_left_out(net, batch):
    """l_out is not defined where features never leave the ball."""
    stable = travelled(geometry.noise_stability(net, *batch, distance=1e6))
    assert stable["outside_losses"] == [None] * 6
    assert len(noise_stability_figure(stable).data[0].x) == 0
    shaky = travelled(geometry.noise_stability(net, *batch, distance=1e-6))
    assert list(noise_stability_figure(shaky).data[0].x) == [0.0] * 6


def test_distributions(net, batch):
    images, labels = batch
    distances = travelled(geometry.hyperplane_distances(net[3], torch.rand(6, 8), labels))
    bars = hyperplane_distance_figure(distances).data[0]
    width = (max(distances) - min(distances)) / 40
    assert sum(bars.y) == pytest.approx(1)
    for place, share in zip(bars.x, bars.y, strict=True):
        assert 6 * share == pytest.approx(sum(abs(place - distance) <= 0.5001 * width for distance in distances))
    assert hyperplane_distance_figure([1.0, 1.0, None, 3.0]).data[0].y[0] == pytest.approx(2 / 3)
    found = travelled(geometry.logit_statistics(net, images, labels))
    figure = logit_statistics_figure(found)
    assert [trace.name.split(",")[0] for trace in figure.data] == ["margin", "norm", "largest"]
    assert [centre_of(trace) for trace in figure.data] == pytest.approx(
        [found["mean_margin"], found["mean_norm"], found["mean_largest"]], abs=width_of(figure)
    )
    radii = travelled(geometry.radius_estimates(net, images, labels))
    figure = radius_estimates_figure(radii)
    assert "no certificate" in figure.layout.xaxis.title.text
    means = [sum(radii[key]) / len(radii[key]) for key in ("values", "logit_radii")]
    assert [centre_of(trace) for trace in figure.data] == pytest.approx(means, abs=width_of(figure))


def test_logarithmic_distributions_say_what_they_leave_out(net, batch):
    figure = histogram({"a": [1.0, 100.0, 0.0, -3.0, None]}, "value", logarithmic=True)
    assert figure.data[0].x[0] == pytest.approx(0.025)
    assert (figure.data[0].y[0], figure.data[0].y[-1], sum(figure.data[0].y)) == (0.5, 0.5, 1)
    assert figure.data[0].name == "a (3 left out)"
    images, labels = batch
    results = {
        "net": travelled(geometry.input_curvature(net, images, labels, 3)),
        "same": travelled(geometry.hessian_curvature(net, images, labels, 3)),
    }
    figure = curvature_figure(results)
    assert [trace.name for trace in figure.data] == ["net (Eq. 21, step 0.01)", "same (Hessian)"]
    logarithms = [math.log10(value) for value in results["same"]["values"]]
    assert centre_of(figure.data[1]) == pytest.approx(sum(logarithms) / len(logarithms), abs=width_of(figure))
    traces = {"Fisher": travelled(geometry.fisher_trace(net, images))}
    assert trace_figure(traces).data[0].name == "Fisher (exact)"
    bounds = travelled(geometry.curvature_bounds(net, images, labels))
    figure = curvature_bounds_figure(bounds, results["net"])
    assert len(figure.data) == 3
    assert "exclude each other" in figure.layout.meta["note"]


def test_certified_accuracy_by_hand():
    """Four images: right with radius 0.1 and 0.3, one wrong, one abstained."""
    result = {"values": [0.3, 0.1, 0.5, 0.0], "predictions": [1, 0, 2, -1], "labels": [1, 0, 0, 0], "std": 0.25}
    line = certificates_figure({"<b>": result}).data[0]
    assert list(line.x) == [0.0, 0.1, 0.3, 0.3]
    assert list(line.y) == [0.5, 0.5, 0.25, 0.0]
    assert line.name == "&lt;b&gt;, noise 0.25"
    nothing = dict(result, predictions=[-1] * 4)
    assert list(certificates_figure({"none": nothing}).data[0].y) == [0.0, 0.0]


def test_classes_and_layers(net, batch):
    images, labels = batch
    shapes = travelled(geometry.class_shapes(net[3], torch.rand(6, 8), labels.clamp_max(1)))
    figure = class_shapes_figure(shapes, ["a", "<i>", "c"])
    assert list(figure.data[0].x) == ["a", "&lt;i&gt;", "c"]
    assert figure.data[0].y[2] is None
    complexity = travelled(geometry.spectral_complexity(net, images))
    figure = spectral_complexity_figure(complexity)
    assert list(figure.data[0].y) == complexity["spectral"]
    assert f"{complexity['log_complexity']:.4g}" in figure.layout.xaxis.title.text
    terms = {"ce": travelled(geometry.margin_term(net, images, labels))}
    assert margin_term_figure(terms).data[0].y[0] == terms["ce"]["log_term"]
    bound = travelled(geometry.mapping_bound(torch.rand(9, 4), torch.rand(4)))
    figure = mapping_bound_figure(bound)
    assert figure.layout.title.text == "vacuous"
    assert figure.data[0].y[3] == bound["bound"]
    layers = {"blocks": ["<a>", "b"], "pairs": [["x", "y"], ["x", "z"]], "values": [[0.1, 0.3], [0.5, 0.7]]}
    mean, pairs = separation_by_layer_figure({**layers, "bound": 0.125, "tau": 0.75}).data
    assert list(mean.x) == ["&lt;a&gt;", "b"]
    assert list(mean.y) == pytest.approx([0.2, 0.6])
    assert list(pairs.y) == [0.1, 0.3, 0.5, 0.7]
    assert list(pairs.text) == ["x and y", "x and z"] * 2
