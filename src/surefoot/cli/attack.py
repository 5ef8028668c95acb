"""`surefoot attack`: the security curve of a run, a named model or any module, with calibration beside accuracy."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..attacks.table import ATTACKS, FIXED, WITHOUT_GRADIENT
from ..errors import SurefootError, require
from ..files import write_text
from ..keys import LARGEST as LARGEST_SEED
from ..metrics import find
from ..models.arguments import check_device
from ..plain import plain
from ..schemas import parse_value
from . import options as flag
from .targets import check_ways, find_target

if TYPE_CHECKING:
    from ..attacks.evaluation import CurvePoint

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
BUDGETS = "0,1/255,2/255,4/255,8/255"
BLIND = "square"  # what a model without gradients is attacked by, from its scores
CHECKED = 64  # images that are looked at for signs of masked gradients
TELLING = 8 / 255  # in a smaller ball a net is nearly linear: one step does as well as many, which is no sign


@app.command()
@flag.with_blocks
def attack(
    *,
    target: Annotated[Path | None, typer.Argument(help="Run folder")] = None,
    attack: Annotated[str, typer.Option(help=", ".join(ATTACKS.names) + ", or package.module:function")] = "pgd",
    eps: Annotated[str | None, typer.Option(metavar="E,E,...", help=f"Budgets in pixel units [default: {BUDGETS}]")] = None,
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any option of the attack; may be repeated")
    ] = None,
    source: flag.ModelFlags,
    split: flag.SplitName = "test",
    reading: flag.DataFlags,
    max_images: flag.MaxImages = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images at a time")] = 256,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Decides random starts and intervals")] = 0,
    seconds: Annotated[float | None, typer.Option(help="Stop after so long at each budget and say what is proven")] = None,
    keep: Annotated[Path | None, typer.Option(help="Folder for finished batches; the same command goes on from there")] = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Do not look for signs of masked gradients")] = False,
    device: flag.Device = "auto",
    output: Annotated[Path | None, typer.Option(help="Write the curve to this CSV file")] = None,
    json_: flag.Json = False,
    quiet: flag.Quiet = False,
) -> None:
    """Attack the images of a split at several budgets; accuracy, confidence and calibration under attack."""
    check_ways(target, source)
    flag.check_output(output)
    flag.check_folder(keep, "--keep")
    require(seconds is None or 0 < seconds < math.inf, "--seconds", "positive", seconds)
    ATTACKS.check(attack)
    check_device(device)
    varied = attack not in FIXED if attack in ATTACKS.ours else own_takes_budget(attack)
    if eps is not None and not varied:
        raise SurefootError(f"{attack} has its own budget: --eps is for the attacks without one in their name.")
    budgets, options = flag.parse_numbers("--eps", eps or BUDGETS, BUDGETS), parse_options(set or [])
    if "eps" in options:
        raise SurefootError("The budget is --eps, not --set eps.")
    data_options = reading.options(split, max_images=max_images)
    loaded = find_target(target, source, {**data_options, "lazy": True, "audited": split == "test"})
    import torch

    from ..attacks.evaluation import security_curve
    from ..attacks.gradient_masking import masking_signs
    from ..attacks.gradients import gives_gradients
    from ..attacks.presets import budget_of
    from ..data.dataset import whole
    from ..models.classifier import pick_device

    torch_device = pick_device(device)
    subject = loaded.model.to(torch_device)
    batch = whole(loaded.data.split(split), batch_size, torch_device)
    images, labels, numbers = batch.images, batch.labels, batch.indices
    steep = gives_gradients(subject, images)
    if not steep and attack in ATTACKS.ours and attack not in WITHOUT_GRADIENT:
        if options:
            raise SurefootError(f"{loaded.name} gives no gradient, which {attack} needs; --attack square and rays do not.")
        said = f"{loaded.name} gives no gradient: {BLIND}, which asks for scores alone, takes the place of {attack}."
        typer.echo(said, err=True)
        attack, varied = BLIND, True
    run: dict[str, Any] = {"batch_size": batch_size, "seed": seed}
    paced: dict[str, Any] = {"seconds": seconds, "progress": not quiet, "folder": keep}
    chosen_budgets = budgets if varied else None
    points = security_curve(subject, images, labels, attack, chosen_budgets, options=options, indices=numbers, **paced, **run)
    signs = []
    largest = max(budgets) if varied else max(budget_of(attack) or 0, TELLING)
    norm = str(options.get("norm", "linf"))
    if steep and not no_check and largest > 0 and norm != "l1":
        # spread over all images, as folders are sorted by class
        some = torch.linspace(0, len(images) - 1, min(CHECKED, len(images)), device=torch_device).long()
        signs = masking_signs(subject, images[some], labels[some], largest, norm, indices=numbers[some.cpu()], **run)
    rows = [plain(asdict(point)) for point in points]
    if json_:
        print(json.dumps({"name": loaded.name, "split": split, "curve": rows, "masking": signs}))
    elif not quiet:
        Console().print(as_table(f"{loaded.name}, {split} split, {attack}, 95 % intervals", points))
        for line in signs:
            print(f"! {line}")
    if output is not None:
        write_text(output, as_csv(points))


def own_takes_budget(attack: str) -> bool:
    """Whether an attack of one's own has an `eps`; of ours all have that do not have a budget in their name."""
    from ..attacks.presets import takes_budget

    return takes_budget(attack)


def parse_options(settings: list[str]) -> dict[str, Any]:
    """`steps=20` and so on."""
    options = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise SurefootError(f"--set takes NAME=VALUE, got '{setting}'.")
        options[name] = parse_value(text)
    return options


def budget(eps: float | None) -> str:
    """In steps of an 8-bit pixel where that is a round number."""
    if eps is None:
        return "its own"
    levels = round(255 * eps, 3)
    return f"{levels:g}/255" if eps and abs(levels - 255 * eps) < 1e-9 else f"{eps:g}"


def as_table(title: str, points: list[CurvePoint]) -> Table:
    """A row for each budget, for the screen."""
    shown = Table(title=Text(title), title_justify="left")
    for name in ("eps", "accuracy", "success_rate", "confidence", "ece", "signed_error", "queries"):
        shown.add_column(find(name).label.replace(" - ", "\n- "), justify="right")
    for point in points:
        accuracy = f"{point.accuracy:.1%}\n{100 * point.accuracy.low:.1f}-{100 * point.accuracy.high:.1f}"
        if point.unfinished:
            proven = 100 * (point.accuracy - point.unfinished / point.images)
            accuracy = f"{proven:.1f} to {point.accuracy:.1%}\ntime is up"
        ece = f"{point.ece:.1%}\n{100 * point.ece.low:.1f}-{100 * point.ece.high:.1f}"
        row = (budget(point.eps), accuracy, f"{point.success_rate:.1%}", f"{point.confidence:.1%}", ece)
        shown.add_row(*row, f"{100 * point.signed_error:+.1f}%", f"{point.queries or 0:.0f}")
    return shown


def as_csv(points: list[CurvePoint]) -> str:
    """One line for each budget; an interval takes two more columns."""
    lines = []
    for point in points:
        line: dict[str, Any] = {}
        for name, value in plain(asdict(point)).items():
            if isinstance(value, dict):
                line |= {name: value["value"], f"{name}_low": value["low"], f"{name}_high": value["high"]}
            else:
                line[name] = value
        lines.append(line)
    text = io.StringIO()
    writer = csv.DictWriter(text, lines[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()
