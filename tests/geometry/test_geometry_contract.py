"""Every measurement of a model: any module, any mode, its own dtype; nothing touched, seeded, a batch of one, plain results."""

import json

import pytest
import torch
from torch import nn

from surefoot import geometry
from surefoot.errors import SurefootError
from surefoot.objectives.noisy import NoisyEnsemble
from surefoot.plain import plain
from surefoot.seeds import generator
from surefoot.views import GaussianNoise

SEEDED = [
    *("hessian_curvature", "hessian_trace", "input_curvature", "margin_ratio", "noise_stability", "curvature_bounds"),
    *("radius_estimates", "sampled_fisher_trace", "sensitivity"),
]
UNLABELLED = ["exact_hessian_trace", "fisher_spectrum", "fisher_trace", "sampled_fisher_trace", "sensitivity"]
OTHERS = ["certify", "hessian_eigenvalues", "local_lipschitz", "logit_statistics", "loss_change_bound", "margins"]
NAMES = sorted({*SEEDED, *UNLABELLED, *OTHERS})


def measure(name, net, images, labels, **options):
    function = getattr(geometry, name)
    if name == "certify":
        return function(net, images, labels, 0.25, n0=10, n=40, **options)
    return function(net, images, **options) if name in UNLABELLED else function(net, images, labels, **options)


def values(result):
    return result if isinstance(result, torch.Tensor) else result.values


@pytest.fixture
def net():
    """Dropout and batch norm, which mode changes; the batch norm is frozen in evaluation mode as fine-tuning does."""
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(36, 4)
    )
    net.train()
    net[1].eval()
    net[0].weight.requires_grad_(False)
    return net


def check_untouched(net, before, rng):
    assert {name: layer.training for name, layer in net.named_modules()} == before["modes"]
    assert {name: weight.requires_grad for name, weight in net.named_parameters()} == before["grads"]
    assert all(weight.grad is None for weight in net.parameters())
    assert all(torch.equal(value, before["state"][name]) for name, value in net.state_dict().items())
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in net.modules())
    assert torch.equal(torch.get_rng_state(), rng)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_contract(name, dtype, net, points, labels):
    net = net.to(dtype)
    options = {"generator": generator(0)} if name in [*SEEDED, "hessian_eigenvalues", "loss_change_bound"] else {}
    before = {
        "modes": {name: layer.training for name, layer in net.named_modules()},
        "grads": {name: weight.requires_grad for name, weight in net.named_parameters()},
        "state": {name: value.clone() for name, value in net.state_dict().items()},
    }
    rng = torch.get_rng_state()
    images = points.clone()  # float64 also for the float32 net
    result = measure(name, net, images, labels, **options)
    check_untouched(net, before, rng)
    assert torch.equal(images, points)
    assert not images.requires_grad
    found = values(result)
    assert found.shape == (7,)
    assert found.dtype == (torch.float64 if name == "certify" else dtype)
    assert not found.requires_grad
    json.dumps(plain(result))
    if options:
        options["generator"] = generator(0)
    again = measure(name, net, images, labels, batch_size=3, **options)
    close = {"rtol": 1e-3, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-12}
    torch.testing.assert_close(values(again), found, **close)
    if options:
        options["generator"] = generator(0)
    one = measure(name, net, images[:1], labels[:1], **options)
    if name != "curvature_bounds":  # whose K_max is that of all images
        torch.testing.assert_close(values(one), found[:1], **close)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch_is_refused(name, net, points, labels):
    with pytest.raises(SurefootError, match="images must be at least one image"):
        measure(name, net, points[:0], labels[:0])


@pytest.mark.parametrize("name", SEEDED)
def test_another_seed_gives_other_draws(name, net, points, labels):
    options = {"std": 1.0, "distance": 1.0} if name in ("noise_stability", "curvature_bounds") else {}
    first, second = (measure(name, net.double(), points, labels, generator=generator(k), **options) for k in (0, 1))
    assert not torch.equal(values(first), values(second))


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_fails_is_left_as_it_was(name, points, labels):
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(18, 4).double()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            if self.calls > 1:
                raise RuntimeError("broken")
            return self.fc(x.flatten(1))

    net = Broken().train()
    with pytest.raises(RuntimeError, match="broken"):
        measure(name, net, points, labels, batch_size=2)
    assert net.training
    assert net.fc.training
    assert not net.fc._forward_hooks
    assert not net.fc._forward_pre_hooks


@pytest.mark.parametrize("name", ["margins", "input_curvature", "certify"])
def test_progress_is_shown_on_stderr_where_wanted(name, net, points, labels, capsys, monkeypatch):
    measure(name, net, points, labels, progress=True)
    assert capsys.readouterr().err == ""  # no terminal
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for one
    measure(name, net, points, labels)
    assert capsys.readouterr().err == ""
    measure(name, net, points, labels, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert err != ""


@pytest.mark.parametrize("name", NAMES)
def test_in_inference_mode(name, net, points, labels):
    """The caller's mode changes nothing, also for images that were made in it."""
    options = {"generator": generator(0)} if name in [*SEEDED, "hessian_eigenvalues", "loss_change_bound"] else {}
    expected = values(measure(name, net.double(), points.float(), labels, **options))
    if options:
        options["generator"] = generator(0)
    with torch.inference_mode():
        found = measure(name, net, (points * 1.0).float(), labels.int(), **options)
        assert torch.is_inference_mode_enabled()
    torch.testing.assert_close(values(found), expected)


class Averaging(nn.Module):
    """A layer that keeps a statistic in evaluation mode too, as observers of quantisation do."""

    def __init__(self):
        super().__init__()
        self.register_buffer("largest", torch.zeros(()))

    def forward(self, x):
        self.largest.copy_(torch.maximum(self.largest, x.detach().abs().max()))
        return x


@pytest.mark.parametrize("name", NAMES)
def test_buffers_are_as_before(name, net, points, labels):
    net = nn.Sequential(Averaging(), net.double())
    measure(name, net, points, labels)
    assert net[0].largest == 0


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", ["input_curvature", "sensitivity", "radius_estimates"])
def test_a_randomised_model_is_one_function_at_all_points(name, wrapped, smooth, points, labels):
    """Its own draws are the same at the image and beside it: what is left is near to the net without noise."""
    noisy, plainly = NoisyEnsemble(smooth, GaussianNoise(1e-4), draws=2), nn.Sequential(smooth, nn.LogSoftmax(1))
    if wrapped:
        noisy, plainly = nn.Sequential(noisy, nn.Identity()), nn.Sequential(plainly, nn.Identity())
    rng = torch.get_rng_state()
    options = {} if name == "input_curvature" else {"std": 0.001}
    first, again, expected = (
        values(measure(name, each, points, labels, generator=generator(0), **options)) for each in (noisy, noisy, plainly)
    )
    torch.testing.assert_close(first, expected, rtol=0.02, atol=1e-3)
    assert torch.equal(again, first)
    assert torch.equal(torch.get_rng_state(), rng)


@pytest.mark.parametrize(
    "name", ["input_curvature", "hessian_curvature", "hessian_trace", "hessian_eigenvalues", "curvature_bounds"]
)
def test_differences_of_gradients_want_single_precision(name, net, points, labels):
    with pytest.raises(SurefootError, match=r"the model must be of single or double precision here: use model.float\(\), got"):
        measure(name, net.bfloat16(), points, labels)
