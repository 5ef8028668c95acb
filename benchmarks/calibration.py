"""Scores, intervals and temperature at the size of ImageNet's validation set, against the least that reading it can cost.

All scores: at most 2.5x of one log-softmax and one sort. 1,000 bootstrap draws of ECE: under 2 s. Temperature: under 10 passes.
"""

import resource
import time

import torch

import surefoot as sf
from _timing import interleaved, ratios
from surefoot.allocator import keep_large_blocks
from surefoot.calibration.scoring import NAMES, estimates

IMAGES, CLASSES, ROUNDS = 50_000, 1000, 9
LEAST = "one log-softmax and one sort"
draws = torch.Generator().manual_seed(0)
logits = torch.randn(IMAGES, CLASSES, generator=draws).mul_(2)
labels = torch.randint(CLASSES, (IMAGES,), generator=draws)
logits[torch.arange(IMAGES), labels] += 2 + 16 * torch.rand(IMAGES, generator=draws)  # about seven in ten are right
predictions = sf.Predictions.from_logits(logits, labels)


def least() -> None:
    logits.log_softmax(1)
    confidences.sort()


def all_scores() -> None:
    sf.calibration.scores(predictions, intervals=0)


before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
all_scores()
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
confidences = predictions.confidences
print(f"{IMAGES:,} x {CLASSES:,} logits, accuracy {predictions.correct.double().mean():.1%}, {torch.get_num_threads()} threads")
print(f"  peak memory grew by {grown:.0f} MB; the logits have {logits.nbytes / 2**20:.0f} MB")
for memory, tune in (("memory as torch has it", lambda: None), ("large blocks of memory kept", keep_large_blocks)):
    tune()
    found = ratios({LEAST: least, "scores": all_scores}, LEAST, ROUNDS)["scores"]
    print(f"  {len(NAMES)} scores: {found:.2f}x of {LEAST} (median of {ROUNDS} pairs, {memory})")
seconds = interleaved({"ece": lambda: estimates(predictions, ["ece"], intervals=1000)}, 3)
print(f"  1,000 draws of ECE: {seconds['ece']:.2f} s")
began = time.perf_counter()
sf.calibration.scores(predictions, intervals=1000)
print(f"  1,000 draws of all: {time.perf_counter() - began:.1f} s")
began = time.perf_counter()
fitted = sf.calibration.fit_temperature(predictions)
print(f"  temperature {fitted.temperature:.4f}: {fitted.passes} passes, {time.perf_counter() - began:.1f} s")
