"""Spectral complexity, and the terms and bounds that are reported as what they are."""

import gc
import math
import weakref

import pytest
import torch
from torch import nn

from surefoot.errors import SurefootError
from surefoot.geometry import (
    class_separation,
    divergence_bound,
    jensen_shannon_divergence,
    mapping_bound,
    margin_term,
    margins,
    separation_bound,
    spectral_complexity,
)
from surefoot.geometry.bounds import held_out_losses
from surefoot.geometry.complexity import LayerCall, frobenius_norm, layer_calls, spectral_norm
from surefoot.seeds import generator

CONVOLUTIONS = [
    {"kernel_size": 3},
    {"kernel_size": 3, "padding": 1, "stride": 2},
    {"kernel_size": 3, "padding": 2, "dilation": 2},
    {"kernel_size": (3, 1), "padding": (1, 0), "stride": (2, 1)},
    {"kernel_size": 3, "padding": "same", "groups": 2},
    {"kernel_size": 3, "padding": 1, "padding_mode": "circular"},
    {"kernel_size": 1, "stride": 3},
    {"kernel_size": 5, "padding": 4},
]


def dense(operator, shape):
    """The matrix of a linear map, column by column."""
    eye = torch.eye(math.prod(shape), dtype=torch.float64).view(-1, *shape)
    with torch.no_grad():
        return operator(eye).flatten(1).T


@pytest.mark.parametrize("options", CONVOLUTIONS)
@pytest.mark.parametrize("folded", [False, True])
def test_norms_of_a_convolution_are_those_of_its_dense_operator(options, folded):
    layer = nn.Conv2d(4, 6, bias=False, **options).double()
    norm = nn.BatchNorm2d(6).double() if folded else None
    if norm is not None:
        with torch.no_grad():
            norm.weight.uniform_(-3, 3)
            norm.running_var.uniform_(0.1, 4)
            norm.running_mean.zero_()
        norm.eval()
    matrix = dense(layer if norm is None else nn.Sequential(layer, norm), (4, 6, 7))
    call, like = LayerCall("conv", layer, (4, 6, 7), norm=norm), torch.zeros(1, dtype=torch.float64)
    assert spectral_norm(call, like, 5000, 1e-10) == pytest.approx(float(torch.linalg.matrix_norm(matrix, 2)), rel=1e-4)
    assert frobenius_norm(call, like) == pytest.approx(float(matrix.norm()), rel=1e-9)


def test_the_reshaped_kernel_would_be_wrong():
    """An averaging kernel: the operator has norm about 1, the reshaped kernel 1/3."""
    layer = nn.Conv2d(1, 1, 3, padding=1, bias=False).double()
    with torch.no_grad():
        layer.weight.fill_(1 / 9)
    found = spectral_norm(LayerCall("mean", layer, (1, 24, 24)), torch.zeros(1, dtype=torch.float64))
    assert 0.95 < found < 1
    assert float(torch.linalg.matrix_norm(layer.weight.detach().flatten(1), 2)) == pytest.approx(1 / 3)


def test_padding_that_repeats_pixels_is_refused():
    layer = nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect").double()
    with pytest.raises(SurefootError, match="'edge' pads with reflect"):
        frobenius_norm(LayerCall("edge", layer, (1, 6, 6)), torch.zeros(1, dtype=torch.float64))


def test_complexity_of_diagonal_matrices_by_hand():
    """diag(2, 1) and diag(3, 0): norms 2 and 3; Frobenius sqrt 5 and 3; R = 6 ((5/4)^(1/3) + 1)^(3/2)  (macs Def. 4.1)."""
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.diag(torch.tensor([2.0, 1.0])))
        net[2].weight.copy_(torch.diag(torch.tensor([3.0, 0.0])))
    found = spectral_complexity(net, torch.tensor([[3.0, 4.0], [0.0, 1.0]], dtype=torch.float64))
    assert found.spectral.tolist() == pytest.approx([2, 3])
    assert found.frobenius.tolist() == pytest.approx([5**0.5, 3])
    assert found.complexity == pytest.approx(6 * ((5 / 4) ** (1 / 3) + 1) ** 1.5)
    assert found.log_complexity == pytest.approx(math.log(found.complexity))
    assert found.input_norm == pytest.approx(5)
    assert found.names == ("0", "2")


