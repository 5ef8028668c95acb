import json
import re
from importlib.metadata import version

import pytest
import torch
import yaml

from surefoot.cli.main import COMMANDS
from surefoot.files import write_tensors
from surefoot.training.recipes import Recipe


def test_version_and_help(surefoot):
    assert surefoot("--version").out == f"surefoot {version('surefoot')}\n"
    shown = surefoot("--help")
    assert shown.code == 0
    assert all(name in shown.out for name in ("train", "audit", "demo", "list", "doctor"))
    assert "[default: 30]" in surefoot("train", "--help").out
    assert ".." not in shown.out.split("Commands:")[1]  # no line of help is cut off
    assert not [name for name in COMMANDS if "completion" in surefoot(name, "--help").out]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "Unknown command 'trian'. Did you mean 'train'?"),
        (["train", "--objective", "focla"], "Unknown objective 'focla'. Did you mean 'focal'?"),
        (["train", "--model", "resnet81"], "Unknown model 'resnet81'. Did you mean 'resnet18'?"),
        (["train", "--data", "digit"], "Unknown data set or folder 'digit'. Did you mean 'digits'?"),
        (["train", "--set", "objectiv.gamma=1"], "Unknown section 'objectiv'. Did you mean 'objective'?"),
        (["train", "--set", "objective=1"], "--set takes SECTION.NAME=VALUE, got 'objective=1'."),
        (
            ["train", "--objective", "focal", "--set", "objective.gama=1"],
            "Unknown option of objective 'gama'. Did you mean 'gamma'?",
        ),
        (["train", "--set", "training.lerning_rate=1"], "Did you mean 'learning_rate'?"),
        (["train", "--recipe", "no.yaml"], "No recipe at 'no.yaml'."),
        (["train", "--epochs", "many"], "Invalid value for '--epochs'"),
        (["train", "--epoch", "3"], "No such option: --epoch"),
        (["train", "--device", "cdua"], "device must be one that this machine has"),
        (["audit", "nowhere"], "No run folder at 'nowhere'."),
        (
            ["audit"],
            "Give a run folder or a model file, or --model with --checkpoint",
        ),
        (["audit", "--model", "resnet18"], "--data must be given with --model and --import."),
        (["audit", "--model", "resnet18", "--data", "digits"], "--model resnet18 needs --checkpoint or --pretrained."),
        (["audit", "--import", "nothing:net", "--data", "digits"], "needs a module 'nothing', which cannot be imported"),
        (["audit", "--import", "math:sqrt", "--model", "resnet18"], "Give a run folder or a model file, or"),
        (
            ["audit", "--import", "builtins:dict", "--data", "digits"],
            "'builtins:dict' must give an nn.Module, an object with",
        ),
        (["train", "--image-size", "big"], "--image-size must be a side or HEIGHTxWIDTH, got 'big'."),
        (["train", "--mean", "a,b"], "--mean must be a number, or one for each channel with commas, got 'a,b'."),
        (["train", "--data", "missing/folder"], "No data folder at 'missing/folder'."),
        (["train", "--objective", "torch.nn:CrossEntropyLoss"], "must be a subclass of surefoot.objectives.Objective"),
        (["train", "--processes", "0"], "--processes must be from 1 to 64, got 0."),
        (["audit", "--import", "./model.py:build", "--data", "digits"], "names a file that is not there, './model.py'"),
        (["audit", "--import", "model", "--data", "digits"], "must be FILE.py:NAME or package.module:NAME"),
        (["audit", "r", "--split", "train", "--max-images", "5"], "--max-images is for the test split"),
        (["train", "--set", "augmentation.flop=true"], "Unknown option of augmentation 'flop'. Did you mean 'flip'?"),
        (["audit", "--model", "resnet18", "--data", "digits", "--checkpoint", "w.pth"], "No checkpoint at 'w.pth'."),
        (["list", "objective"], "Unknown kind 'objective'. Did you mean 'objectives'?"),
    ],
)
def test_errors_are_one_line_exit_2_and_nothing_written(surefoot, here, arguments, message):
    found = surefoot(*arguments)
    assert found.code == 2
    assert found.out == ""
    assert found.err.startswith("surefoot: ")
    assert found.err.count("\n") == 1
    assert message in found.err
    assert list(here.iterdir()) == []


