"""Commands that write: killed at any moment they come to the same bytes, and two at once never mix what they write."""

import random
import re
import sys
from importlib import import_module
from itertools import combinations_with_replacement
from pathlib import Path

import pandas as pd
import pytest
import typer

from forked import forked
from surefoot.cli.main import COMMANDS

sys.path.append(str(Path(__file__).parents[1] / "studies"))
import tiny

FEW = "--model tiny-resnet --set data.fraction=0.1 --set data.max_images=40"
AUDIT = "--only corruptions --max-images 20 --batch-size 20 --time 1h --quiet"
# what is run in a folder of its own, and how often it is killed there
KILLED = {
    "train": (f"train {FEW} --epochs 3 --output out --quiet", 14),
    "audit": (f"audit ../base/run --output out {AUDIT}", 12),
    "corrupt": ("corrupt --data digits --max-images 40 --output out --names common15 --quiet", 12),
    "corrupt folders": (
        "corrupt --data digits --max-images 10 --output out --names fog,jpeg_compression --layout folders --quiet",
        8,
    ),
    "corrupt preview": ("corrupt --data digits --preview out.png --names common15 --quiet", 4),
    "calibrate": ("calibrate ../base/run --output out --prediction-sets 0.9 --quiet", 12),
    "export": ("export ../base/run --output out.onnx --temperature none --quiet", 6),
    "export torch": ("export ../base/run --output out.pt2 --format torch --temperature none --quiet", 6),
    "attack": (
        "attack ../base/run --attack fgsm --eps 0,0.01 --no-check --max-images 20 --output out.csv --keep keep --quiet",
        8,
    ),
    "monitor": ("monitor ../base/run --data digits --max-images 40 --output out.html --quiet", 4),
    "table": ("table ../base/run --output out.csv --quiet", 4),
    "compare": ("compare ../base/run ../base/other --output out.html", 4),
    "card": ("card ../base/run --output out --quiet", 4),
    "gate": ("gate ../base/run --rule ece<1 --output out.json", 2),
    "study run": ("study run ../base/tiny.yaml --results results --work work --page out.html --quiet", 6),
    "study figure": ("study figure representation-figure9 --results results --work work --output out.html --quiet", 2),
    "demo": ("demo --output out --epochs 1 --no-open --quiet --overwrite", 2),
}
# all into `out`: two of each, and each beside each other
FOLDERS = {
    "train": f"train {FEW} --epochs 1 --output out --quiet",
    "train focal": f"train {FEW} --epochs 1 --objective focal --output out --quiet",
    "audit": f"audit ../base/run --output out {AUDIT}",
    "audit other": f"audit ../base/other --output out {AUDIT}",
    "corrupt": "corrupt --data digits --max-images 10 --output out --names fog,jpeg_compression --quiet",
    "corrupt folders": "corrupt --data digits --max-images 10 --output out --names fog --layout folders --quiet",
    "calibrate": "calibrate ../base/run --output out --quiet",
    "calibrate vector": "calibrate ../base/run --method vector --output out --quiet",
    "attack": "attack ../base/run --attack fgsm --eps 0,0.01 --no-check --max-images 20 --keep out --quiet",
    "study": "study run ../base/tiny.yaml --results out --work work --engine here --quiet",
}
FILES = [  # two that write another content into one file
    ("export ../base/run --output out.onnx --temperature none --quiet", "export ../base/other --output out.onnx --quiet"),
    ("table ../base/run --output out.csv --quiet", "table ../base/other --output out.csv --quiet"),
    ("compare ../base/run ../base/other --output out.html", "compare ../base/other ../base/run --output out.html"),
    ("gate ../base/run --rule ece<1 --output out.json", "gate ../base/run --rule accuracy>0 --output out.json"),
]
TIMES = re.compile(r'("(?:created|seconds|spent|images_per_second|table|hash)": )("[^"]*"|[0-9.e+-]+)|\d{4}-\d\d-\d\dT[\d:+]+')


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """Commands in processes of their own, beside two runs with their audits and a study."""
    folder = tmp_path_factory.mktemp("writers")
    with forked(folder) as run:
        base = folder / "base"
        both = [f"train {FEW} --epochs 1 --output {name} --objective {name} --quiet" for name in ("cross-entropy", "focal")]
        ended = run(base, *(words.split() for words in both))
        assert ended.codes == [0, 0], ended.said
        (base / "cross-entropy").rename(base / "run")
        (base / "focal").rename(base / "other")
        ended = run(base, *(["audit", name, *AUDIT.split()] for name in ("run", "other")))
        assert ended.codes == [0, 0], ended.said
        tiny.write(base)
        run.folder = folder
        yield run