def test_batch_norm_is_folded_alone_or_behind_a_layer(images):
    """A norm behind a convolution belongs to it; one that stands alone is a diagonal operator of its own."""
    net = nn.Sequential(
        nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.LayerNorm(784), nn.Linear(784, 2)
    )
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([1.0, -5.0, 2.0]))
        net[2].weight.fill_(7.0)
    found = spectral_complexity(net, images, batch_size=2)
    assert found.names == ("0", "1", "5")
    assert found.left_out == ("4",)
    assert float(found.spectral[0]) == pytest.approx(5, rel=1e-4)
    assert float(found.frobenius[0]) == pytest.approx((30 * 256) ** 0.5, rel=1e-4)
    alone = spectral_norm(LayerCall("conv", net[1], (3, 16, 16)), images)
    assert float(found.spectral[1]) == pytest.approx(7 * alone, rel=1e-3)
    assert found.input_norm == pytest.approx(float(images.flatten(1).norm(dim=1).max()), rel=1e-5)


def test_scaling_a_layer_scales_the_complexity(kinked, points):
    before = spectral_complexity(kinked, points).complexity
    with torch.no_grad():
        kinked[5].weight.mul_(10)
    assert spectral_complexity(kinked, points).complexity == pytest.approx(10 * before, rel=1e-4)


def test_a_product_too_large_for_a_float():
    net = nn.Sequential(*[nn.Linear(1, 1) for _ in range(3)]).double()
    with torch.no_grad():
        for layer in net:
            layer.weight.fill_(1e150)
    found = spectral_complexity(net, torch.ones(1, 1, dtype=torch.float64))
    assert found.complexity == math.inf
    assert found.log_complexity == pytest.approx(450 * math.log(10) + 1.5 * math.log(3))


def test_a_layer_of_zeros(linear, points):
    with torch.no_grad():
        linear[1].weight.zero_()
    found = spectral_complexity(linear, points)
    assert (found.complexity, found.log_complexity) == (0, -math.inf)


def test_the_margin_term_is_a_term(linear, points, labels):
    """R_f B / (gamma sqrt n), and the word for what it is not."""
    found = margin_term(linear, points, labels, 0.5, batch_size=3)
    size = float(points.flatten(1).norm(dim=1).max())
    assert found.term == pytest.approx(found.complexity.complexity * size / (0.5 * 7**0.5))
    assert found.share_below == pytest.approx(float((margins(linear, points, labels) < 0.5).double().mean()))
    assert "not a bound" in found.note
    assert margin_term(linear, points, labels, 1.0).term == pytest.approx(found.term / 2)


def test_mapping_bound_by_hand():
    """Eq. 19 with R = 3, Lambda = 0.001, N = 10^6: capacity 2/8.5 (1e-6 + 0.006 + 0.009), all features inside."""
    features, centre = torch.zeros(4, 2), torch.tensor([0.0, 2.9])
    found = mapping_bound(features, centre, 3.0, 0.5, centre_bound=3.0, feature_bound=0.001)
    inside = 9 - 2.9**2
    assert found.empirical == pytest.approx(max(0, 1 - inside / 0.5))
    assert found.capacity == pytest.approx(4 * (1e-6 + 2 * 3 * 0.001 + 9 / 2))
    assert found.confidence == pytest.approx(3 * math.sqrt(math.log(40) / 8))
    assert found.bound == pytest.approx(found.empirical + found.capacity + found.confidence)
    assert found.outside == 0


def test_mapping_bound_is_vacuous_whenever_r_is_at_most_lambda():
    """For every radius that a feature could leave and every rho below its square."""
    for radius in (0.5, 1.0, 1.9):
        for share in (0.01, 0.5, 0.999):
            features = torch.ones(100000, 1)
            found = mapping_bound(features, torch.ones(1), radius, share * radius**2, centre_bound=1.0, feature_bound=1.0)
            assert found.verdict == "vacuous"
    far = mapping_bound(torch.zeros(5, 1), torch.zeros(1), 50.0, 2499.0, centre_bound=1.0, feature_bound=1.0)
    assert far.verdict == "vacuous"
    assert "no bounded feature" in far.note
    good = mapping_bound(torch.zeros(1000000, 1), torch.full((1,), 1.0), 1.009, 0.018, centre_bound=1.01, feature_bound=1e-4)
    assert good.verdict.startswith("at most")
    assert good.bound < 1


