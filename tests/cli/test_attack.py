"""`surefoot attack`: the curve on screen, as JSON and as CSV; budgets as fractions; errors in one line."""

import csv
import json
import shutil

import pytest

import surefoot as sf
from surefoot.errors import SurefootError


@pytest.fixture
def folder(run, here):
    shutil.copytree(run.folder, here / "r")
    return "r"


def test_the_curve_as_table_json_and_csv(surefoot, folder, here, digits, terminal):
    command = ("attack", folder, "--max-images", 60, "--eps", "0,2/255,8/255", "--set", "steps=3", "--no-check")
    shown = surefoot(*command)
    assert shown.code == 0, shown.err
    assert "r, test split, pgd, 95 % intervals" in shown.out
    assert all(budget in shown.out for budget in ("2/255", "8/255"))
    assert "broken, pass" in shown.err  # the bar
    found = surefoot(*command, "--json", "--quiet", "--output", "out/curve.csv")
    assert found.err == ""
    curve = json.loads(found.out)["curve"]
    assert [point["eps"] for point in curve] == [0, 2 / 255, 8 / 255]
    left = [point["accuracy"]["value"] for point in curve]
    assert left == sorted(left, reverse=True)
    assert curve[0]["success_rate"] == 0
    with open(here / "out" / "curve.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["accuracy"]) for row in rows] == left
    assert {"ece", "ece_low", "ece_high", "confidence", "signed_error", "success_rate"} <= set(rows[0])
    run = sf.load_run(folder)
    data = sf.load_data("digits", max_images=60)
    batch = next(data.test.batches(100))
    given = {"options": {"steps": 3}, "indices": batch.indices}
    direct = sf.attacks.security_curve(run.predictor, batch.images, batch.labels, "pgd", [0, 2 / 255, 8 / 255], **given)
    assert [float(point.ece) for point in direct] == [point["ece"]["value"] for point in curve]


@pytest.mark.parametrize(("output", "said"), [("r", "is a folder"), ("r/recipe.yaml/curve.csv", "cannot be written")])
def test_a_file_that_cannot_be_written_is_refused_before_the_attack(surefoot, folder, monkeypatch, output, said):
    attacked = []
    monkeypatch.setattr("surefoot.attacks.evaluation.security_curve", lambda *given, **more: attacked.append(given))
    found = surefoot("attack", folder, "--max-images", 8, "--output", output)
    assert (found.code, found.err.count("\n"), attacked) == (2, 1, [])
    assert said in found.err


def test_the_curve_is_shown_even_if_its_file_fails(surefoot, folder, monkeypatch):
    def full(path, text):
        raise SurefootError("The disk is full.")

    monkeypatch.setattr("surefoot.cli.attack.write_text", full)
    found = surefoot(
        "attack", folder, "--attack", "fgsm", "--eps", "0", "--max-images", 8, "--quiet", "--json", "--output", "c"
    )
    assert (found.code, found.err) == (2, "surefoot: The disk is full.\n")
    assert len(json.loads(found.out)["curve"]) == 1


def test_a_preset_and_the_signs_of_masking(surefoot, folder, monkeypatch):
    done = json.loads(
        surefoot("attack", folder, "--attack", "pgd-weak", "--max-images", 30, "--json", "--quiet", "--no-check").out
    )
    assert [point["eps"] for point in done["curve"]] == [None]
    assert done["masking"] == []
    weak = surefoot("attack", folder, "--attack", "fgsm", "--eps", "1e-6", "--max-images", 8)
    assert weak.code == 0, weak.err
    assert "1e-06" in weak.out
    balls = []
    monkeypatch.setattr("surefoot.attacks.gradient_masking.masking_signs", lambda *given, **_: balls.append(given[3]) or [])
    for name in ("pgd-weak", "pgd-strong"):  # in the small ball of the first, one step is as good as many
        assert surefoot("attack", folder, "--attack", name, "--max-images", 8, "--quiet").code == 0
    assert balls == [8 / 255, 8 / 255]


def test_a_time_budget_and_kept_batches(surefoot, folder, here):
    command = ("attack", folder, "--attack", "autoattack", "--eps", "1/255", "--max-images", 20, "--no-check")
    stopped = surefoot(*command, "--seconds", "1.5", "--keep", "kept")
    assert stopped.code == 0, stopped.err
    assert "time is up" in stopped.out
    assert "Stopped after 1.5 s: of" in stopped.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--attack", "pdg"], "Unknown attack 'pdg'. Did you mean 'pgd'?"),
        (["--eps", "0,x"], "--eps must be numbers of at least 0 with commas, such as 0,1/255,2/255,4/255,8/255, got 'x'."),
        (["--eps", "-1"], "--eps must be numbers of at least 0"),
        (["--attack", "pgd-weak", "--eps", "1/255"], "pgd-weak has its own budget: --eps is for"),
        (["--set", "stepps=3"], "Unknown option of pgd 'stepps'. Did you mean 'steps'?"),
        (["--set", "steps"], "--set takes NAME=VALUE, got 'steps'."),
        (["--set", "eps=1"], "The budget is --eps, not --set eps."),
        (["--set", "norm=l3"], "Unknown norm 'l3'. Did you mean 'l2'?"),
        (["--seconds", "0"], "seconds must be positive, got 0.0."),
        (["--mean", "0.5"], "--mean and --std are for --model and --import; a run knows its own."),
        (
            ["--model", "resnet18"],
            "Give a run folder or a model file, or --model with --checkpoint",
        ),
    ],
)
def test_errors_are_one_line(surefoot, folder, arguments, message):
    found = surefoot("attack", folder, "--max-images", 20, "--quiet", *arguments)
    assert found.code == 2
    assert found.out == ""
    assert found.err.count("\n") == 1
    assert message in found.err


