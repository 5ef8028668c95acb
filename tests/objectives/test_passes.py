"""Clean and perturbed passes: apart and together, wrapped models, views that misbehave."""

import re
from functools import partial

import pytest
import torch
import torch.distributed.nn  # read after a group began, its functions would keep it as a default argument
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import surefoot as sf
from forked import child_of_this
from surefoot.errors import SurefootError
from surefoot.objectives.methods import OBJECTIVES, build_objective
from surefoot.objectives.passes import has_batch_norm, logits_of, outputs_of
from surefoot.seeds import generator, sharded

LABELS = torch.arange(6) % 5


def normed():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(784, 5))


def test_apart_and_together(images):
    """Apart: statistics of each batch. Together: statistics of all."""
    net, other = normed(), images.flip(0) ** 2
    apart = logits_of(net, [images, other], "apart")
    assert torch.allclose(apart[0], net(images), atol=1e-6)
    assert torch.allclose(apart[1], net(other), atol=1e-6)
    together = logits_of(net, [images, other], "together")
    assert torch.allclose(torch.cat(together), net(torch.cat([images, other])), atol=1e-6)
    assert not torch.allclose(together[1], apart[1], atol=1e-2)


def test_statistics_of_clean_images_alone(images):
    """The logits and gradients of "apart"; what is kept for evaluation is what the clean batch alone would leave."""
    other = images.flip(0) ** 2
    kept, apart, alone = normed(), normed(), normed()
    alone(images)
    for net, choice in ((kept, "clean"), (apart, "apart")):
        sum(logits.square().mean() for logits in logits_of(net, [images, other], choice)).backward()
    for mine, theirs in zip(kept.parameters(), apart.parameters(), strict=True):
        assert torch.equal(mine.grad, theirs.grad)
    assert torch.equal(kept[1].running_mean, alone[1].running_mean)
    assert torch.equal(kept[1].running_var, alone[1].running_var)
    assert kept[1].num_batches_tracked == 1
    assert not torch.allclose(kept[1].running_mean, apart[1].running_mean, atol=1e-3)
    assert kept[1].track_running_stats


def test_clean_statistics_come_back_after_an_error(images):
    net = normed()
    with pytest.raises(RuntimeError):
        logits_of(net, [images, images[:, :2]], "clean")
    assert net[1].track_running_stats


def test_without_batch_norm_one_pass_is_the_same(images):
    torch.manual_seed(0)
    calls = []
    net = nn.Sequential(nn.Flatten(), nn.LayerNorm(768), nn.Linear(768, 8), nn.ReLU(), nn.Linear(8, 5))
    net.register_forward_pre_hook(lambda _, inputs: calls.append(len(inputs[0])))
    first, second = outputs_of(net, [images, images[:3] ** 2], "apart")
    assert calls[-1] == 9
    assert torch.allclose(first.logits, net(images), atol=1e-6)
    assert torch.allclose(second.features, net[:4](images[:3] ** 2), atol=1e-6)
    frozen = normed().eval()  # batch norm that takes no statistics makes no difference either
    assert not has_batch_norm(frozen)
    assert has_batch_norm(normed())


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (lambda x, generator=None: x[:, :, 1:], "view <lambda>'s shape must be (6, 3, 16, 16), got (6, 3, 15, 16)"),
        (lambda x, generator=None: x.double(), "view <lambda>'s dtype must be torch.float32, got torch.float64"),
        (lambda x, generator=None: x / 0, "view <lambda>'s pixels must be finite, got NaN or infinity"),
        (lambda x, generator=None: None, "view <lambda>'s result must be a tensor, got 'NoneType'"),
    ],
)
def test_bad_views(images, view, message):
    for objective in (sf.objectives.MaCS(view=view), sf.objectives.Stability(view=view), sf.objectives.NoisyOnly(view=view)):
        with pytest.raises(SurefootError, match=re.escape(message)):
            objective(normed(), images, LABELS)


