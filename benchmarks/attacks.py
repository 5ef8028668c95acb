"""What PGD costs next to a plain loop of passes, and what attacks leave of a real CIFAR-10 model.

`python benchmarks/attacks.py` times PGD. With a folder of CIFAR-10's test images, one subfolder a class, and pyautoattack,
whose package holds the weights, it attacks a real model: `python benchmarks/attacks.py --data FOLDER --images 256`.
`--parity digits` and `--parity resnet18` compare AutoAttack with its authors' code, image by image, with the quick judge beside
both, on a small net that is trained against PGD first and on that real model.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from functools import partial
from pathlib import Path

import torch
from torch.nn import functional as F

import surefoot as sf
from _timing import ratios
from surefoot.allocator import keep_large_blocks
from surefoot.attacks import AutoAttack, evaluate, fast_strong, pgd
from surefoot.seeds import generator

STEPS, COUNT = 7, 512


def resnet18() -> torch.nn.Module:
    """The CIFAR-10 ResNet-18 of pyautoattack, which takes pixels in [0, 1]."""
    import pyautoattack

    folder = Path(pyautoattack.__file__).parent / "examples"
    spec = importlib.util.spec_from_file_location("pyautoattack_resnet", folder / "resnet.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    net = module.ResNet18()
    net.load_state_dict(torch.load(folder / "model_test.pt", map_location="cpu", weights_only=True))
    return net.eval()


def cost(rounds: int) -> None:
    """PGD-7 over 512 images against forward and backward passes without parameter gradients, interleaved."""
    model = sf.load_model("small-resnet", num_classes=10, image_size=32, seed=0).eval().requires_grad_(False)
    images = torch.rand(COUNT, 3, 32, 32, generator=generator("images"))
    labels = model(images).argmax(1)

    def passes() -> None:
        points = images.clone().requires_grad_()
        for _ in range(STEPS):
            torch.autograd.grad(F.cross_entropy(model(points), labels, reduction="sum"), points)

    def attack(levels: int, early_stop: bool):
        return lambda: pgd(model, images, labels, levels / 255, STEPS, early_stop=early_stop, generator=generator(0))

    jobs = {"plain passes": passes, "pgd": attack(8, False), "pgd, early stop": attack(8, True)}
    jobs["pgd 64/255, early stop"] = attack(64, True)  # where most images break in the first steps
    print(f"PGD-{STEPS} over {COUNT} images of 32 x 32, small-resnet, median of {rounds} interleaved rounds")
    for name, ratio in ratios(jobs, "plain passes", rounds).items():
        print(f"  {name:24} {ratio:6.3f}x")


def real_model(folder: str, count: int, batch_size: int, seconds: float) -> None:
    """Clean, FGSM, PGD and AutoAttack on real images; the model is accurate, and was not trained to be robust."""
    model = resnet18().requires_grad_(False)
    images, labels = pictures(folder, count)
    print(f"ResNet-18 of pyautoattack on {len(images)} CIFAR-10 test images, L-inf")
    print(f"  {'attack':20} {'accuracy':>9} {'success':>9} {'confidence':>11} {'ECE':>7} {'seconds':>8}")
    for name in ("clean", "fgsm", "pgd-weak", "pgd-strong", "autoattack-weak", "autoattack-strong"):
        began = time.perf_counter()
        found = evaluate(model, images, labels, "fgsm" if name == "clean" else name, batch_size=batch_size, seconds=seconds)
        took = time.perf_counter() - began
        side = found.clean if name == "clean" else found.attacked
        accuracy, success = float(side.correct.float().mean()), 0.0 if name == "clean" else found.success_rate
        ece, sure = sf.calibration.reliability(side).ece, float(side.confidences.mean())
        open_ends = "" if found.finished is None else f"  time is up: at least {found.bounds[0]:.1%}"
        print(f"  {name:20} {accuracy:9.1%} {success:9.1%} {sure:11.1%} {ece:7.1%} {took:8.1f}{open_ends}", flush=True)


def pictures(folder: str, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Some test images, with their labels."""
    batches = list(sf.load_data(folder, max_images=count).test.batches(256))
    return torch.cat([b.images for b in batches]), torch.cat([b.labels for b in batches])