def test_theorem_6_3_on_finite_alphabets():
    """A map that sends each class into its own set with probability tau: JSD >= (2 tau - 1)^2 / 2."""
    draws = generator(0)
    for _ in range(300):
        first, second = torch.distributions.Dirichlet(torch.full((2, 8), 0.3, dtype=torch.float64)).sample()
        owner = torch.randint(3, (8,), generator=draws)  # the ball that a symbol is mapped into: of class 0, of class 1, none
        tau = min(float(first[owner == 0].sum()), float(second[owner == 1].sum()))
        divergence = jensen_shannon_divergence(first, second)
        assert divergence >= divergence_bound(tau) - 1e-12
        assert divergence <= math.log(2) + 1e-12
    assert divergence_bound(1.0) == 0.5 < math.log(2)
    assert divergence_bound(0.3) == 0
    apart = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert jensen_shannon_divergence(*apart) == pytest.approx(math.log(2))


def test_separation_bound_counts_the_balls():
    """Class 0: three of four in its ball; class 1: all. tau = 3/4, the bound 1/8; touching balls are not disjoint."""
    features = torch.tensor([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 4.0], [9.0, 0.0], [9.0, 0.0]])
    labels = torch.tensor([0, 0, 0, 0, 1, 1])
    assert separation_bound(features, labels, 1.5) == (0.75, 0.125, True)
    assert separation_bound(features, labels, 4.6)[1:] == (0.0, False)


def test_the_estimate_is_near_the_truth_and_above_the_bound():
    """Two far clusters: log 2; the same cluster twice: 0."""
    torch.manual_seed(1)
    labels = torch.arange(3).repeat_interleave(60)
    centres = torch.tensor([[0.0, 0.0], [9.0, 0.0], [9.0, 0.0]])
    layer = centres[labels] + 0.3 * torch.randn(180, 2)
    separated = 10 * torch.eye(3)[labels] + 0.01 * torch.randn(180, 3)
    found = class_separation(layer, separated, labels, 0.5)
    assert found.pairs == ((0, 1), (0, 2), (1, 2))
    assert found.tau == 1
    assert found.bound == 0.5
    assert (found.values[:2] > 0.5).all()
    assert (found.values <= math.log(2)).all()
    assert found.values[2] < 0.05
    assert len(class_separation(layer, separated, labels, pairs=2).pairs) == 2


def test_a_class_whose_probability_is_0_costs_a_finite_loss():
    """One image of the second class lies a million deviations on the wrong side."""
    layer = torch.tensor([[0.0], [0.0], [0.0], [0.0], [1.0], [1.0], [1.0], [-1e6]]).double()
    assert float(class_separation(layer, layer, torch.arange(8) // 4).values) == 0
    assert all(math.isfinite(loss) for loss in held_out_losses(layer[:4], layer[4:], 0))


def test_a_convolution_of_its_own_kind_is_refused():
    class Weighted(nn.Conv2d):
        def forward(self, images):
            return super().forward(images) * 2

    class Renamed(nn.Conv2d):
        """The same in all but name."""

    images = torch.rand(2, 3, 5, 5)
    with pytest.raises(SurefootError, match="The layer '0' is a Weighted"):
        spectral_complexity(nn.Sequential(Weighted(3, 2, 3)), images)
    plain, renamed = nn.Conv2d(3, 2, 3), Renamed(3, 2, 3)
    renamed.load_state_dict(plain.state_dict())
    wanted = spectral_complexity(nn.Sequential(plain), images).complexity
    assert spectral_complexity(nn.Sequential(renamed), images).complexity == pytest.approx(wanted, rel=1e-5)
    normed = nn.Sequential(nn.utils.parametrizations.weight_norm(plain))
    assert spectral_complexity(normed, images).complexity == pytest.approx(wanted, rel=1e-4)


def test_no_output_is_kept_longer_than_the_next_layer_needs_it():
    """Memory is that of a pass, not of all its layers."""
    alive = []

    class Watching(nn.Conv2d):
        def forward(self, x):
            gc.collect()
            alive.append(sum(reference() is not None for reference in outputs))
            y = super().forward(x)
            outputs.append(weakref.ref(y))
            return y

    outputs = []
    with torch.no_grad():
        layer_calls(nn.Sequential(*[Watching(3, 3, 3, padding=1) for _ in range(6)]), torch.rand(2, 3, 8, 8))
    assert max(alive) == 1  # what enters the layer


def test_weights_of_the_model_itself_are_named():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Parameter(torch.zeros(3))
            self.fc = nn.Linear(3, 2)

        def forward(self, x):
            return self.fc(x + self.token)

    with torch.no_grad():
        assert layer_calls(Own(), torch.rand(2, 3))[1] == ["Own"]
