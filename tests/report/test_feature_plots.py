"""Every figure of geometry from the plain arrays of its result alone."""

import json

import pytest
import torch
from torch import nn

from surefoot import geometry
from surefoot.errors import SurefootError
from surefoot.plain import plain
from surefoot.report.plots.curvature import (
    accuracy_by_curvature_figure,
    curvature_by_count_figure,
    curvature_spread_figure,
    landscape_map_figure,
)
from surefoot.report.plots.features import (
    bias_dependence_figure,
    centre_correlation_figure,
    centre_stability_figure,
    cone_index_figure,
    feature_displacement_figure,
    feature_scatter_figure,
    neural_collapse_figure,
    success_by_bin_figure,
)
from surefoot.report.plots.layers import layer_projection_figure
from surefoot.report.plots.planes import loss_field_figure, plane_figure


def stored(result):
    """As it comes back from a file."""
    return json.loads(json.dumps(plain(result), allow_nan=False))


@pytest.fixture
def head():
    torch.manual_seed(0)
    return nn.Linear(6, 4, dtype=torch.float64)


@pytest.fixture
def features():
    return torch.randn(60, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def flat(dimensions):
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(768, dimensions), nn.Linear(dimensions, 4))


def test_centres(head, features):
    result = stored(geometry.centre_correlations(head, features, torch.arange(60) % 4))
    assert list(centre_correlation_figure(result).data[0].y) == result["values"]
    result = stored(geometry.centre_stability(head, features, steps=(5,)))
    figure = centre_stability_figure(result)
    assert list(figure.data[0].y) == result["values"]
    assert figure.data[0].x[0] == "constant, 0.001, 5"
    assert figure.layout.xaxis.ticktext[:3] == ("0.001", "0.01<br>constant", "0.1")


def test_features(head, features):
    result = stored(geometry.feature_statistics(features, head.weight.detach(), torch.arange(60) % 4))
    figure = feature_scatter_figure(result, [0.5] * 60)
    assert list(figure.data[0].x) == result["rms"]
    assert list(figure.data[0].y) == result["cosine"]
    assert list(figure.data[0].marker.color) == [0.5] * 60
    assert feature_scatter_figure(result).data[0].marker.color == "#0072b2"
    values = torch.tensor([0.0, 0.1, 1.0])
    right = torch.tensor([True, True, True])
    bars, line = success_by_bin_figure(stored(geometry.success_by_bin(values, ~right, right, 4))).data
    assert list(bars.x) == [0.125, 0.375, 0.625, 0.875]
    assert list(bars.y) == [2, 0, 0, 1]
    assert list(line.y) == [0, None, None, 0]


def test_displacement(images):
    result = stored(geometry.feature_displacement(flat(3), images, torch.arange(6) % 4))
    points, mean = feature_displacement_figure(result).data
    assert list(points.y) == result["values"]
    assert list(mean.x) == [result["feature_rms_mean"]]


def test_the_success_of_every_attack():
    shares = {"FGSM": [0.5, None], "<b>": [1.0, 0.25]}
    bars, *lines = success_by_bin_figure({"edges": [0.0, 0.5, 1.0], "counts": [3, 4], "attacks": shares}).data
    assert (list(bars.x), list(bars.y)) == ([0.25, 0.75], [3, 4])
    assert {line.name: list(line.y) for line in lines} == {"FGSM": [0.5, None], "&lt;b&gt;": [1.0, 0.25]}
    assert len({line.line.color for line in lines} | {bars.marker.color}) == 3


def test_cones_and_bias(head, features):
    result = stored(geometry.cone_index(head, features))
    cut, full = cone_index_figure(result).data
    assert sum(cut.y) + full.y[0] == 60
    assert full.y[0] == round(60 * result["full"])
    result = stored(geometry.bias_dependence(head, features, torch.arange(60) % 4))
    bias, share = bias_dependence_figure(result).data
    assert list(bias.y) == result["bias"]
    assert list(share.y) == result["values"]
    assert list(bias.x) == ["0", "1", "2", "3"]
    assert bias_dependence_figure({**result, "names": ["<b>", "b", "c", "d"]}).data[0].x[0] == "&lt;b&gt;"
    result = stored(geometry.neural_collapse(head, features, torch.arange(60) % 4))
    figure = neural_collapse_figure(result)
    assert figure.data[0].x[0] == "within class"
    assert len(figure.data[0].y) == 8


@pytest.mark.parametrize("dimensions", [2, 3])
def test_plane(images, dimensions):
    model, labels = flat(dimensions), torch.arange(6) % 4
    result = stored(geometry.representation_plane(model, images, labels, resolution=5))
    path = stored(geometry.attack_path(model, images[:2], labels[:2]))
    figure = plane_figure(result, path)
    named = {trace.name: trace for trace in figure.data}
    assert list(named["features"].x) == [point[0] for point in result["features"]]
    attacks = [trace for trace in figure.data if trace.name == "attack"]
    assert [len(trace.x) for trace in attacks] == [8, 8]
    assert attacks[1].y[7] == path["features"][7][1][1]
    assert named["features"].type == ("scatter" if dimensions == 2 else "scatter3d")
    if dimensions == 2:
        assert figure.data[0].z[1][3] == result["classes"][3][1]  # rows are the second coordinate
        assert figure.data[1].z[4][0] == result["confidence"][0][4]


def levels(trace):
    """The values that a contour is drawn at."""
    start, end, size = trace.contours.start, trace.contours.end, trace.contours.size
    return [round(start + number * size, 6) for number in range(round((end - start) / size) + 1)]


