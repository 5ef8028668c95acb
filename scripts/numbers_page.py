"""Write docs/numbers.md: every number of an audit or a study, from the table that page, terminal and gate use too."""

from __future__ import annotations

from pathlib import Path

from surefoot import metrics

PAGE = Path(__file__).resolve().parent.parent / "docs" / "numbers.md"
BETTER = {metrics.UP: "more", metrics.DOWN: "less", metrics.NEITHER: ""}
GROUPS = {
    "Predictions": metrics.PREDICTIONS,
    "Changed pictures": metrics.DAMAGE,
    "Members of an ensemble": metrics.MEMBERS,
    "Foreign pictures": metrics.FOREIGN,
    "Counts and costs": metrics.COUNTS,
    "Geometry": metrics.GEOMETRY,
}
HEAD = """# Every number

What it is called in `audit.json` and in the rules of a gate, what the page calls it, and whether more or less of it is better.
[Read the page](read-the-page.md) says what is good and what is not.

<!-- written by scripts/numbers_page.py from metrics.py -->"""


def page() -> str:
    said = [HEAD]
    for group, named in GROUPS.items():
        rows = [f"| `{key}` | {one.title} | {BETTER[one.better]} | {one.meaning} |" for key, one in named.items()]
        said += [f"## {group}", "\n".join(["| name | on the page | better | what it says |", "|---|---|---|---|", *rows])]
    return "\n\n".join(said) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
