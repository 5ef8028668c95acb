"""Help, and every wrong word that can be told from a table or the disk, without importing torch or anything as heavy.

Each command has a process of its own, in a folder with a run that cannot be read: whatever got as far as reading it would show.
"""

import json
import subprocess
import sys

import pytest
from test_wrong_values import NOT_A_GRID, PYTHON_NAME, WORDS, arguments_of, commands, contents, wrong_values

HEAVY = ("torch", "timm", "torchvision", "pandas", "pyarrow", "scipy", "sklearn", "plotly")
SCRIPT = f"""
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from surefoot.cli.main import run

answers = []
for words in json.loads(sys.stdin.read()):
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            run(words)
        except SystemExit as stop:
            code = stop.code
    answers.append([code, out.getvalue(), err.getvalue(), [name for name in {HEAVY} if name in sys.modules]])
print(json.dumps(answers))
"""
DATA = "Unknown data set or folder 'nosuch'"
DEVICE = "device must be one that this machine has, got 'cdua'"
RUN = "No run folder at 'nowhere'"
SPLIT = "Unknown split 'tset'. Did you mean 'test'?"
LINES = {  # what is wrong in each command, and what is said of it
    "demo": [("--epochs 0", "--epochs"), ("--output file", "--output must be a folder, and 'file' is a file")],
    "train": [
        ("--model resnt18", "Unknown model 'resnt18'. Did you mean 'resnet18'?"),
        ("--model torchvision/resnt18", "Unknown model 'torchvision/resnt18'. Did you mean 'torchvision/resnet18'?"),
        ("--objective maccs", "Unknown objective 'maccs'. Did you mean 'macs'?"),
        ("--optimiser sdg", "Unknown optimiser 'sdg'. Did you mean 'sgd'?"),
        ("--schedule cosin", "Unknown schedule 'cosin'. Did you mean 'cosine'?"),
        ("--precision fp61", "Unknown precision 'fp61'. Did you mean 'fp16'?"),
        ("--interpolation cubicc", "Unknown interpolation 'cubicc'. Did you mean 'bicubic'?"),
        ("--stem imgenet", "Unknown stem 'imgenet'. Did you mean 'imagenet'?"),
        ("--data nosuch", DATA),
        ("--data no/such", "No data folder at 'no/such'."),
        ("--data nosuch.npz", "No data file at 'nosuch.npz'."),
        ("--device cdua", DEVICE),
        ("--recipe nosuch.yaml", "No recipe at 'nosuch.yaml'."),
        ("--checkpoint nosuch.pt", "No checkpoint at 'nosuch.pt'."),
        ("--processes 65", "--processes must be from 1 to 64, got 65."),
        ("--set trainin.epochs=3", "Unknown section 'trainin'. Did you mean 'training'?"),
        ("--set training.epoch=3", "Unknown option of training 'epoch'. Did you mean 'epochs'?"),
        ("--set training.epochs=abc", "training.epochs: input should be a valid integer"),
        ("--objective macs --set objective.weigth=1", "Unknown option of objective 'weigth'. Did you mean 'margin_weight'?"),
        ("--set data.fracton=1", "Unknown option of data 'fracton'. Did you mean 'fraction'?"),
        ("--set model.feature_dm=3", "Unknown option of model 'feature_dm'. Did you mean 'feature_dim'?"),
        ("--set augmentation.flp=true", "Unknown option of augmentation 'flp'. Did you mean 'flip'?"),
        ("--project p", "--project is for --tracker."),
        ("--tracker mlfow", "Unknown tracker 'mlfow'. Did you mean 'mlflow'?"),
        ("--tracker clearml", "tracker 'clearml' is not installed."),
        ("--labels nosuch.csv", "No labels at 'nosuch.csv'."),
        ("--class-map nosuch.json", "No class map at 'nosuch.json'."),
        ("--model resnet18.a1_in1", "Unknown weights of resnet18 'a1_in1'. Did you mean 'a1_in1k'?"),
        ("--model resnet18 --pretrained a1_in1", "Unknown weights of resnet18 'a1_in1'. Did you mean 'a1_in1k'?"),
    ],
    "audit": [
        ("nowhere", RUN),
        ("run nowhere --ensemble", RUN),
        ("run --depth quik", "Unknown depth 'quik'. Did you mean 'quick'?"),
        ("run --attack fgms", "Unknown attack 'fgms'. Did you mean 'fgsm'?"),
        ("run --corruption fogg", "Unknown corruption 'fogg'. Did you mean 'fog'?"),
        ("run --measure hesian", "Unknown measurement 'hesian'. Did you mean 'hessian'?"),
        ("run --skip geometri", "Unknown part of the audit (skip) 'geometri'. Did you mean 'geometry'?"),
        ("run --only atacks", "Unknown part of the audit (only) 'atacks'. Did you mean 'attacks'?"),
        ("run --split tset", SPLIT),
        ("run --engine rai", "Unknown engine 'rai'. Did you mean 'ray'?"),
        ("run --tracker mlfow", "Unknown tracker of audits 'mlfow'. Did you mean 'mlflow'?"),
        ("run --assets besides", "Unknown place for the script 'besides'. Did you mean 'beside'?"),
        ("run --time 90", "--time must be a number with s, m or h"),
        ("run --risk 2", "risks must be between 0 and 1, got 2.0."),
        ("run --device cdua", DEVICE),
        ("run --data nosuch", DATA),
        ("run --shift nosuch", DATA),
        ("run --foreign nosuch", "Unknown set of foreign pictures 'nosuch'."),
        ("run --corrupted nosuch", "No folder of corrupted copies at 'nosuch'."),
        ("run --groups nosuch.csv:a", "No CSV of groups at 'nosuch.csv'."),
        ("run --calibrate-on nosuch.npz", "No predictions at 'nosuch.npz'."),
        ("--predictions nosuch.npz", "No predictions at 'nosuch.npz'."),
        ("--model nosuch.onnx --data digits", "No model file at 'nosuch.onnx'."),
        ("--model cmd:cat --data digits --sends pgn", "Unknown way to send pictures 'pgn'. Did you mean 'png'?"),
        ("--model resnet18 --pretrained a1_in1 --data digits", "Unknown weights of resnet18 'a1_in1'."),
        ("run --class-map nosuch.json", "No class map at 'nosuch.json'."),
        ("--model resnt18 --pretrained --data digits", "Unknown model 'resnt18'. Did you mean 'resnet18'?"),
        ("--model resnet18 --data digits --checkpoint nosuch.pt", "No checkpoint at 'nosuch.pt'."),
        ("--model resnet18 --data digits --pretrained --stem imgenet", "Unknown stem 'imgenet'."),
    ],
    "table": [("nowhere", "No table of an audit at 'nowhere'."), ("run --format cvs", "Did you mean 'csv'?")],
    "compare": [
        ("nowhere elsewhere", "No run folder or audit at 'nowhere'."),
        ("run", "Give at least two run folders or audits."),
        ("run run", "'run' has no audit yet"),
        ("run run --audit --depth quik", "Unknown depth 'quik'. Did you mean 'quick'?"),
        ("run nosuch.onnx", "No model file at 'nosuch.onnx'."),
    ],
    "monitor": [
        ("nowhere --data digits", "'nowhere' has no audit.json"),
        ("audited --data nosuch", "Unknown set of foreign pictures 'nosuch'."),
        ("audited --data digits --device cdua", DEVICE),
        ("audited --data digits --alarm nonsense", "Rule 'nonsense' must be NAME < NUMBER"),
    ],
    "gate": [
        ("nowhere.json --baseline nowhere.json", "No audit at 'nowhere.json'."),
        ("run", "'run' has no audit.json"),
        ("audited --format junti", "Unknown format 'junti'. Did you mean 'junit'?"),
    ],
    "export": [
        ("nowhere", RUN),
        ("run nowhere --ensemble", RUN),
        ("run --format onx", "Unknown format 'onx'. Did you mean 'onnx'?"),
        ("run --temperature hot", "--temperature must be fit, none or a positive number, got 'hot'."),
        ("run --temperature fit --fit-on tset", SPLIT),
        ("run --quantise int7", "--quantise takes int8, for ONNX, got 'int7' for onnx."),
        ("run --output out.pt2", "output must be a file *.onnx, got 'out.pt2'."),
    ],
    "card": [("nowhere", RUN), ("run --name a/b", "name must be letters"), ("run --license a/b", "license must be a name")],
    "calibrate": [
        ("nowhere", RUN),
        ("run --method temprature", "Unknown calibration method 'temprature'. Did you mean 'temperature'?"),
        ("run --prediction-sets 0.9 --set-score lak", "Unknown score of prediction sets 'lak'. Did you mean 'lac'?"),
        ("run --split tset", SPLIT),
        ("run --device cdua", DEVICE),
        ("run --data nosuch", DATA),
        ("--predictions nosuch.npz", "No predictions at 'nosuch.npz'."),
    ],
    "corrupt": [
        ("--data nosuch --output out", DATA),
        ("--data digits --output out --names fog,fogg", "Unknown corruption 'fogg'. Did you mean 'fog'?"),
        ("--data digits --output out --layout array", "Unknown layout 'array'. Did you mean 'arrays'?"),
        ("--data digits --output out --scale 33", "Unknown scale '33'."),
        ("--data digits --output out --split tset", SPLIT),
        ("--data digits --output out --frost nosuch", "No folder of frost photographs at 'nosuch'."),
    ],
    "attack": [
        ("nowhere", RUN),
        ("run --attack fgms", "Unknown attack 'fgms'. Did you mean 'fgsm'?"),
        ("run --attack pgd-weak --eps 0.1", "pgd-weak has its own budget"),
        ("run --eps much", "--eps must be numbers of at least 0"),
        ("run --split tset", SPLIT),
        ("run --device cdua", DEVICE),
        ("run --data nosuch", DATA),
    ],
    "certify": [
        ("nowhere", RUN),
        ("run --alpha 2", "alpha must be between 0 and 1, got 2.0."),
        ("run --radii far", "--radii must be numbers of at least 0"),
        ("run --split tset", SPLIT),
        ("run --device cdua", DEVICE),
    ],
    "study": [
        ("run mian", "Unknown study 'mian'. Did you mean 'main'?"),
        ("run nosuch.yaml", "No study at 'nosuch.yaml'."),
        ("run main --scale smok", "Unknown scale 'smok'. Did you mean 'smoke'?"),
        ("run main --format lates", "Unknown format 'lates'. Did you mean 'latex'?"),
        ("run main --engine rai", "Unknown engine 'rai'. Did you mean 'ray'?"),
        ("run main --only macs", "--only takes AXIS=NAME,NAME, got 'macs'."),
        ("run main --device cdua", DEVICE),
        ("run main --objective maccs", "Unknown objective 'maccs'. Did you mean 'macs'?"),
        ("run main --corrupted nosuch", "No folder of corrupted copies at 'nosuch'."),
        ("run main --frost nosuch", "No folder of frost photographs at 'nosuch'."),
        ("run main --random 3", "--objective, --grid and --random are for hyperparameters, and 'main' is a fixed grid."),
        ("run hyperparameters --random 0", "--random must be at least 1, got 0."),
        ("run hyperparameters --grid margin", "--grid takes NAME=VALUE,VALUE, got 'margin'."),
        ("show mian", "Unknown study 'mian'. Did you mean 'main'?"),
        ("show main --results nowhere", "No folder of results at 'nowhere'."),
        ("show main --format lates", "Unknown format 'lates'. Did you mean 'latex'?"),
        ("status mian", "Unknown study 'mian'. Did you mean 'main'?"),
        ("status main --results nowhere", "No folder of results at 'nowhere'."),
        ("figure mian --output out.html", "Unknown study 'mian'. Did you mean 'main'?"),
        ("figure macs-figure99 --output out.html", "Unknown figure 'macs-figure99'."),
        ("figure main --output out.hmtl", "'.hmtl'. Did you mean '.html'?"),
        ("figure main --output out.html --device cdua", DEVICE),
        ("list --jsn", "--json"),
    ],
    "list": [("objectivs", "Unknown kind 'objectivs'. Did you mean 'objectives'?")],
    "doctor": [("--jsn", "--json")],
}
PARAMETERS = dict(commands())