@pytest.mark.parametrize(
    ("name", "before"),
    [
        *(("macs", False), ("macs", True), ("augmix", True), ("discriminative", True), ("stability", False), ("trades", True)),
        *(pytest.param(name, False, marks=pytest.mark.stress) for name in ("augmix", "discriminative", "trades")),
        pytest.param("stability", True, marks=pytest.mark.stress),
    ],
)
def test_compiled_models_give_the_same(images, name, before):
    """Features are seen in compiled code too, also where the model was compiled and run before."""
    torch.compiler.reset()
    plain, compiled = normed(), normed()
    fast = torch.compile(compiled, backend="aot_eager")
    if before:
        fast(images)
        plain(images)
    for step in range(2):
        a, b = (
            build_objective(name, {})(net, images * (1 - 0.01 * step), LABELS, generator=generator(step))
            for net in (plain, fast)
        )
        assert a.total.item() == pytest.approx(b.total.item(), rel=1e-4), name
        a.total.backward()
        b.total.backward()
    for p, q in zip(plain.parameters(), compiled.parameters(), strict=True):
        assert torch.allclose(p.grad, q.grad, atol=1e-4)
    torch.compiler.reset()


def deep(norm=False):
    torch.manual_seed(0)
    body = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4) if norm else nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(144, 8), nn.ReLU(), nn.Linear(8, 5)).double()


def batch():
    images = torch.rand(8, 3, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return images, torch.tensor([0, 0, 0, 1, 2, 2, 1, 0])  # the second half has other classes, and 3 and 4 are missing


def found_by_one_of_two(rank, place):
    """Gradients, centroids and terms of every method after two steps with DDP; the first process writes them."""
    distributed.init_process_group("gloo", init_method=f"file://{place / 'group'}", rank=rank, world_size=2)
    images, labels = (part[rank * 4 : rank * 4 + 4] for part in batch())
    found = {}
    for name in OBJECTIVES.names:
        model, objective = deep(), build_objective(name, {})
        parallel = DistributedDataParallel(model)
        for step in range(2):
            with sharded(rank, 2):
                terms = objective(parallel, images, labels, generator=generator(step))
            parallel.zero_grad()
            terms.total.backward()
        gradients = {key: p.grad.clone() for key, p in model.named_parameters()}
        parts = {f"part {key}": value for key, value in terms.parts.items()}
        found[name] = gradients | dict(objective.state_dict()) | parts
        normed = DistributedDataParallel(deep(norm=True))  # buffers are broadcast at each call: two must not break a backward
        build_objective(name, {})(normed, images, labels).total.backward()
    if rank == 0:
        torch.save(found, place / "found.pt")
    del parallel, normed  # they hold the group
    distributed.destroy_process_group()


def test_two_processes_equal_one_for_every_method(tmp_path):
    """Loss, gradients and centroids of DDP with two processes against the global batch in one.

    Mixup and CutMix look for partners in their own process, so only their running is checked.
    """
    works = [(partial(found_by_one_of_two, rank, tmp_path), tmp_path / f"said-{rank}") for rank in range(2)]
    with child_of_this(*works[0]) as first, child_of_this(*works[1]) as second:
        codes = [first.wait(), second.wait()]
    assert codes == [0, 0], [(tmp_path / f"said-{rank}").read_text()[-3000:] for rank in range(2)]
    two = torch.load(tmp_path / "found.pt", weights_only=True)
    images, labels = batch()
    for name in OBJECTIVES.names:
        if name in ("mixup", "cutmix"):
            continue
        net, objective = deep(), build_objective(name, {})
        for step in range(2):
            terms = objective(net, images, labels, generator=generator(step))
            net.zero_grad()
            terms.total.backward()
        for key, p in net.named_parameters():
            assert torch.allclose(two[name][key], p.grad, atol=1e-6), (name, key)
        for key, value in objective.state_dict().items():
            assert torch.allclose(two[name][key].double(), value.double(), atol=1e-6), (name, key)
        if name == "discriminative":  # its own terms are global; a mean over images is each process's own
            for part in ("compact", "margin", "regulariser", "noisy"):
                assert two[name]["part " + part].item() == pytest.approx(terms.parts[part].item(), abs=1e-6), part