def robust_digits(count: int) -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    """A small net trained against PGD at 0.1 on digits of 8 x 8, with the library's own objective, and `count` other digits."""
    data = sf.load_data("digits", seed=0)
    parts = [next(iter(split.batches(len(split)))) for split in (data.train, data.calibration, data.test) if split is not None]
    labels = torch.cat([part.labels for part in parts])
    images = F.adaptive_avg_pool2d(torch.cat([part.images for part in parts]).mean(1, keepdim=True), 8)
    few, rest = torch.randperm(len(images), generator=generator("digits")).split([count, len(images) - count])
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        *(torch.nn.Conv2d(1, 16, 3, 1, 1), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3, 2, 1), torch.nn.ReLU()),
        *(torch.nn.Flatten(), torch.nn.Linear(32 * 16, 10)),
    )
    objective, order = sf.objectives.AdversarialTraining(eps=0.1, steps=5), generator("order")
    optimiser = torch.optim.Adam(net.parameters(), 4e-3)
    for _ in range(10):
        for rows in rest[torch.randperm(len(rest), generator=order)].split(64):
            optimiser.zero_grad()
            objective(net, images[rows], labels[rows], generator=order).total.backward()
            optimiser.step()
    return net.eval(), images[few], labels[few]


def parity(
    model: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor, eps: float, iterations: int, queries: int
) -> None:
    """Robust accuracy and processor time of ours, of theirs and of the quick judge, and where ours and theirs disagree."""
    from pyautoattack.autoattack import AutoAttack as Theirs

    model.requires_grad_(False)
    began = time.process_time()
    found = evaluate(model, images, labels, AutoAttack(eps, iterations=iterations, queries=queries))
    ours, left = time.process_time() - began, found.clean.correct & found.attacked.correct
    other = Theirs(model, eps=eps, norm="Linf", seed=0)
    other.square.n_queries = queries
    for part in (other.apgd, other.apgd_targeted, other.fab):
        part.n_iter = iterations
    began = time.process_time()
    points, _ = other.run_standard_evaluation(images.clone(), labels.clone())
    theirs = time.process_time() - began
    with torch.no_grad():
        standing = torch.cat([model(part).argmax(1) for part in points.split(256)]) == labels
    began = time.process_time()
    quick = evaluate(model, images, labels, partial(fast_strong, eps=eps, iterations=iterations))
    took = time.process_time() - began
    clean = float(found.clean.correct.float().mean())
    print(f"{len(images)} images, L-inf {eps:.4g}, {iterations} iterations, {queries} queries, clean accuracy {clean:.1%}")
    for name, robust, seconds in (
        ("ours", float(left.float().mean()), ours),
        ("theirs", float(standing.float().mean()), theirs),
        ("fast-strong", quick.robust_accuracy, took),
    ):
        print(f"  {name:12} robust {robust:6.1%} {seconds:8.1f} s  {seconds / theirs:5.2f}x")
    missed = (left != quick.attacked.correct) & quick.clean.correct
    gap = 100 * (quick.robust_accuracy - float(left.float().mean()))
    print(f"  fast-strong leaves {gap:.1f} points more than ours, and differs at {missed.nonzero().flatten().tolist()}")
    print(f"  parts of ours: {found.share_of_parts}")
    print(f"  only they broke {(left & ~standing).nonzero().flatten().tolist()}, ", end="")
    print(f"only we broke {(~left & standing).nonzero().flatten().tolist()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="Folder with CIFAR-10's test images")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=900, help="for each attack")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--parity", choices=["digits", "resnet18"], help="Compare AutoAttack with its authors' code")
    parser.add_argument("--queries", type=int, default=5000, help="of Square")
    parser.add_argument("--iterations", type=int, default=100, help="of APGD and FAB, ours and theirs")
    parser.add_argument("--eps", type=float, default=8 / 255, help="L-inf budget")
    given = parser.parse_args()
    keep_large_blocks()
    if given.parity:
        if given.parity == "resnet18" and not given.data:
            parser.error("--parity resnet18 needs --data")
        own = given.parity == "digits"
        net, *few = robust_digits(given.images) if own else (resnet18(), *pictures(given.data, given.images))
        parity(net, *few, given.eps, given.iterations, given.queries)
        return
    cost(given.rounds)
    if given.data:
        real_model(given.data, given.images, given.batch, given.seconds)


if __name__ == "__main__":
    main()
