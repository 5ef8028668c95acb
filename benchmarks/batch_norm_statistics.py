"""What statistics of clean images alone, as `batch_norm="clean"` keeps them, change in a run that was trained with them mixed.

`python benchmarks/batch_norm_statistics.py RUN ...`: the choice changes no gradient, so a run need not be trained again: its
statistics are taken anew, over one epoch of its training images, augmented as in training.
"""

import argparse

import torch
from torch.nn.modules.batchnorm import _BatchNorm

import surefoot as sf
from surefoot.auditing.passes import measure
from surefoot.data.augmentation import Augmentation
from surefoot.measurements.context import Context
from surefoot.measurements.registry import build
from surefoot.seeds import generator

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("runs", nargs="+")
parser.add_argument("--max-images", type=int, default=2000, help="test images under corruption")
arguments = parser.parse_args()


def clean_statistics(run, data):
    """Batch norm's statistics of the augmented training images, averaged over an epoch."""
    for layer in run.model.modules():
        if isinstance(layer, _BatchNorm):
            layer.reset_running_stats()
            layer.momentum = None
    augmentation, draws = Augmentation(**run.recipe.augmentation), generator(0, "statistics")
    run.model.train()
    with torch.no_grad():
        for batch in data.train.batches(run.recipe.training["batch_size"], shuffle=generator(0, "order"), drop_last=True):
            run.model(augmentation(batch.images, generator=draws))
    run.model.eval()


def scores(run, data):
    context = Context(run.model, data, data.test, torch.device("cpu"), calibrate_on="calibration", intervals=0)
    wanted = {"clean": build("clean", {}), "corrupted": build("corruptions", {"max_images": arguments.max_images})}
    found = {name: each.numbers(measure(context, each, name)) for name, each in wanted.items()}
    return "  ".join(f"{name} {100 * each['accuracy']:.1f} % (ECE {100 * each['ece']:.1f} %)" for name, each in found.items())


for folder in arguments.runs:
    run = sf.load_run(folder)
    data = run.recipe.load_data()
    name = f"{run.recipe.objective['name']} seed {run.recipe.seed}"
    print(f"{name:<24}as trained        {scores(run, data)}", flush=True)
    clean_statistics(run, data)
    print(f"{name:<24}clean statistics  {scores(run, data)}", flush=True)
