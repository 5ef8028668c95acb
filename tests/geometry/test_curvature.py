"""Curvature, traces and eigenvalues against dense Hessians and the closed form H = W^T (diag p - p p^T) W."""

import pytest
import timm
import torch
from torch import nn
from torch.nn import functional as F

from surefoot.errors import SurefootError
from surefoot.geometry import (
    exact_hessian_trace,
    fisher_spectrum,
    fisher_trace,
    hessian_curvature,
    hessian_eigenvalues,
    hessian_trace,
    input_curvature,
    loss_change_bound,
    sampled_fisher_trace,
)
from surefoot.geometry.evaluation import base_seed, gaussian
from surefoot.models.classifier import Classifier
from surefoot.objectives.base import kl
from surefoot.seeds import generator

MANY = 2000


def closed_form(net, points):
    """H = W^T (diag p - p p^T) W of softmax regression, for each image."""
    weight, shares = net[1].weight.detach(), net(points).softmax(1).detach()
    inner = torch.diag_embed(shares) - shares[:, :, None] * shares[:, None, :]
    return weight.T @ inner @ weight


def test_eq_21_is_the_closed_form_for_softmax_regression(linear, points, labels):
    """sum l^2 = ||H||_F^2 within five standard errors; a small step in float64, since Eq. 21 is a limit."""
    true = closed_form(linear, points).square().sum((1, 2))
    found = input_curvature(linear, points, labels, MANY, 1e-5, generator(0))
    assert ((found.values - true).abs() <= 5 * found.errors).all()
    assert (found.errors < 0.1 * true).all()
    exact = hessian_curvature(linear, points, labels, MANY, generator(0))
    torch.testing.assert_close(exact.values, found.values, rtol=1e-3, atol=0)


def test_eq_21_on_the_same_noise(smooth, points, labels, hessians):
    """mean ||H e||^2 with dense Hessians and the very draws."""
    dense, seed = hessians(smooth, points, labels), base_seed(generator(2))
    vectors = torch.stack([gaussian(points, 0, draw, seed).flatten(1) for draw in range(5)])
    true = torch.einsum("nij,knj->kni", dense, vectors).square().sum(2).mean(0)
    exact = hessian_curvature(smooth, points, labels, 5, generator(2), batch_size=3)
    torch.testing.assert_close(exact.values, true)
    stepped = input_curvature(smooth, points, labels, 5, 1e-5, generator(2), batch_size=2)
    torch.testing.assert_close(stepped.values, true, rtol=1e-3, atol=0)