def contents(folder):
    """Every file, without the moments, durations and the folder itself in it."""
    return {str(path.relative_to(folder)): content(path, folder) for path in sorted(folder.rglob("*")) if path.is_file()}


def content(path, folder):
    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_json()
    if path.suffix in (".json", ".jsonl", ".html", ".log", ".md"):
        return TIMES.sub(r"\1", path.read_text().replace(str(folder), ""))
    return path.read_bytes()


def differing(found, expected):
    """Names for the assertion, since the bytes would fill the screen."""
    return sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))


@pytest.mark.stress
@pytest.mark.parametrize("name", KILLED)
def test_killed_at_random_moments(call, name):
    """The same command again comes to the same bytes, and nothing is left over."""
    words, kills = KILLED[name][0].split(), KILLED[name][1]
    whole = call(call.folder / f"{name} whole", words)
    assert whole.codes == [0], whole.said
    expected, seconds = contents(call.folder / f"{name} whole"), whole.seconds
    chance, killed, tries = random.Random(name), 0, 0
    while killed < kills:
        tries += 1
        assert tries <= 20 * kills, f"only {killed} of {tries} series were at work when they were killed"
        place, codes = call.folder / f"{name} {tries}", []
        for _ in range(min(3, kills - killed)):
            ended = call(place, words, moment=chance.random() * seconds)
            assert ended.left == [], "a process outlived its parent"
            codes += ended.codes
            if codes[-1] == 0 or not differing(contents(place), expected):  # as good as ended
                break
        killed += codes.count(-9)
        assert set(codes) <= {0, -9}, ended.said
        if differing(contents(place), expected):
            ended = call(place, words)
            assert ended.codes == [0], ended.said
        if ended.codes == [0]:
            seconds = min(seconds, 2 * ended.seconds)  # a busy machine may have become a quiet one
        assert differing(contents(place), expected) == []


def test_a_hundred_kills_over_all_commands_that_write():
    """Whatever has a flag for a place to write to is killed."""
    assert sum(kills for _, kills in KILLED.values()) >= 100
    flags = {"output", "results", "keep", "preview", "page", "work"}
    writing = set()
    for name in COMMANDS:
        command = typer.main.get_command(import_module(f"surefoot.cli.{'listing' if name == 'list' else name}").app)
        for own, each in getattr(command, "commands", {"": command}).items():
            if flags & {parameter.name for parameter in each.params}:
                writing.add(f"{name} {own}".strip())
    reading = {"study show", "study status"}  # and `show --page`, which writes what `run --page` does
    assert {words.split(" --")[0].split(" ..")[0] for words, _ in KILLED.values()} >= {
        name if name != "study figure" else "study figure representation-figure9" for name in writing - reading
    }


def without_logs(files):
    """One that came later measures a run that the other trained, and its log says so."""
    return {name: content for name, content in files.items() if not name.endswith(".log")}


def judge(place, ended, alone):
    """Both came to their end, or one was refused in a line; and what is there is what one of them writes, or each its own."""
    assert ended.left == []
    assert sorted(set(ended.codes)) in ([0], [0, 2]), ended.said
    for code, said in zip(ended.codes, ended.said, strict=True):
        lines = [line for line in said.splitlines() if line.startswith("surefoot: ")]
        assert len(lines) == (code == 2), said
    found, first, second = map(without_logs, (contents(place), *alone))
    if ended.codes == [0, 0]:
        assert [] in [differing(found, each) for each in (first, second, first | second, second | first)], ended.said
    else:
        assert differing(found, (first, second)[ended.codes.index(0)]) == [], ended.said


@pytest.fixture(scope="module")
def alone(call):
    """What each command writes by itself."""
    known = {}

    def made(words):
        if words not in known:
            place = call.folder / f"alone {len(known)}"
            ended = call(place, words.split())
            assert ended.codes == [0], ended.said
            known[words] = contents(place)
        return known[words]

    return made


@pytest.mark.stress
@pytest.mark.parametrize("pair", list(combinations_with_replacement(FOLDERS, 2)), ids=" and ".join)
def test_two_at_once_in_one_folder(call, alone, pair):
    place = call.folder / " and ".join(pair)
    words = [FOLDERS[name] for name in pair]
    judge(place, call(place, *(each.split() for each in words)), [alone(each) for each in words])


@pytest.mark.stress
@pytest.mark.parametrize("pair", FILES, ids=lambda pair: pair[0].split()[0])
def test_two_at_once_in_one_file(call, alone, pair):
    """A file is one of the two, whole."""
    place = call.folder / f"file {pair[0].split()[0]}"
    ended = call(place, *(each.split() for each in pair))
    assert ended.codes == [0, 0], ended.said
    judge(place, ended, [alone(each) for each in pair])