def test_contours_reach_0_99(images):
    model, labels = flat(2), torch.arange(6) % 4
    plane = stored(geometry.representation_plane(model, images, labels, resolution=5))
    lines, sure = (trace for trace in plane_figure(plane).data if trace.type == "contour")
    assert [*levels(lines), *levels(sure)] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99]
    assert sure.z == lines.z
    assert sure.colorscale[0][1] == "black"


def test_marks_that_are_scaled_say_so(images):
    """The table below a figure is of the traces and their names."""
    plane = stored(geometry.representation_plane(flat(2), images, torch.arange(6) % 4, extent=10.0, resolution=5))
    plane |= {"weights": [[20.0, 0.0], [0.0, 5.0], [-1.0, 0.0], [0.0, -1.0]], "centres": [[4.0, 1.0]] * 4}
    plane |= {"finite": [True, False, True, True], "converged": [True, False, True, False], "centre_steps": 200}
    named = {trace.name: trace for trace in plane_figure(plane).data}
    weights = named["weight vectors (drawn x 0.45)"]
    assert (list(weights.x), list(weights.y)) == ([9.0, 0.0, -0.45, 0.0], [0.0, 2.25, 0.0, -0.45])
    assert list(named["minimum-loss points (converged)"].x) == [4.0, 4.0]
    assert list(named["minimum-loss points (no minimum: after 200 steps)"].x) == [4.0]
    assert list(named["minimum-loss points (not converged)"].x) == [4.0]
    before = {key: value for key, value in plane.items() if key not in ("finite", "converged", "centre_steps")}
    before["centres"] = [[0.1, 0.0]] * 4  # in a heap at the origin
    named = {trace.name: trace for trace in plane_figure(before).data}
    assert list(named["minimum-loss points (drawn x 90)"].x) == pytest.approx([9.0] * 4)


def test_plane_with_angles(images):
    model, labels = flat(2), torch.arange(6) % 4
    plane = geometry.representation_plane(model, images, labels, resolution=5)
    angles = stored(geometry.confidence_angles(model[-1], plane.features, threshold=0.01))
    rays = [
        trace
        for trace in plane_figure(stored(plane), angles=angles).data
        if trace.type == "scatter" and trace.line.color == "red"
    ]
    assert len(rays) == len(set(plane.predicted.tolist()))
    assert rays[0].x[1] == 0


def test_loss_field(images):
    model = flat(2)
    result = stored(geometry.loss_field(model[-1], 1, 3.0, resolution=7, arrows=3))
    path = stored(geometry.attack_path(model, images[:1], torch.tensor([1])))
    figure = loss_field_figure(result, path)
    assert figure.data[2].name == "minimum-loss point (no minimum: after 200 steps)"
    assert len(figure.layout.annotations) == 9
    assert figure.data[0].z[2][5] == result["loss"][5][2]
    arrow, place, gradient = figure.layout.annotations[4], result["places"][4], result["gradients"][4]
    assert (arrow.x - place[0]) * gradient[1] == pytest.approx((arrow.y - place[1]) * gradient[0])
    with pytest.raises(SurefootError, match="two dimensions"):
        loss_field_figure(stored(geometry.loss_field(flat(3)[-1], 1, 3.0, resolution=3, arrows=2)))


def test_landscape(images):
    result = stored(geometry.loss_landscape(flat(3), images, torch.arange(6) % 4, resolution=5))
    shown = {**result, "loss": result["loss"][:2], "names": ["<b>", "image 1"], "right": [True, False]}
    figure = landscape_map_figure(shown)
    first, _, second, _ = figure.data
    assert first.z[1][4] == result["loss"][0][1][4]
    assert first.zmax == second.zmax == max(value for image in shown["loss"] for row in image for value in row)
    assert (first.name, second.xaxis) == ("&lt;b&gt;", "x2")
    assert [figure.layout[axis].title.text for axis in ("xaxis", "xaxis2")] == ["&lt;b&gt;,<br>right", "image 1,<br>wrong"]


def test_curvature():
    curvature, counts = torch.tensor([3.0, 2.0, 1.0, 0.5]), torch.tensor([0, 1, 2, 2])
    result = stored(geometry.accuracy_by_curvature(curvature, counts / 2, (0.5, 1.0)))
    figure = accuracy_by_curvature_figure({"<b>": result, "other": result})
    assert [trace.name for trace in figure.data] == ["&lt;b&gt;", "other"]
    assert list(figure.data[0].y) == [1, 0.625]
    figure = curvature_by_count_figure(stored(geometry.curvature_by_count(curvature, counts, 3)))
    assert list(figure.data[0].y) == [3, 2, 0.75, None]
    assert figure.data[0].name.startswith("r = -")
    figure = curvature_spread_figure({"a": stored(geometry.curvature_spread({"": torch.arange(5.0)}, 1.0))})
    assert [figure.data[0][key][0] for key in ("lowerfence", "q1", "median", "q3", "upperfence")] == [0, 1, 2, 3, 4]


def test_layers(images):
    model = flat(3)
    result = stored(geometry.layer_projection(model, images, torch.arange(6) % 4, ["0", "1"], projection=geometry.pca))
    figure = layer_projection_figure(result)
    assert [trace.name for trace in figure.data] == ["0, noisy", "0, clean", "1, noisy", "1, clean"]
    assert list(figure.data[3].x) == [place[0] for place in result["clean"][1]]
    assert len({(trace.xaxis, trace.yaxis) for trace in figure.data}) == 4
    assert list(figure.data[0].text) == ["0", "1", "2", "3", "0", "1"]
    named = layer_projection_figure({**result, "blocks": ["0", "stages.0.blocks.1"], "names": ["a", "<b>", "c", "d"]})
    assert named.data[0].text[1] == "&lt;b&gt;"
    assert named.layout.xaxis2.title.text == "\N{HORIZONTAL ELLIPSIS}s.0.blocks.1"