def test_kinks_dominate_a_step_of_a_hundredth(points, labels):
    """For ReLU nets the two are different quantities: a net of many kinks near the images shows it."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(18, 400), nn.ReLU(), nn.Linear(400, 4)).double()
    with torch.no_grad():
        net[1].bias.copy_(-net[1](points.flatten(1)).mean(0) + net[1].bias)
    exact = hessian_curvature(net, points, labels, 20, generator(0)).values.mean()
    assert input_curvature(net, points, labels, 20, 0.01, generator(0)).values.mean() > 3 * exact


def test_curvature_scales_with_the_fourth_power_of_the_pixels_unit(smooth, points, labels):
    class Scaled(nn.Module):
        def forward(self, x):
            return smooth(x / 2)

    first = hessian_curvature(smooth, points, labels, 8, generator(0)).values
    other = hessian_curvature(Scaled(), 2 * points, labels, 8, generator(0)).values
    torch.testing.assert_close(other, first / 16)


def test_fisher_trace_and_spectrum_of_softmax_regression(linear, points):
    true = closed_form(linear, points)
    torch.testing.assert_close(fisher_trace(linear, points, batch_size=2).values, true.diagonal(dim1=1, dim2=2).sum(1))
    spectrum = torch.linalg.eigvalsh(true).flip(1)
    found = fisher_spectrum(linear, points, batch_size=3)
    torch.testing.assert_close(found.eigenvalues, spectrum[:, :4], atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(found.values, spectrum[:, 0])


def test_sampled_fisher_trace_goes_to_the_exact_one(linear, points):
    exact = fisher_trace(linear, points).values
    found = sampled_fisher_trace(linear, points, MANY, generator(0), batch_size=3)
    assert ((found.values - exact).abs() <= 5 * found.errors).all()
    assert (found.errors < 0.1 * exact).all()


def test_hessian_trace_and_eigenvalues_of_softmax_regression(linear, points, labels):
    true = closed_form(linear, points)
    trace = true.diagonal(dim1=1, dim2=2).sum(1)
    found = hessian_trace(linear, points, labels, MANY, generator(0))
    assert ((found.values - trace).abs() <= 5 * found.errors).all()
    assert (found.errors < 0.1 * trace).all()
    ends = hessian_eigenvalues(linear, points, labels, generator=generator(0), batch_size=3)
    torch.testing.assert_close(ends.values, torch.linalg.eigvalsh(true)[:, -1])
    assert (ends.smallest.abs() < 1e-9).all()  # rank 3 of 18: no eigenvalue is made up when the Krylov space is exhausted
    assert (ends.residuals < 1e-9).all()


def test_lanczos_on_an_indefinite_hessian(smooth, points, labels, hessians):
    true = torch.linalg.eigvalsh(hessians(smooth, points, labels))
    assert true.min() < -1e-3
    found = hessian_eigenvalues(smooth, points, labels, 18, generator(0))
    torch.testing.assert_close(found.values, true[:, -1])
    torch.testing.assert_close(found.smallest, true[:, 0])
    few = hessian_eigenvalues(smooth, points, labels, 4, generator(0))
    assert (few.values <= true[:, -1] + 1e-12).all()
    nearest = (few.values[:, None] - true).abs().amin(1)
    assert (nearest <= few.residuals + 1e-12).all()


def test_all_eigenvalues_negative(points):
    """An image that is wrong with a concave logit: 0 must not turn up as the largest eigenvalue."""

    class Bowl(nn.Module):
        def forward(self, x):
            return torch.stack([-x.flatten(1).square().sum(1), torch.zeros(len(x), dtype=x.dtype)], 1)

    right = torch.ones(7, dtype=torch.long)
    found = hessian_eigenvalues(Bowl(), points * 0, right, 6, generator(0))
    torch.testing.assert_close(found.values, torch.full((7,), -1.0, dtype=torch.float64))


def test_proposition_1_for_kinked_nets_only(kinked, smooth, points, labels, hessians):
    """H = G for a ReLU net; not for a smooth one, where the label-averaged H is G and the rest is sum (p_k - y_k) Hess f_k."""
    exact = exact_hessian_trace(kinked, points).values
    true = hessians(kinked, points, labels).diagonal(dim1=1, dim2=2).sum(1)
    torch.testing.assert_close(exact, true, rtol=1e-5, atol=1e-9)
    ends = hessian_eigenvalues(kinked, points, labels, 18)
    torch.testing.assert_close(fisher_spectrum(kinked, points).values, ends.values, rtol=1e-5, atol=1e-9)
    fisher = fisher_trace(smooth, points).values
    traces = [hessians(smooth, points, torch.full((7,), k)).diagonal(dim1=1, dim2=2).sum(1) for k in range(4)]
    assert all(((trace - fisher).abs() > 1e-3 * fisher).all() for trace in traces)
    averaged = (smooth(points).softmax(1).detach() * torch.stack(traces, 1)).sum(1)
    torch.testing.assert_close(averaged, fisher)


@pytest.mark.parametrize("layer", [nn.Tanh(), nn.GELU(), nn.Sigmoid(), nn.LayerNorm(12), nn.Softmax(1)])
def test_a_curved_net_is_refused(layer, points):
    net = nn.Sequential(nn.Flatten(), nn.Linear(18, 12), layer, nn.Linear(12, 4)).double()
    with pytest.raises(SurefootError, match=r"not piecewise linear in its input \(\w+\).*use hessian_trace"):
        exact_hessian_trace(net, points)


def test_a_product_of_two_activations_is_curved(points):
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(18, 4).double(), nn.Linear(18, 4).double()

        def forward(self, x):
            return self.a(x.flatten(1)) * self.b(x.flatten(1))

    with pytest.raises(SurefootError, match="Mul of values that both depend on the input"):
        exact_hessian_trace(Gated(), points)


def test_residual_nets_with_constants_are_piecewise_linear():
    import surefoot as sf

    net = sf.load_model("tiny-resnet", num_classes=3, image_size=8, seed=0)
    assert exact_hessian_trace(net, torch.rand(1, 3, 8, 8)).method == "exact"


@pytest.mark.parametrize("std", [0.1, 0.01, 1e-3])
def test_eq_8_in_the_limit_of_small_noise(smooth, points, std):
    """E D(p(x) || p(x + d)) / (sigma^2 Tr G / 2) goes to 1; antithetic draws in float64."""
    noise = std * torch.randn(20000, 18, dtype=torch.float64, generator=generator(0))
    image = points[:1]
    clean = smooth(image).detach().expand(40000, -1)
    with torch.no_grad():
        divergence = kl(clean, smooth(image.flatten(1) + torch.cat([noise, -noise]))).mean()
    ratio = float(divergence / (std**2 / 2 * fisher_trace(smooth, image).values[0]))
    assert abs(ratio - 1) < {0.1: 0.2, 0.01: 0.03, 1e-3: 0.03}[std]


def test_eq_9_and_10_average_over_the_noise_level(smooth, points):
    """sigma ~ U(0, sigma_max): the regulariser is sigma_max^2 / 6 of the trace."""
    draws = generator(1)
    levels = 1e-3 * torch.rand(40000, 1, dtype=torch.float64, generator=draws)
    noise = levels * torch.randn(40000, 18, dtype=torch.float64, generator=draws)
    image = points[:1].flatten(1)
    with torch.no_grad():
        divergence = kl(smooth(image).expand(40000, -1), smooth(image + noise)).mean()
    assert float(divergence / (1e-6 / 6 * fisher_trace(smooth, points[:1]).values[0])) == pytest.approx(1, abs=0.05)


def test_no_second_derivative_is_said_by_layer():
    net = timm.create_model("mobilenetv3_small_050", num_classes=3).eval()
    images, labels = torch.rand(2, 3, 32, 32), torch.tensor([0, 1])
    with pytest.raises(
        SurefootError, match=r"cannot be differentiated twice: its layer 'blocks\.\S+' uses hardsigmoid"
    ) as error:
        hessian_curvature(net, images, labels, 2)
    assert isinstance(net.get_submodule(str(error.value).split("'")[1]), nn.Hardsigmoid)
    assert (input_curvature(net, images, labels, 2).values > 0).all()
    assert (fisher_trace(net, images).values > 0).all()


def test_fused_attention_has_a_hessian_all_the_same():
    """The fused kernels have one derivative only; the plain one is used."""
    net = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=3, depth=1).double().eval()
    image, label = torch.rand(1, 3, 32, 32, dtype=torch.float64), torch.tensor([0])
    exact = hessian_curvature(net, image, label, 3, generator(0)).values
    stepped = input_curvature(net, image, label, 3, 1e-4, generator(0)).values
    torch.testing.assert_close(exact, stepped, rtol=1e-2, atol=0)


def test_a_compiled_net(smooth, points, labels):
    """Compiled code cannot be differentiated twice; the module inside can."""
    found = hessian_curvature(torch.compile(smooth, backend="aot_eager"), points, labels, 3, generator(0))
    assert torch.equal(found.values, hessian_curvature(smooth, points, labels, 3, generator(0)).values)


def test_a_net_that_does_not_look_is_refused():

    class Flat(nn.Module):
        def forward(self, x):
            return torch.zeros(len(x), 3)

    with pytest.raises(SurefootError, match="Flat does not react to its input"):
        input_curvature(Flat(), torch.rand(2, 3, 4, 4), torch.tensor([0, 1]))


@pytest.mark.parametrize("bad", [{"draws": 0}, {"step": 0.0}, {"batch_size": 0}])
def test_what_is_refused(linear, points, labels, bad):
    with pytest.raises(SurefootError, match=f"{next(iter(bad))} must be"):
        input_curvature(linear, points, labels, **bad)


@pytest.mark.parametrize("norm", [nn.InstanceNorm2d(4), nn.BatchNorm2d(4, track_running_stats=False)])
def test_a_norm_by_its_own_input_is_curved(norm):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)).eval()
    with pytest.raises(SurefootError, match="by the statistics of its own input"):
        exact_hessian_trace(net, torch.rand(2, 3, 8, 8))


def test_theorem_1_holds_where_the_net_is_linear(points, labels):
    """A linear net has a positive semidefinite Hessian; within a small distance no direction changes the loss by more."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(18, 4)).double()
    found = loss_change_bound(net, points, labels, 0.02, generator=generator(0), batch_size=3)
    torch.testing.assert_close(found.values, found.two_sided, rtol=1e-9, atol=1e-15)
    with torch.no_grad():
        clean = F.cross_entropy(net(points), labels, reduction="none")
        for _ in range(200):
            step = 0.02 * F.normalize(torch.randn(7, 18, dtype=torch.float64)).view_as(points)
            change = (F.cross_entropy(net(points + step), labels, reduction="none") - clean).abs()
            assert (change <= found.values * 1.01).all()
    image = points.clone().requires_grad_()
    gradient = torch.autograd.grad(F.cross_entropy(net(image), labels, reduction="sum"), image)[0]
    uphill = 0.02 * F.normalize(gradient.flatten(1)).view_as(points)
    with torch.no_grad():
        change = F.cross_entropy(net(points + uphill), labels, reduction="none") - clean
    assert (change > 0.95 * found.values).all()  # and the bound is near


