"""`surefoot doctor`: what this machine has and what Surefoot would use."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from typing import Annotated

import typer

from ..allocator import keep_large_blocks
from ..version import VERSION

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
PACKAGES = ("torch", "torchvision", "timm", "accelerate", "safetensors", "pydantic", "plotly", "scikit-learn")


@app.command()
def doctor(json_: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False) -> None:
    """Say what is here, and train one step to see that it works; exit 1 if it does not."""
    import torch

    from ..models.classifier import pick_device
    from ..training.precision import choose_precision

    facts = {
        "surefoot": VERSION,
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "processors": f"{os.cpu_count()} cores, torch uses {torch.get_num_threads()} threads",
        "device": str(pick_device()),
        "precision": "{} ({})".format(*choose_precision("auto", pick_device())),
        "allocator": keep_large_blocks(),
        "training step": try_step(),
    }
    print(json.dumps(facts) if json_ else "\n".join(f"{name:15} {value}" for name, value in facts.items()))
    if facts["training step"] != "works":
        raise typer.Exit(1)


def try_step() -> str:
    """One forward and backward pass of the small net where training would happen."""
    import torch

    from ..models.classifier import pick_device
    from ..models.loading import load_model
    from ..objectives.cross_entropy import CrossEntropy

    device = pick_device()
    model = load_model("small-resnet", num_classes=3, seed=0).to(device)
    try:
        terms = CrossEntropy()(model, torch.rand(4, 3, 32, 32, device=device), torch.tensor([0, 1, 2, 0], device=device))
        terms.total.backward()
    except RuntimeError as error:
        return f"fails: {str(error).splitlines()[0]}"
    return "works" if torch.isfinite(terms.total) else "gives a loss that is not finite"
