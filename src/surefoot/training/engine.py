"""What an update of the weights needs, and the update: accumulation, mixed precision, clipping, the moving average."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..data.augmentation import Augmentation, apply
from ..errors import SurefootError, require
from ..models.classifier import Classifier
from ..objectives.base import NotFinite, Objective
from ..seeds import generator, reseed, sharded
from ..types import Batch, Images, Labels, Terms
from .optimisation import build_optimiser, build_schedule
from .processes import share_of

# Model and objective as one module with a single forward, which is what a wrapper such as DDP needs to see.


class Step(nn.Module):
    """The forward pass of a training step."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, images: Images, labels: Labels, generator: torch.Generator | None = None) -> Terms:
        terms: Terms = self.objective(self.model, images, labels, generator=generator)
        return terms


@dataclass
class Engine:
    """Model, objective and optimiser behind accelerate's wrappers, and the same without them."""

    accelerator: Any
    step: nn.Module  # Step, perhaps inside DDP
    model: Classifier
    objective: Objective
    optimiser: Any  # accelerate's
    plain_optimiser: torch.optim.Optimizer
    schedule: Any
    average: Any  # timm's ModelEmaV3, or None
    augmentation: Augmentation
    seed: int
    batch_size: int
    steps: int
    accumulation: int
    clip_norm: float | None
    channels_last: bool
    best: dict[str, Tensor] = field(default_factory=dict)
    recipe_key: str = ""  # what its state belongs to

    @property
    def rank(self) -> int:
        return int(self.accelerator.process_index)

    @property
    def processes(self) -> int:
        return int(self.accelerator.num_processes)

    @property
    def share(self) -> Tensor:
        """This process's indices in a global batch."""
        return share_of(self.batch_size, self.rank, self.processes, self.accumulation)

    @property
    def judged(self) -> nn.Module:
        """The weights that are validated and kept: the moving average if there is one."""
        return self.average.module if self.average is not None else self.model

    @property
    def learning_rate(self) -> float:
        return float(self.plain_optimiser.param_groups[0]["lr"])

    @property
    def modules(self) -> dict[str, nn.Module]:
        """What has a state."""
        modules: dict[str, nn.Module] = {"model": self.model, "objective": self.objective}
        return modules | ({"average": self.average.module} if self.average is not None else {})

    def predictor(self) -> nn.Module:
        return self.objective.predictor(self.judged)

    def update(self, batch: Batch, epoch: int, number: int) -> Terms:
        """One optimiser step on this process's share of a global batch.

        Draws are made for the global batch and sliced, so that any number of processes sees the same numbers.
        """
        rank, processes, done = self.rank, self.processes, epoch * self.steps + number
        height, width = batch.images.shape[2:]

        def augmented(key: str) -> Images:
            draws = self.augmentation.draw(self.batch_size, height, width, generator(self.seed, epoch, number, key))
            images = apply(batch.images, draws[self.share])
            return images.contiguous(memory_format=torch.channels_last) if self.channels_last else images

        images = augmented("augmentation")
        again = augmented("second augmentation").chunk(self.accumulation) if self.objective.second_augmentation else ()
        reseed(images.device, self.seed, epoch, number, rank, "model")  # dropout and the like
        self.schedule.step_update(done)
        by_part = []
        for part, (some, labels) in enumerate(
            zip(images.chunk(self.accumulation), batch.labels.chunk(self.accumulation), strict=True)
        ):
            self.objective.second = again[part] if again else None
            with self.syncing(part), sharded(rank, processes):
                with locating(epoch, number):
                    terms = self.step(some, labels, generator(self.seed, epoch, number, part, "objective"))
                    check_finite(terms)
                self.accelerator.backward(terms.total / self.accumulation)
            by_part.append(terms)
        if self.clip_norm is not None:
            self.accelerator.clip_grad_norm_(self.step.parameters(), self.clip_norm)
        self.optimiser.step()
        self.optimiser.zero_grad()
        if self.average is not None:
            self.average.update(self.model, step=done + 1)
        return by_part[0] if len(by_part) == 1 else mean_terms(by_part)

    def syncing(self, part: int) -> AbstractContextManager[Any]:
        """Gradients are averaged over processes at the last part of a batch only."""
        last = part == self.accumulation - 1
        return nullcontext() if last else self.accelerator.no_sync(self.step)

    def end_epoch(self) -> None:
        """Running statistics of batch norm are averaged over processes, so that all have the same model."""
        if self.processes > 1:
            from timm.utils import distribute_bn

            for module in self.modules.values():
                distribute_bn(module, self.processes, reduce=True)