def test_the_bound_is_made_of_its_parts(smooth, points, labels):
    found = loss_change_bound(smooth, points, labels, 0.5, 18, generator(0))
    ends = hessian_eigenvalues(smooth, points, labels, 18, generator(0))
    torch.testing.assert_close(found.values, 0.5 * found.gradient_norms + 0.125 * ends.values)
    assert (found.two_sided >= found.values).all()
    assert (found.two_sided > found.values).any()


def test_normalised_units_are_those_of_the_net_inside(linear, points, labels):
    """The same draws on (x - mean) / std, through the net without its normalisation."""
    std = torch.linspace(0.2, 0.3, points.shape[1]).tolist()
    inside = linear
    outer = Classifier(linear, mean=0.4, std=std, image_size=tuple(points.shape[2:]), channels=points.shape[1]).to(points)
    expected = input_curvature(inside, (points - outer.mean) / outer.std, labels, 3, 0.01, generator(0)).values
    found = input_curvature(outer, points, labels, 3, 0.01, generator(0), units="normalised").values
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)
    pixels = input_curvature(outer, points, labels, 3, 0.01, generator(0)).values
    assert not torch.allclose(pixels, expected, rtol=0.1)
    with pytest.raises(SurefootError, match="needs a model with mean and std"):
        input_curvature(linear, points, labels, 1, units="normalised")
    with pytest.raises(SurefootError, match="Unknown units 'norm'"):
        input_curvature(linear, points, labels, 1, units="norm")
