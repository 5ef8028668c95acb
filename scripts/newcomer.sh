#!/bin/sh
# What a newcomer does, from the wheel alone and outside of the checkout: install it, ask the doctor, train, audit,
# gate, then the README's Python and the code of the first tutorial.
# newcomer.sh [PYTHON]: the dependencies are those of PYTHON's environment (.venv by default); surefoot itself is the wheel's.
set -eu
cd "$(dirname "$0")/.."
source=$PWD
python=$(realpath -s "${1:-.venv/bin/python}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap "exit 1" INT TERM

"$python" -m build --no-isolation --outdir "$work/dist" . > "$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
"$python" -m twine check --strict "$work"/dist/*

"$python" -m venv --without-pip "$work/venv"
fresh=$work/venv/bin/python
"$python" -m pip --quiet --disable-pip-version-check --python "$fresh" install --no-deps --no-index "$work"/dist/*.whl
packages=$("$fresh" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# as a line of a .pth, so that .pth files in there, such as that of an editable surefoot, are not followed
"$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$packages/dependencies.pth"

cd "$work"
unset PYTHONPATH
"$fresh" -c "import surefoot, sys; sys.exit(not surefoot.__file__.startswith('$work/venv/'))"
surefoot=$work/venv/bin/surefoot
"$surefoot" --version
"$surefoot" doctor
"$surefoot" train --data digits --epochs 1 --output runs/first --quiet
"$surefoot" audit runs/first --depth clean --quiet
test -s runs/first/report.html
"$surefoot" gate runs/first --rule "accuracy > 0.1"

"$fresh" - "$source" << 'END'
import json
import re
import sys
from pathlib import Path

source = Path(sys.argv[1])
blocks = re.findall(r"^```python\n(.*?)^```", (source / "README.md").read_text(), flags=re.S | re.M)
cells = json.loads((source / "docs" / "tutorials" / "audit-a-model.ipynb").read_text())["cells"]
assert len(blocks) == 3 and cells
Path("readme.py").write_text("\n".join(blocks))
Path("tutorial.py").write_text("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
END
"$fresh" readme.py > readme.out
test -s audits/mine/report.html && test -s runs/smooth/model.safetensors
rm -r audits
"$fresh" tutorial.py
test -s audits/mine/report.html
