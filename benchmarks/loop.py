"""What the loop adds to the bare forward, backward and optimiser step of the small net: at most 3 %."""

import torch
from torch.nn import functional as F

import surefoot as sf
from _timing import ratios
from surefoot.allocator import keep_large_blocks
from surefoot.data.augmentation import Augmentation
from surefoot.seeds import generator, global_seed
from surefoot.training.checkpoints import History
from surefoot.training.engine import build_engine
from surefoot.training.processes import accelerated

BATCH, STEPS = 128, 2
keep_large_blocks()
data = sf.load_data("digits")
options = {
    "batch_size": BATCH,
    "accumulation": 1,
    "channels_last": False,
    "compile": False,
    "optimiser": "sgd",
    "seed": 0,
    "learning_rate": 0.01,
    "momentum": 0.9,
    "nesterov": True,
    "weight_decay": 5e-4,
    "decay_norms_and_biases": True,
    "schedule": "constant",
    "epochs": 10,
    "warmup_epochs": 0,
    "decay_epochs": 50,
    "decay_rate": 0.1,
    "ema_decay": None,
    "clip_norm": None,
    "augmentation": Augmentation(crop_padding=0.125, flip=True),
}
bare = sf.load_model("small-resnet", data=data, seed=0).train()
optimiser = torch.optim.SGD(bare.parameters(), 0.01, momentum=0.9, nesterov=True, weight_decay=5e-4)
ready = [(batch.images, batch.labels) for batch in data.train.batches(BATCH, drop_last=True)][:STEPS]


def bare_steps() -> None:
    for images, labels in ready:
        optimiser.zero_grad()
        F.cross_entropy(bare(images), labels).backward()
        optimiser.step()


with accelerated(torch.device("cpu"), "float32", None, None) as accelerator, global_seed(0):
    engine = build_engine(
        accelerator, sf.load_model("small-resnet", data=data, seed=0), sf.objectives.CrossEntropy(), 899, options
    )
    engine.step.train()
    history = History(1, STEPS, False, [], accelerator)

    def loop_steps() -> None:
        """Batches, augmentation, seeds, checks, history and all."""
        batches = data.train.batches(BATCH, shuffle=generator(0), drop_last=True, part=engine.share)
        for number, batch in zip(range(STEPS), batches, strict=False):
            history.add(engine.update(batch, 0, number), BATCH)

    jobs = {"forward, backward, step": bare_steps, "the loop": loop_steps}
    found = ratios(jobs, "forward, backward, step", rounds=40)
    print(f"small-resnet, batch {BATCH}: the loop takes {found['the loop']:.3f}x of the bare step (median of 40 pairs)")