@pytest.fixture
def place(here):
    """A run whose files say nothing, an audit that is none, and a file."""
    (here / "run").mkdir()
    for name in ("recipe.yaml", "model.safetensors"):
        (here / "run" / name).write_text("nothing")
    (here / "audited").mkdir()
    (here / "audited" / "audit.json").write_text("{}")
    (here / "file").write_text("")
    (here / "results").mkdir()
    return here


def numbers_of(command):
    """Every number of a command, and of the commands in a group, as text, out of range, not finite and too large."""
    for name, each in PARAMETERS.items():
        for parameter in each.params if name.split()[0] == command else ():
            if parameter.name not in ("help", NOT_A_GRID) and wrong_values(parameter) is not WORDS:
                yield from (arguments_of(name, parameter, value) for value in wrong_values(parameter))


def answers_to(lines):
    """Exit code, output, errors and heavy modules after each line, in one new process."""
    given = json.dumps(lines)
    done = subprocess.run([sys.executable, "-c", SCRIPT], input=given, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", sorted({name.split()[0] for name in PARAMETERS}))
def test_wrong_words_are_answered_without_what_is_heavy(place, command):
    whole = [name.split() for name in PARAMETERS if name.split()[0] == command]
    said = [([command, *words.split()], message) for words, message in LINES[command]]
    said += [([*name, "--no-such-flag"], "--no-such-flag") for name in whole]
    said += [(words, "") for words in numbers_of(command)]
    helped = [[*name, "--help"] for name in [[command], *whole]]
    lines, before = [*helped, *(words for words, _ in said)], contents(place)
    answers = answers_to(lines)
    assert contents(place) == before
    for words, (code, out, err, heavy) in zip(lines, answers, strict=True):
        assert not heavy, f"{words} imported {heavy}"
        assert code == (0 if words in helped else 2), (words, out, err)
    for words, (code, out, _, _) in zip(helped, answers, strict=False):
        assert "--help" in out, (words, code)
    for (words, message), (_, out, err, _) in zip(said, answers[len(helped) :], strict=True):
        assert (err.count("\n"), out) == (1, ""), (words, err)
        assert err.startswith("surefoot: "), words
        assert not PYTHON_NAME.search(err), (words, err)
        assert message in err, (words, err)


def test_the_check_sees_what_is_imported(here):
    ((code, out, _, heavy),) = answers_to([["list", "views"]])
    assert (code, "torch" in heavy) == (0, True)
    assert "noise" in out
