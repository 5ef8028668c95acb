"""L(x), S(x), the ratio and the radii (macs Def. 4.3 to Tab. 10); noise stability and the numbers of discriminative Thm 6.1."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from surefoot.errors import SurefootError
from surefoot.geometry import (
    curvature_bounds,
    hessian_curvature,
    local_lipschitz,
    logit_radius,
    margin_ratio,
    margins,
    noise_stability,
    radius_estimates,
    robustness_radius,
    sensitivity,
)
from surefoot.geometry.evaluation import base_seed, gaussian
from surefoot.models.last_layer import head_of, observed
from surefoot.seeds import generator


def test_against_the_definition(smooth, points):
    """A second implementation, image by image, on the same noise."""
    found = sensitivity(smooth, points, std=0.3, draws=4, generator=generator(1), batch_size=3)
    seed = base_seed(generator(1))
    for place, image in enumerate(points):
        slopes, changes = [], []
        for draw in range(4):
            noise = 0.3 * gaussian(image[None], place, draw, seed)
            clean, noisy = smooth(torch.cat([image[None], image[None] + noise])).detach()
            slopes.append(float((noisy - clean).abs().max() / noise.norm()))
            changes.append(float((noisy.softmax(0) - clean.softmax(0)).abs().sum()))
        assert float(found.values[place]) == pytest.approx(sum(slopes) / 4)
        assert float(found.largest[place]) == pytest.approx(max(slopes))
        assert float(found.probability_change[place]) == pytest.approx(sum(changes) / 4)


def test_a_known_slope():
    """f(x) = (3 x, 0, 0) for one pixel moves by 3 ||e||, whatever the noise."""
    net = nn.Linear(1, 3, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[3.0], [0.0], [0.0]]))
    found = sensitivity(net, torch.rand(5, 1), std=0.01, draws=3)
    torch.testing.assert_close(found.values, torch.full((5,), 3.0), rtol=1e-3, atol=0)


def test_noise_does_not_depend_on_the_batch_and_follows_the_generator(kinked, points):
    whole = sensitivity(kinked, points, generator=generator(0))
    parts = sensitivity(kinked, points, generator=generator(0), batch_size=2)
    torch.testing.assert_close(whole.values, parts.values, rtol=1e-12, atol=0)
    other = sensitivity(kinked, points, generator=generator(1))
    assert not torch.equal(whole.values, other.values)
    one = sensitivity(kinked, points[:1], generator=generator(0))
    torch.testing.assert_close(one.values, whole.values[:1], rtol=1e-12, atol=0)


@pytest.mark.parametrize("std", [1e-3, 0.1, 1.0, 30.0])
def test_remark_4_4_always_holds(smooth, points, std):
    """Pinsker, and Jensen over the draws: S <= E sqrt(2 D) <= sqrt(2 E D)."""
    found = sensitivity(smooth, points, std=std, draws=6)
    assert (found.probability_change <= (2 * found.divergence).sqrt() * (1 + 1e-9) + 1e-12).all()
    assert (found.probability_change > 0).all()


def test_ratio_of_means_and_median(smooth, points, labels):
    found = margin_ratio(smooth, points, labels, generator=generator(0))
    gaps = margins(smooth, points, labels)
    slopes = sensitivity(smooth, points, generator=generator(0)).values
    assert found.ratio_of_means == pytest.approx(float(gaps.sum() / slopes.sum()))
    assert found.median == pytest.approx(sorted((gaps / slopes).tolist())[3])
    assert found.ratio_of_means != pytest.approx(float((gaps / slopes).mean()))


def test_theorem_4_5_with_the_true_constant(linear, points):
    """A linear net: L_g = max_j ||w_y - w_j|| is exact; no step within the radius changes the class. Two classes: tight."""
    labels = linear(points).argmax(1)
    weight = linear[1].weight.detach()
    steepest = (weight[labels].unsqueeze(1) - weight).norm(dim=2).amax(1)
    gaps = margins(linear, points, labels)
    radii = robustness_radius(gaps, steepest)
    torch.testing.assert_close(radii, gaps / steepest)
    for _ in range(100):
        step = nn.functional.normalize(torch.randn(7, 18, dtype=torch.float64)) * 0.9999 * radii.unsqueeze(1)
        assert torch.equal(linear(points + step.view_as(points)).argmax(1), labels)
    two = nn.Sequential(nn.Flatten(), nn.Linear(18, 2)).double()
    labels, across = two(points).argmax(1), two[1].weight[0] - two[1].weight[1]
    radii = robustness_radius(margins(two, points, labels), across.norm().detach())
    worst = torch.where(labels == 0, -1.0, 1.0).unsqueeze(1) * nn.functional.normalize(across, dim=0)
    assert torch.equal(two(points + (0.9999 * radii[:, None] * worst).view_as(points)).argmax(1), labels)
    assert torch.equal(two(points + (1.0001 * radii[:, None] * worst).view_as(points)).argmax(1), 1 - labels)


def test_corollary_4_6_is_never_larger(linear, points):
    """With true constants gamma / (2 L_f) <= gamma / L_g, since L_g <= 2 L_f."""
    labels, weight = linear(points).argmax(1), linear[1].weight.detach()
    gaps = margins(linear, points, labels)
    steepest = (weight[labels].unsqueeze(1) - weight).norm(dim=2).amax(1)
    assert (logit_radius(gaps, weight.norm(dim=1).max()) <= robustness_radius(gaps, steepest)).all()


def test_radius_is_cut_at_the_reach_and_zero_without_margin():
    gaps, slopes = torch.tensor([4.0, 4.0, -1.0, 0.0]), torch.tensor([1.0, 8.0, 1.0, 1.0])
    assert robustness_radius(gaps, slopes, 3.0).tolist() == [3.0, 0.5, 0.0, 0.0]
    assert logit_radius(gaps, slopes).tolist() == [2.0, 0.25, 0.0, 0.0]


def test_sampled_constants_are_lower_bounds_and_the_result_says_so(linear, points):
    labels, weight = linear(points).argmax(1), linear[1].weight.detach()
    found = radius_estimates(linear, points, labels, generator=generator(0), draws=30, batch_size=4)
    true = (weight[labels].unsqueeze(1) - weight).norm(dim=2).amax(1)
    assert (found.difference_lipschitz < true).all()
    assert (found.difference_lipschitz > true / 18**0.5).all()
    assert (found.logit_lipschitz < weight.norm(dim=1).max()).all()
    assert "not a certificate" in found.note
    assert "lower bound" in found.note
    assert (found.values <= found.reach).all()
    wrong = radius_estimates(linear, points, (labels + 1) % 4)
    assert wrong.values.tolist() == wrong.logit_radii.tolist() == [0.0] * 7


def test_gradients_give_the_true_constant_of_a_linear_net(linear, points):
    labels, weight = linear(points).argmax(1), linear[1].weight.detach()
    across = (weight[labels].unsqueeze(1) - weight).norm(dim=2)
    found = local_lipschitz(linear, points, labels, batch_size=3)
    torch.testing.assert_close(found.values, across.amax(1))
    assert found.rivals == 3
    logits = linear(points).detach()
    first_order = (logits.gather(1, labels[:, None]) - logits) / across
    torch.testing.assert_close(found.radii, first_order.nan_to_num(nan=torch.inf).amin(1))
    nearest = local_lipschitz(linear, points, labels, rivals=1)
    rival = logits.scatter(1, labels[:, None], -torch.inf).argmax(1)
    torch.testing.assert_close(nearest.values, across.gather(1, rival[:, None]).squeeze(1))


def test_the_sampled_slope_never_exceeds_the_steepest_gradient_of_a_linear_net(linear, points):
    labels = linear(points).argmax(1)
    sampled = radius_estimates(linear, points, labels, draws=20).difference_lipschitz
    assert (sampled <= local_lipschitz(linear, points, labels).values).all()


@pytest.mark.parametrize(
    ("options", "message"), [({"std": 0}, "std must be positive"), ({"draws": 0}, "draws must be at least 1")]
)
def test_what_is_refused(linear, points, labels, options, message):
    with pytest.raises(SurefootError, match=message):
        sensitivity(linear, points, **options)
    with pytest.raises(SurefootError, match=message):
        radius_estimates(linear, points, labels, **options)


def test_no_slope_without_a_gradient(points, labels):
    class Deaf(nn.Module):
        def __init__(self):
            super().__init__()
            self.answer = nn.Parameter(torch.zeros(4, dtype=torch.float64))

        def forward(self, images):
            return self.answer.expand(len(images), 4)

    for model in (Deaf(), Deaf().requires_grad_(False)):
        with pytest.raises(SurefootError, match="no gradient reaches the images"):
            local_lipschitz(model, points, labels)


def test_against_definition_6_1(smooth, points, labels):
    """eta and l_out, image by image, on the same noise."""
    found = noise_stability(smooth, points, labels, 0.3, 1.2, 12, generator(0), batch_size=3)
    seed, head = base_seed(generator(0)), head_of(smooth, points)
    assert 0 < float(found.values.mean()) < 1
    for place in range(7):
        image, label = points[place : place + 1], labels[place : place + 1]
        clean, losses = observed(smooth, head, image).features, []
        for draw in range(12):
            noisy = observed(smooth, head, image + 0.3 * gaussian(image, place, draw, seed))
            if (noisy.features - clean).norm() > 1.2:
                losses.append(F.cross_entropy(noisy.logits, label).detach())
        assert float(found.values[place]) == pytest.approx(1 - len(losses) / 12)
        if losses:
            assert float(found.outside_losses[place]) == pytest.approx(float(torch.stack(losses).mean()))
        else:
            assert found.outside_losses[place].isnan()


def test_a_large_ball_holds_everything(kinked, points, labels):
    found = noise_stability(kinked, points, labels, distance=1e6)
    assert found.values.tolist() == [1.0] * 7
    assert found.outside_losses.isnan().all()
    bounds = curvature_bounds(kinked, points, labels, distance=1e6)
    assert (bounds.lower < 0).all()  # nothing is said: minus 4 ||grad||^2 / sigma^2


def test_the_bounds_by_their_formulas(smooth, points, labels):
    """Eq. 15 and 16 from the parts of the result."""
    found = curvature_bounds(smooth, points, labels, 0.3, 1.2, 12, generator(0), batch_size=4)
    parts, row = found.stability, smooth[3].weight.norm(dim=1).max().detach()
    upper = 8 / 0.3**4 * (parts.values * row**2 * 1.2**2 + 4 * (1 - parts.values) * parts.largest_logit**2)
    torch.testing.assert_close(found.values, upper)
    image = points.clone().requires_grad_()
    gradient = torch.autograd.grad(F.cross_entropy(smooth(image), labels, reduction="sum"), image)[0].flatten(1)
    out = (1 - parts.values) * (parts.outside_losses - parts.clean_losses).square().nan_to_num()
    torch.testing.assert_close(found.lower, 4 / 0.3**4 * (out.nan_to_num() - 0.3**2 * gradient.square().sum(1)))
    assert "exclude each other" in found.note


def test_the_caveat_of_theorem_6_1_is_needed(points, labels):
    """A steep tanh has bounded logits and no quadratic loss: the curvature is far above Eq. 15."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(18, 1), nn.Tanh(), nn.Linear(1, 4)).double()
    with torch.no_grad():
        net[1].weight.mul_(200)
        net[1].bias.fill_(0.4 - float(net[1].weight @ points[0].flatten()))
    image, label = points[:1], labels[:1]
    bound = curvature_bounds(net, image, label, 0.5, 0.1, 50, generator(0)).values
    assert hessian_curvature(net, image, label, 50, generator(0)).values > 10 * bound