def test_debug_shows_the_traceback(surefoot, here):
    assert "Traceback" in surefoot("--debug", "train", "--objective", "focla").err
    assert "Traceback" in surefoot("train", "--objective", "focla", "--debug").err


def test_train_audit_and_json(surefoot, here):
    few = ["--epochs", 1, "--fraction", 0.2, "--set", "data.max_images=60", "--output", "r"]
    trained = surefoot("train", *few, "--json", "--quiet")
    assert trained.code == 0
    assert json.loads(trained.out)["epoch"] == 1
    assert trained.err == ""
    said = surefoot("audit", "r")
    assert said.code == 0
    assert "test images" in said.out
    assert "page: r/report.html" in said.out
    assert {"audit.json", "audit-data", "report.html", "recipe.yaml"} <= {path.name for path in (here / "r").iterdir()}
    printed = json.loads(surefoot("audit", "r", "--json", "--quiet", "--output", "elsewhere", "--split", "validation").out)
    assert printed == json.loads((here / "elsewhere" / "audit.json").read_text())
    assert printed["subject"]["split"] == "validation"
    assert printed["subject"]["command"] == "surefoot audit r --json --quiet --output elsewhere --split validation"
    assert "objective" in printed["subject"]["recipe"]
    assert surefoot("audit", "r", "--quiet", "--depth", "clean", "--output", "quiet").out == ""
    assert "Did you mean 'test'" in surefoot("audit", "r", "--split", "tset").err
    assert "holds another recipe's run" in surefoot("train", *few, "--epochs", 2).err
    assert "is finished already" in surefoot("train", *few).err
    checkpoint = ["--model", "tiny-resnet", "--checkpoint", "r/model.safetensors", "--data", "digits"]
    again = json.loads(surefoot("audit", *checkpoint, "--json", "--split", "validation", "--depth", "clean").out)
    assert again["calibration"] == printed["calibration"]


def test_flags_win_over_set_which_wins_over_the_file(surefoot, here):
    recipe = {"objective": {"name": "focal", "gamma": 3}, "training": {"epochs": 9, "batch_size": 64}, "seed": 5}
    (here / "r.yaml").write_text(yaml.safe_dump(recipe))
    options = ["--recipe", "r.yaml", "--set", "training.epochs=8", "--set", "training.warmup_epochs=0", "--epochs", "1"]
    options += ["--fraction", "0.2"]
    assert surefoot("train", *options, "--set", "seed=6", "--output", "a", "--quiet").code == 0
    done = yaml.safe_load((here / "a" / "recipe.yaml").read_text())
    assert done["objective"] == {"name": "focal", "gamma": 3.0}
    assert (done["training"]["epochs"], done["training"]["batch_size"], done["seed"]) == (1, 64, 6)
    assert surefoot("train", *options, "--objective", "label-smoothing", "--output", "b", "--quiet").code == 0
    done = yaml.safe_load((here / "b" / "recipe.yaml").read_text())
    assert done["objective"] == {"name": "label-smoothing", "smoothing": 0.1, "class_weights": None}


def test_ones_own_objective(surefoot, here):
    (here / "my_method.py").write_text(
        "from surefoot.objectives import Focal\nclass Mine(Focal):\n    def __init__(self, gamma: float = 1.0, odd: int = 2):\n"
        "        super().__init__(gamma)\n        self.odd = odd\n"
    )
    arguments = ["train", "--objective", "my_method:Mine", "--set", "objective.odd=7", "--epochs", "1", "--output", "r"]
    arguments += ["--model", "tiny-resnet", "--fraction", "0.2"]
    done = surefoot(*arguments)
    assert done.code == 0, done.err
    written = yaml.safe_load((here / "r" / "recipe.yaml").read_text())["objective"]
    assert written == {"name": "my_method:Mine", "gamma": 1.0, "odd": 7}


