"""Keep what the site's live report is drawn from: `example_report.py DEMO`, the folder that `surefoot demo` wrote.

The page itself is drawn when the site is built (`scripts/site_pages.py`), so it is always of the present code.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from surefoot.auditing.comparison import compare, read_compared
from surefoot.plain import plain

KEPT = Path(__file__).resolve().parent.parent / "docs" / "example"
FILES = ("audit.json", "audit-data/points.json")
MODELS = ("cross-entropy", "macs")


def keep(demo: Path) -> None:
    for name in MODELS:
        for file in FILES:
            target = KEPT / name / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(demo / name / file, target)
    comparison = compare([read_compared(demo / name) for name in MODELS], seed=0)
    kept = {"models": MODELS, "differences": plain(comparison.for_page()), "notes": comparison.notes}
    (KEPT / "comparison.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
