"""`surefoot gate`: does an audit keep the rules? For other people's CI: exit code 1 and the broken rules if not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..auditing.number_names import check_audit
from ..auditing.rules import FORMATS, Rule, judge, parse_rule, parse_rules
from ..errors import SurefootError, UnknownName, printable
from ..files import read_json, read_text, write_text
from ..schemas import load_yaml
from . import options as flag

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def gate(
    audit: Annotated[Path, typer.Argument(help="audit.json, or the folder that holds it")],
    rules: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="A list of rules")] = None,
    rule: Annotated[
        list[str] | None, typer.Option(help="A rule, such as 'ece < 0.03' or 'no worse than old.json by 0.01'; may be repeated")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An earlier audit: the same as --rule 'no worse than FILE'")
    ] = None,
    cautious: Annotated[bool, typer.Option("--cautious", help="Judge by the worse end of every interval")] = False,
    format: Annotated[str, typer.Option(help=", ".join(FORMATS))] = "text",
    output: Annotated[Path | None, typer.Option(help="Write the outcome to this file too")] = None,
    quiet: flag.Quiet = False,
) -> None:
    """Judge an audit by rules; exits with 1 if one is broken."""
    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    flag.check_output(output)
    read = read_numbers(audit)
    wanted = [] if rules is None else parse_rules(read_yaml(rules))
    wanted += [parse_rule(text) for text in rule or ()]
    if baseline is not None:
        wanted.append(Rule(f"no worse than {baseline}", "", baseline=str(baseline.absolute())))
    if not wanted:
        raise SurefootError("Give --rules FILE, --rule 'NAME < NUMBER' or --baseline FILE.")
    beside = Path() if rules is None else rules.parent
    baselines = {one.baseline: read_numbers(baseline_at(one.baseline, beside)) for one in wanted if one.baseline}
    verdicts = judge(wanted, read, baselines, cautious=cautious)
    text = FORMATS[format](str(read["subject"]["name"]), verdicts)
    if output is not None:
        write_text(output, text)
    if not quiet:
        print(printable(text), end="")
    if not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)


def baseline_at(path: str, beside: Path) -> Path:
    """A path as the rules name it: beside them, or from here."""
    return beside / path if (beside / path).exists() else Path(path)


def read_numbers(path: Path) -> dict[str, Any]:
    """The content of an `audit.json`; its data are not needed."""
    if path.is_dir():
        if not (path / "audit.json").is_file():
            raise SurefootError(f"'{path}' has no audit.json: surefoot audit writes it.")
        path = path / "audit.json"
    return check_audit(path, read_json("audit", path))


def read_yaml(path: Path) -> Any:
    text = read_text("rules", path)
    try:
        return load_yaml(text)
    except ValueError as error:
        raise SurefootError(f"rules '{path}' are not valid YAML: {error}.") from error