def build_engine(accelerator: Any, model: Classifier, objective: Objective, images: int, options: dict[str, Any]) -> Engine:
    """Everything that `options`, the arguments of `fit`, ask for."""
    parts = accelerator.num_processes * options["accumulation"]
    wanted = options["batch_size"]
    require(wanted % parts == 0, "batch_size", f"a multiple of processes x accumulation = {parts}", wanted)
    batch_size = min(wanted, images // parts * parts)
    if batch_size == 0:
        raise SurefootError(f"{images} training images are too few for {parts} parts of a batch.")
    model.to(accelerator.device)
    if options["channels_last"]:
        model.to(memory_format=torch.channels_last)
    called: Any = torch.compile(model) if options["compile"] else model
    whole = Step(called, objective.to(accelerator.device))
    names = ("optimiser", "learning_rate", "momentum", "nesterov", "weight_decay", "decay_norms_and_biases")
    plain = build_optimiser(whole, **{name: options[name] for name in names})
    steps = images // batch_size
    course = ("schedule", "epochs", "warmup_epochs", "decay_epochs", "decay_rate")
    schedule = build_schedule(plain, steps=steps, **{name: options[name] for name in course})
    average = moving_average(model, options["ema_decay"])
    with warnings.catch_warnings():  # accelerate has no word yet for the new name of this argument of DDP
        warnings.filterwarnings("ignore", message="`broadcast_buffers` is deprecated", category=FutureWarning)
        step, optimiser = accelerator.prepare(whole, plain)
    return Engine(
        accelerator, step, model, objective, optimiser, plain, schedule, average, options["augmentation"], options["seed"],
        batch_size, steps, options["accumulation"], options["clip_norm"], options["channels_last"],
    )  # fmt: skip


def moving_average(model: nn.Module, decay: float | None) -> Any:
    """timm's moving average, which follows closely at first and slowly later."""
    if decay is None:
        return None
    from timm.utils import ModelEmaV3

    return ModelEmaV3(model, decay=decay, use_warmup=True)


def check_finite(terms: Terms) -> None:
    """Stop at the first loss that is not a number, and name the term that broke."""
    if not bool(torch.isfinite(terms.total)):
        broken = [name for name, value in terms.parts.items() if not bool(torch.isfinite(value))]
        raise NotFinite(broken or ["total"], terms.logits.detach())


@contextmanager
def locating(epoch: int, number: int) -> Iterator[None]:
    """Say where a loss stopped being a number, and what to do."""
    try:
        yield
    except NotFinite as error:
        said = ", ".join(error.terms) if error.terms != ["total"] else "the total (its parts are finite)"
        raise SurefootError(
            f"The loss is not finite at epoch {epoch + 1}, step {number + 1}: {said}. "
            "Lower learning_rate or set clip_norm; the last finished epoch is kept."
        ) from error


def mean_terms(by_part: list[Terms]) -> Terms:
    """The terms of a batch that was computed in parts."""
    parts = {name: torch.stack([terms.parts[name] for terms in by_part]).mean() for name in by_part[0].parts}
    total = torch.stack([terms.total.detach() for terms in by_part]).mean()
    return Terms(total, parts, torch.cat([terms.logits.detach() for terms in by_part]))