def test_no_target(surefoot, here):
    assert "No run folder at 'nowhere'." in surefoot("attack", "nowhere").err
    assert "Give a run folder" in surefoot("attack").err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stem", "imagenet"], "--stem is for --model."),
        (["--checkpoint", "w.pt"], "--checkpoint is for --model and --import."),
        (["--pretrained"], "--pretrained is for --model."),
        (["--max-images", 5, "--split", "validation"], "--max-images is for the test split, and --split is validation."),
        (["--class-map", "none.txt", "--max-images", 5], "No class map at 'none.txt'."),
        (["--class-map", "classes.txt", "--max-images", 5], "labels and class_map are for folders"),
    ],
)
def test_the_data_flags_of_the_other_commands(surefoot, folder, here, arguments, message):
    (here / "classes.txt").write_text("0 zero")
    assert message in surefoot("attack", folder, *arguments).err


def test_an_attack_of_ones_own_in_an_audit(surefoot, folder, here):
    (here / "own_attacks_for_audits.py").write_text("def inverted(model, images, labels):\n    return 1 - images\n")
    own = "own_attacks_for_audits:inverted"
    command = ("audit", folder, "--max-images", 30, "--output", "mine")
    found = surefoot(*command, "--attack", own, "--attack", "noise", "--quiet")
    assert found.code == 0, found.err
    written = json.loads((here / "mine" / "audit.json").read_text())
    assert list(written["attacks"])[-2:] == [own, "noise"]
    assert f"<td>{own}</td>" in (here / "mine" / "report.html").read_text()
    assert surefoot(*command, "--attack", "nosie").err == "surefoot: Unknown attack 'nosie'. Did you mean 'noise'?\n"
    assert surefoot("audit", "--predictions", "p.csv", "--attack", own).err == "surefoot: --predictions takes no --attack.\n"
    assert own not in surefoot("list", "attacks").out


def test_without_gradients_square_stands_in_and_queries_are_shown(surefoot, here, monkeypatch):
    """Every image that is attacked is asked about for each query whose answer is not known, and for the first pattern."""
    (here / "blind.py").write_text(
        "import torch\n\n\nclass Blind(torch.nn.Module):\n    asked = 0\n\n    def forward(self, images):\n"
        "        Blind.asked += len(images)\n"
        "        return torch.eye(10)[torch.zeros(len(images), dtype=torch.long)] + images.detach().mean((1, 2, 3))[:, None]\n"
    )
    monkeypatch.syspath_prepend(here)
    given = ("attack", "--import", "blind:Blind", "--data", "digits", "--max-images", "20")
    found = surefoot(*given, "--eps", "8/255", "--json")
    assert found.code == 0, found.err
    assert "gives no gradient: square, which asks for scores alone, takes the place of pgd." in found.err
    (point,) = json.loads(found.out)["curve"]
    assert point["success_rate"] == 0
    assert 900 < point["queries"] < 1002  # 1,000 squares, the stripes before them, and the image itself; some change nothing
    shown = surefoot(*given, "--eps", "8/255", "--attack", "square", "--set", "queries=5")
    assert "queries" in shown.out
    assert " 7 " in shown.out
