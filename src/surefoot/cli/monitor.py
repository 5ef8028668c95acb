"""`surefoot monitor`: how a run does on pictures without labels, against its audit; exit code 1 where an alarm goes off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..auditing.arguments import check_audited
from ..auditing.rules import parse_rule
from ..files import write_text
from ..keys import LARGEST as LARGEST_SEED
from ..models.arguments import check_device
from ..ood.arguments import check_pictures
from ..plain import plain
from ..report.monitor_page import render_monitor
from . import options as flag

if TYPE_CHECKING:
    from ..auditing.unlabelled import Monitored

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def monitor(
    target: Annotated[Path, typer.Argument(help="Run folder with its audit")],
    data: Annotated[str, typer.Option(metavar="NAME|DIR|FILE", help="Pictures without labels, or a file of predictions")],
    audit: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the audit [default: the run folder]")] = None,
    alarm: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="An alarm, such as 'accuracy < 0.8'; may be repeated")
    ] = None,
    max_images: Annotated[int | None, typer.Option(min=1, help="At most so many pictures")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images at a time")] = 256,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Decides the intervals")] = 0,
    device: flag.Device = "auto",
    allow_code: flag.AllowCode = False,
    output: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a page too")] = None,
    json_: flag.Json = False,
    quiet: flag.Quiet = False,
) -> None:
    """Estimated accuracy, share answered, share that looks foreign, and drift, without labels; exits with 1 on an alarm."""
    flag.check_output(output)
    check_device(device)
    check_audited(target if audit is None else audit)
    check_pictures(data)
    for rule in alarm or ():
        parse_rule(rule)
    from ..auditing.unlabelled import monitor as watch

    found = watch(
        target,
        data,
        audit=audit,
        alarm=alarm or (),
        max_images=max_images,
        batch_size=batch_size,
        device=device,
        seed=seed,
        allow_code=allow_code,
    )
    if output is not None:
        write_text(output, render_monitor(target.name, data, plain(found)))
    if json_:
        print(json.dumps(plain(found)))
    elif not quiet:
        print("\n".join(said(found)))
    if found.alarmed:
        raise typer.Exit(1)


def percent(value: float | None) -> str:
    if value is None:
        return "not known"
    ends = [getattr(value, end, None) for end in ("low", "high")]
    interval = "" if None in ends else f" ({100 * ends[0]:.1f}-{100 * ends[1]:.1f})"  # type: ignore[operator]
    return f"{100 * value:.1f} %{interval}"


def said(found: Monitored) -> list[str]:
    """A line for each thing, the audit's own number beside it."""
    lines = [f"{found.images} pictures without labels, beside {found.audited_images} audited ones (95 % intervals)"]
    lines.append(f"accuracy, estimated   {percent(found.accuracy)} by {found.by}; audited {percent(found.audited_accuracy)}")
    for name, value in found.estimates.items():
        errors = list(found.errors.get(name, {}).values())
        known = f"; mean error on families of corruptions {100 * sum(errors) / len(errors):.1f}" if errors else ""
        lines.append(f"  by {name:<18} {percent(value)}{known}")
    lines.append(f"answered alone        {percent(found.answered)}; audited {percent(found.audited_answered)}")
    by = f" by {found.foreign_score}; audited 5.0 %" if found.foreign_score else ""
    lines.append(f"looks foreign         {percent(found.foreign)}{by}")
    lines.append(f"mean confidence       {percent(found.confidence)}; audited {percent(found.audited_confidence)}")
    lines += [
        f"drift of {name:<12} p = {test['p']:.2g}, statistic {test['statistic']:.3g}" for name, test in found.drift.items()
    ]
    lines += [f"! {note}" for note in found.notes]
    lines += [f"{'ALARM ' if alarm.on else 'quiet '} {alarm.rule}, found {alarm.value:.4g}" for alarm in found.alarms]
    return lines
