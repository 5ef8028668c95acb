"""The training loop, on one screen."""

from __future__ import annotations

import time
from pathlib import Path

from ..data.dataset import Dataset
from ..seeds import generator
from .checkpoints import History, Progress, load_state, save_state
from .engine import Engine
from .runs import keep_best, write_history
from .validation import is_better, should_stop, validate


def train(
    engine: Engine,
    data: Dataset,
    epochs: int,
    patience: int | None,
    folder: Path | None,
    progress: bool,
    keep: str,
) -> Progress:
    """Epoch after epoch, from the last one that was finished."""
    rank, device = engine.rank, engine.accelerator.device
    state = (load_state(folder, engine, keep == "best") if folder else None) or Progress()
    with History(epochs, engine.steps, progress and rank == 0, state.history, engine.accelerator) as history:
        while state.epoch < epochs and not should_stop(state, patience):
            epoch, began = state.epoch, time.perf_counter()
            engine.step.train()
            order = generator(engine.seed, epoch, "order")
            batches = data.train.batches(engine.batch_size, shuffle=order, drop_last=True, device=device, part=engine.share)
            for number, batch in enumerate(batches):
                history.add(engine.update(batch, epoch, number), len(batch))
            engine.end_epoch()
            rate = engine.steps * engine.batch_size / (time.perf_counter() - began)
            validation = validate(engine.predictor(), data, engine.batch_size, device)
            history.end_epoch({**validation, "learning_rate": engine.learning_rate}, rate)
            state = Progress(epoch + 1, history.epochs, epoch + 1 if is_better(history.epochs) else state.best_epoch)
            if state.best_epoch == state.epoch:
                engine.best = {key: value.clone() for key, value in engine.judged.state_dict().items()}
                if folder and rank == 0:
                    keep_best(folder, engine.best)
            if folder and rank == 0:
                save_state(folder, engine, state)
                write_history(folder, state.history)  # last: it never tells of an epoch that would be computed again
    return state