def test_list(surefoot):
    found = json.loads(surefoot("list", "--json").out)
    names = {"objectives", "views", "models", "data", "corruptions", "attacks", "measurements"}
    assert set(found) == {*names, "data-options", "model-options", "augmentation", "training"}
    assert {"name": "feature_dim", "help": "default None"} in found["model-options"]
    assert {"name": "memory_gib", "help": "default 2.0"} in found["data-options"]
    assert {"name": "flip", "help": "default False"} in found["augmentation"]
    options = {line["name"]: line["options"] for line in found["attacks"]}
    assert (options["pgd"]["steps"], options["autoattack"]["version"], options["pgd-weak"]) == (7, "standard", {})
    assert next(line for line in found["objectives"] if line["name"] == "focal")["options"] == {"gamma": 2.0}
    assert "gamma=2.0" in surefoot("list", "objectives").out
    shown = json.loads(surefoot("list", "models", "--match", "torchvision/resnet1*", "--json").out)["models"]
    assert {"name": "torchvision/resnet18", "help": "torchvision"} in shown
    models = [line["name"] for line in json.loads(surefoot("list", "models", "--match", "resnet1*", "--json").out)["models"]]
    assert "resnet18" in models
    assert all(name.startswith("resnet1") for name in models)
    assert "every timm classifier" in surefoot("list", "models").out
    assert [line["name"] for line in json.loads(surefoot("list", "attacks", "--match", "FG*", "--json").out)["attacks"]] == [
        "fgsm"
    ]
    both = json.loads(surefoot("list", "--match", "learning_rate", "--json").out)
    assert [line["name"] for line in both["training"]] == ["learning_rate"]
    assert both["objectives"] == []


def test_a_folder_that_is_nearly_named(surefoot, here):
    (here / "flowers").mkdir()
    assert "Unknown data set or folder 'flwers'. Did you mean 'flowers'?" in surefoot("train", "--data", "flwers").err


def test_quiet_is_quiet_about_one_epoch(surefoot, here):
    done = surefoot("train", "--model", "tiny-resnet", "--epochs", 1, "--fraction", 0.2, "--output", "r", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_doctor(surefoot, monkeypatch):
    assert "training step   works" in surefoot("doctor").out
    assert json.loads(surefoot("doctor", "--json").out)["torch"] == version("torch")
    monkeypatch.setattr("surefoot.cli.doctor.try_step", lambda: "fails: no memory")
    assert surefoot("doctor").code == 1


def test_demo(surefoot, here, monkeypatch):
    """With a tiny net on a fifth of the digits."""
    few = {"data": {"name": "digits", "fraction": 0.2, "max_images": 60}, "model": "tiny-resnet"}
    check = Recipe.check
    monkeypatch.setattr(Recipe, "check", lambda given, *more, **options: check({**given, **few}, *more, **options))
    found = surefoot("demo", "--epochs", 1, "--output", "d")
    assert found.code == 0
    assert "macs is" in found.out
    assert max(map(len, found.out.splitlines()[:-1])) <= 80
    assert "…" not in found.out
    assert re.search(r"no difference|better|worse", found.out)
    assert (here / "d" / "report.html").as_uri() in found.out
    assert "holds a demo already" in surefoot("demo", "--output", "d").err
    table = json.loads(surefoot("demo", "--epochs", 1, "--output", "d", "--overwrite", "--json", "--quiet").out)["table"]
    assert set(table["cross-entropy"]["ECE"]) == {"value", "low", "high"}


def test_a_foreign_checkpoint_that_does_not_fit(surefoot, here):
    write_tensors(here / "w.safetensors", {"fc.weight": torch.zeros(3, 3)})
    found = surefoot("audit", "--model", "tiny-resnet", "--checkpoint", "w.safetensors", "--data", "digits")
    assert found.code == 2
    assert "does not fit the model" in found.err
    assert sorted(p.name for p in here.iterdir()) == ["w.safetensors"]


def test_held_out_shares_from_the_command_line(surefoot, here):
    """Nothing held out: it trains, the audit cross-fits its temperature, and what needs the split says so in a line."""
    flags = ["--set", "data.calibration=0", "--set", "data.validation=0", "--fraction", "0.2", "--epochs", 1, "--output", "r"]
    done = surefoot("train", *flags)
    assert done.code == 0, done.err
    assert re.search(r"loss [\d.]+, no validation images; run written to r", done.out)
    recipe = (here / "r" / "recipe.yaml").read_text()
    assert "calibration: 0" in recipe
    assert "validation: 0" in recipe
    audited = surefoot("audit", "r", "--max-images", 40, "--quiet")
    assert audited.code == 0, audited.err
    scaling = json.loads((here / "r" / "audit.json").read_text())["temperature"]
    assert scaling["fitted_on"] == "two-fold cross-fitting on the test split"
    refused = surefoot("calibrate", "r")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "The calibration split has no images to fit a calibrator on (data.calibration)." in refused.err
