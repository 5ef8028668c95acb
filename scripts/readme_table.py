"""Write the demo's table into the README: `surefoot demo --json --output DIR | python scripts/readme_table.py`."""

import json
import re
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
MARK = "<!-- demo table: written by scripts/readme_table.py -->"


def main() -> None:
    rows = json.load(sys.stdin)["table"]
    columns = list(next(iter(rows.values())))
    lines = ["| | " + " | ".join(rows) + " |", "|---|" + "---|" * len(rows)]
    for column in columns:
        lines.append(f"| {column} | " + " | ".join(cell(column, row[column]) for row in rows.values()) + " |")
    text = README.read_text()
    text = re.sub(re.escape(MARK) + r"(\n\|.*)*", lambda _: "\n".join([MARK, *lines]), text)
    README.write_text(text)


def cell(column: str, number: dict[str, float]) -> str:
    scale, digits, unit = (1, 3, "") if column == "NLL" else (100, 1, " %")
    value, low, high = (f"{scale * number[key]:.{digits}f}" for key in ("value", "low", "high"))
    return f"{value}{unit} ({low} to {high})"


main()