def test_the_loss_moves_by_at_most_twice_the_largest_logit_change(smooth, points, labels):
    """Step 3 of the proof, which always holds."""
    with torch.no_grad():
        for std in (0.01, 1.0, 20.0):
            other = points + std * torch.randn_like(points)
            moved = (smooth(other) - smooth(points)).abs().amax(1)
            losses = [F.cross_entropy(smooth(x), labels, reduction="none") for x in (points, other)]
            assert ((losses[1] - losses[0]).abs() <= 2 * moved + 1e-12).all()


def test_identity_22_in_the_limit(smooth, points, labels, hessians):
    """E (l(x + e) - l(x))^2 = sigma^2 ||grad||^2 + sigma^4 (2 ||H||_F^2 + (tr H)^2) / 4 as sigma goes to 0.

    The second part alone: the odd terms cancel between e and -e, and are taken out as the mean of the two.
    """
    dense, std = hessians(smooth, points[:1], labels[:1])[0], 1e-3
    noise = std * torch.randn(40000, 18, dtype=torch.float64, generator=generator(3))
    image, repeated = points[:1].flatten(1), labels[:1].expand(40000)
    with torch.no_grad():
        clean = F.cross_entropy(smooth(image), labels[:1])
        even = sum(F.cross_entropy(smooth(image + e), repeated, reduction="none") for e in (noise, -noise)) / 2 - clean
    expected = std**4 / 4 * (2 * dense.square().sum() + dense.trace() ** 2)
    assert float(even.square().mean() / expected) == pytest.approx(1, abs=0.05)
