"""The papers' values are the defaults, and no option is taken and then ignored."""

import inspect

import pytest
import torch
from torch import nn

from surefoot.objectives.methods import OBJECTIVES, build_objective
from surefoot.seeds import generator

PAPERS = {
    "label-smoothing": {"smoothing": 0.1},  # macs 5.1
    "focal": {"gamma": 2.0},  # macs 5.1
    "mixup": {"alpha": 0.2},  # macs 5.1
    "cutmix": {"alpha": 1.0},  # representation-space App. G
    "augmix": {
        "jsd_weight": 12.0,
        "severity": 3,
        "width": 3,
        "alpha": 1.0,
        "batch_norm": "together",
    },  # magnma 4, and its authors
    "macs": {"margin": 1.0, "margin_weight": 0.1, "consistency_weight": 0.5, "batch_norm": "apart"},  # macs 3.4, Algorithm 1
    "macs-augmix": {"margin": 1.0, "margin_weight": 0.1, "consistency_weight": 0.5, "jsd_weight": 12.0},
    "magnma": {"noise_weight": 0.2, "mix_weight": 0.3, "max_std": 0.2, "beta": 1.0, "samples": 5, "detach_weight": False},  # 4
    "discriminative": {  # discriminative-noise 4.3, 4.4, 7.1, App. H
        "radius": 0.5,
        "distance": 5.0,
        "compact_weight": 1.0,
        "margin_weight": 1.0,
        "regulariser_weight": 1e-3,
        "noise_weight": 1.0,
        "noise_std": 0.06,
        "centroids": "partial",
        "momentum": 0.9,
    },
    "dign": {"noise_weight": 0.2, "max_std": 0.2, "samples": 5},
    "surefoot": {
        "margin": 4.0,
        "margin_weight": 0.1,
        "consistency_weight": 0.5,
        "batch_norm": "clean",
        "consistency_stride": 4,
    },  # ours
    "stability": {"noise_std": 0.06, "weight": 1.0},
    "noisy": {"noise_std": 0.06},
    "clean-and-noisy": {"noise_std": 0.06},
    "diverse-noise": {"max_std": 0.2},
    "rse": {"noise_std": 0.1, "test_draws": 10},  # magnma 4
    "adversarial": {"eps": 8 / 255, "steps": 7, "step_size": None},  # magnma 4: None is 2.5 eps / steps
    "trades": {"eps": 8 / 255, "steps": 7, "step_size": None, "weight": 6.0},
}
OTHERS = {
    "class_weights": [1.0, 2.0, 3.0, 4.0, 5.0],
    "smoothing": 0.3,
    "gamma": 1.0,
    "alpha": 8.0,
    "beta": 0.1,
    "jsd_weight": 3.0,
    "severity": 9,
    "width": 1,
    "margin": 2.0,
    "margin_weight": 0.7,
    "consistency_weight": 2.0,
    "consistency_stride": 2,
    "noise_weight": 3.0,
    "mix_weight": 3.0,
    "max_std": 0.6,
    "samples": 2,
    "detach_weight": True,
    "radius": 0.1,
    "distance": 1.0,
    "compact_weight": 3.0,
    "regulariser_weight": 1.0,
    "noise_std": 0.3,
    "centroids": "batch",
    "momentum": 0.5,
    "regularised": "momentum",
    "clip": True,
    "variant": "authors",
    "aware": False,
    "weight": 2.0,
    "eps": 0.2,
    "steps": 2,
    "step_size": 1e-3,
    "view": "jpeg",
}
ELSEWHERE = {"num_classes", "feature_dim", "test_draws", "second_augmentation"}  # of sizes, the predictor and the loop


@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_values(name):
    given = build_objective(name, {}).options()
    assert {option: given[option] for option in PAPERS[name]} == PAPERS[name]


def two_steps(name, options, images):
    """Losses, gradients and running statistics of two batches."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(784, 5))
    objective, totals = build_objective(name, options), []
    for step, batch in enumerate((images, images.flip(0))):
        totals.append(objective(net, batch, torch.arange(6) % 5, generator=generator(step)).total)
    sum(totals).backward()
    return torch.cat([torch.stack(totals).detach(), *(p.grad.flatten() for p in net.parameters()), net[1].running_mean])


@pytest.mark.parametrize("name", OBJECTIVES.names)
def test_every_option_changes_something(name, images):
    plain = two_steps(name, {}, images)
    assert torch.equal(two_steps(name, {}, images), plain)
    options = inspect.signature(OBJECTIVES.load(name)).parameters
    for option in options.keys() - ELSEWHERE:
        choices = ["apart", "together", "clean"] if option == "batch_norm" else [OTHERS[option]]
        for choice in choices:
            if choice != options[option].default:
                changed = two_steps(name, {option: choice}, images)
                assert not torch.allclose(changed, plain, rtol=1e-3, atol=1e-6), (option, choice)
