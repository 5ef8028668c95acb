"""A folder that somebody sent: what it says is neither run nor fetched, and where it leads nothing is written or deleted."""

import json
import re
import subprocess
import sys

import pytest
import torch
import yaml

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.files import write_tensors
from surefoot.studies.cells import cells_of
from surefoot.studies.study_files import read_study

COMMANDS = [["audit"], ["export", "--format", "torch"], ["attack"], ["certify"], ["calibrate"], ["compare", "r", "--audit"]]
CIFAR = {"name": "cifar10", "root": "nowhere", "download": True}


def popen(marker):
    return {"name": "noisy", "view": {"name": "subprocess:Popen", "args": f"touch '{marker}'", "shell": True}}


def refused(done, *words):
    """One line on the error stream that has these words, and exit code 2."""
    code = done.returncode if isinstance(done, subprocess.CompletedProcess) else done.code
    said = done.stderr if isinstance(done, subprocess.CompletedProcess) else done.err
    lines = [line for line in said.splitlines() if not re.search(r", \d+ s$", line)]  # but for signs of life
    assert (code, len(lines)) == (2, 1), said
    assert all(word in said for word in words), said
    return True


def test_one_a_view_that_is_any_class(sent, command, marker):
    sent(objective=popen(marker))
    assert refused(command("audit", "r"), "r/recipe.yaml", "'subprocess:Popen'", "--allow-code")
    assert not marker.exists()


def test_two_an_objective_in_the_folder_itself(sent, watched, marker):
    folder = sent(objective={"name": "r.payload:Payload"})
    (folder / "payload.py").write_text(f"open({str(marker)!r}, 'w')\n")
    assert refused(watched("audit", "r"), "r/recipe.yaml", "'r.payload:Payload'", "--allow-code")
    assert not marker.exists()


def test_three_a_calibrator_that_is_any_function(sent, watched, marker, here):
    (here / "hub").mkdir()
    (here / "hub" / "hubconf.py").write_text(f"open({str(marker)!r}, 'w')\ndef entry(**_): pass\n")
    folder = sent()
    about = {"method": "torch.hub:load", "state": {"repo_or_dir": str(here / "hub"), "model": "entry", "source": "local"}}
    about |= {"note": "", "fitted_on": {"digest": ""}}
    write_tensors(folder / "calibration.safetensors", {"empty": torch.zeros(1)}, {"surefoot": json.dumps(about)})
    for words in ([], ["--allow-code"]):  # calibrators are a closed table
        assert refused(watched("audit", "r", *words), "r/calibration.safetensors", "'torch.hub:load'")
        assert not marker.exists()


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"data": {"name": "wds/x", "root": "pipe:touch MARKER; "}}, ["'pipe:touch MARKER; '", "--root"]),
        ({"data": {"name": "wds/x", "root": "http://localhost:9/"}}, ["'http://localhost:9/'", "--root"]),
        ({"data": "hfds/someone/digits"}, ["'hfds/someone/digits'", "--data", "--allow-code"]),
        ({"data": CIFAR}, ["'cifar10' is not in 'nowhere'", "--data cifar10"]),
        ({"model": "hf-hub:someone/small"}, ["'hf-hub:someone/small'", "--allow-code"]),
    ],
)
def test_four_data_that_are_commands_or_elsewhere(sent, watched, marker, sections, words):
    sent(**sections)
    assert refused(watched("audit", "r"), *words)
    assert not marker.exists()


def shadow(here, marker, *names):
    for name in names:
        (here / f"{name}.py").write_text(f"open({str(marker)!r}, 'w')\n")


@pytest.mark.parametrize("module", [False, True])
def test_five_modules_in_the_current_folder(command, here, marker, module):
    """Not by the command, by `python -m surefoot`, or by the processes that they start."""
    shadow(here, marker, "torch", "yaml", "typer", "rich", "timm", "accelerate", "psutil", "numpy")

    def call(*arguments):
        if not module:
            return command(*arguments)
        return subprocess.run([sys.executable, "-m", "surefoot", *arguments], capture_output=True, text=True, cwd=here)

    if not module:
        assert call("list", "objectives").returncode == 0
    assert refused(call("audit", "nowhere", "--processes", "2"), "No run folder at 'nowhere'")
    assert not marker.exists()


def test_six_audit_data_that_lead_elsewhere(sent, watched, here):
    folder, elsewhere = sent(), here / "elsewhere"
    (elsewhere / "work").mkdir(parents=True)
    (elsewhere / "work" / "precious").write_text("years")
    (folder / "audit-data").symlink_to(elsewhere)
    assert refused(watched("audit", "r"), "'r/audit-data' is a link")
    assert [path.name for path in elsewhere.rglob("*")] == ["work", "precious"]
    (folder / "audit-data").unlink()
    (folder / "audit-data").mkdir()
    (folder / "audit-data" / "work").symlink_to(elsewhere)
    with pytest.raises(SurefootError, match="audit-data/work' is a link"):
        sf.audit(sf.load_run(folder).predictor, sf.load_data("digits", max_images=40), output=folder, progress=False)
    assert [path.name for path in elsewhere.rglob("*")] == ["work", "precious"]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_every_command_that_reads_a_run(sent, surefoot, marker, here, words):
    """In this process, so that each of them is quick."""
    sent(objective=popen(marker))
    assert refused(surefoot(words[0], "r", *words[1:]), "'subprocess:Popen'", "--allow-code")
    assert refused(surefoot(words[0], "r", *words[1:], "--allow-code"), "view 'subprocess:Popen' must be a subclass of")
    assert not marker.exists()
    sent(objective="noisy", data={"name": "wds/x", "root": f"pipe:touch '{marker}';"})
    assert refused(surefoot(words[0], "r", *words[1:]), "'pipe:touch ", "--root")
    assert not marker.exists()


def test_a_recipe_to_train_from(surefoot, here, marker):
    recipe = here / "sent.yaml"
    for sections, word in [
        ({"objective": popen(marker)}, "'subprocess:Popen'"),
        ({"objective": {"name": "noisy", "view": "blur+os:system"}}, "'os:system'"),
        ({"data": {"name": "hfds/x/y"}}, "'hfds/x/y': give --data"),
        ({"data": {"name": "wds/x", "root": f"pipe:touch '{marker}';"}}, "--root"),
        ({"model": {"name": "resnet18", "pretrained": True}}, "published weights of 'resnet18'"),
        ({"model": {"name": "hf-hub:a/b"}}, "'hf-hub:a/b'"),
        ({"model": {"name": "tiny-resnet", "checkpoint": r"\\host\x.pt"}}, "--checkpoint"),
        ({"data": {"name": "digits", "labels": "//host/x.csv"}}, "--labels"),
    ]:
        recipe.write_text(yaml.safe_dump(sections))
        assert refused(surefoot("train", "--recipe", recipe, "--output", "out"), word, "--allow-code")
    recipe.write_text(yaml.safe_dump({"data": {"name": "wds/x", "root": f"pipe:touch '{marker}';"}}))
    assert refused(
        surefoot("train", "--recipe", recipe, "--data", "wds/x", "--output", "out"), "names a root that is no folder"
    )
    recipe.write_text(yaml.safe_dump({"data": CIFAR}))
    assert refused(surefoot("train", "--recipe", recipe, "--output", "out"), "'cifar10' is not in 'nowhere'")
    assert not marker.exists()
    assert not (here / "nowhere").exists()
    assert not (here / "out").exists()


def test_a_study(surefoot, here, marker):
    base = {"title": "Sent", "methods": {"a": "noisy"}, "models": {"m": "tiny-resnet"}, "data": {"d": "digits"}}
    base["measure"] = {"clean": {}}
    for sections, word in [
        ({"methods": {"a": popen(marker)}}, "'subprocess:Popen'"),
        ({"measure": {"os:system": {}}}, "'os:system'"),
        ({"measure": {"x": {"measurement": "os:system"}}}, "'os:system'"),
        ({"measure": {"attacks": {"names": ["os:system"]}}}, "'os:system'"),
        ({"scales": {"full": {"methods": {"a": "os:system"}}}}, "'os:system'"),
        ({"data": {"d": {"name": "wds/x", "root": "pipe:x"}}}, "'pipe:x'"),
        ({"data": {"d": "hfds/x/y"}}, "'hfds/x/y': if you trust it"),
        ({"models": {"m": {"name": "resnet18", "pretrained": True}}}, "published weights of 'resnet18'"),
        ({"measure": {"probe": {"data": "hfds/x/y"}}}, "'hfds/x/y': if you trust it"),
        ({"measure": {"transfer": {"surrogates": {"s": {"model": "hf-hub:a/b"}}}}}, "'hf-hub:a/b'"),
    ]:
        (here / "sent.yaml").write_text(yaml.safe_dump({**base, **sections}))
        for words in (["run"], ["show", "--results", "."], ["status", "--results", "."]):
            assert refused(surefoot("study", words[0], "sent.yaml", *words[1:]), word, "--allow-code")
    assert not marker.exists()
    assert refused(surefoot("study", "status", "main", "--allow-code", "--results", "."), "is for a study file of one's own")
    (here / "sent.yaml").write_text(
        yaml.safe_dump({**base, "data": {"d": "digits", "c": {"name": "cifar10", "download": True}}})
    )
    assert [cell.recipe.data["download"] for cell in cells_of(read_study("sent.yaml", "smoke"))] == [False] * 6
    assert all(cell.recipe.data["download"] for cell in cells_of(read_study("sent.yaml", "smoke", allow_code=True)))


def test_the_header_of_the_weights_names_sizes_alone(sent):
    folder = sent()
    about = {"num_classes": 10, "channels": 3, "image_size": [32, 32], "name": "hf-hub:someone/small"}
    write_tensors(folder / "model.safetensors", {"x": torch.zeros(1)}, {"surefoot": json.dumps(about)})
    with pytest.raises(SurefootError, match=r"Unknown size in '.*model\.safetensors' 'name'"):
        sf.load_run(folder)


def test_data_of_a_run_in_python(sent):
    """Reading the run is safe, and so is asking it for its data; what the user loads himself is his own."""
    run = sf.load_run(sent(data={"name": "wds/x", "root": "pipe:touch MARKER; "}))
    with pytest.raises(SurefootError, match="names a root that is no folder, 'pipe:touch MARKER; '"):
        run.recipe.load_data()
    with pytest.raises(SurefootError, match=r"'cifar10' is not in 'nowhere'"):
        sf.load_run(sent(data=CIFAR)).recipe.load_data()


def test_ones_own_code_needs_a_word(surefoot, command, here, marker):
    """A run of one's own objective is audited with --allow-code; its module is found here, after all that is installed."""
    shadow(here, marker, "torch", "yaml")
    (here / "my_own_method.py").write_text(
        "import torch, yaml\nfrom surefoot.objectives import CrossEntropy\nclass Mine(CrossEntropy):\n    pass\n"
    )
    few = ["--set", "data.fraction=0.1", "--set", "data.max_images=40", "--epochs", "1", "--quiet", "--output", "own"]
    done = command("train", "--objective", "my_own_method:Mine", *few)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert refused(surefoot("certify", "own"), "'my_own_method:Mine'", "if it is yours or you trust it, pass --allow-code")
    done = surefoot("certify", "own", "--allow-code", "--n", "2", "--n0", "2", "--max-images", "4", "--quiet")
    assert (done.code, done.err) == (0, "")
    with pytest.raises(SurefootError, match=r"'my_own_method:Mine'.*allow_code=True"):
        sf.load_run("own")
    assert not marker.exists()


@pytest.mark.parametrize("words", [["audit", "--model", "x"], ["train"], ["compare", "a", "b"]], ids=lambda words: words[0])
def test_trust_without_a_file_is_refused(surefoot, here, words):
    assert refused(surefoot(*words, "--allow-code"), "--allow-code is for")


def test_what_is_named_must_be_of_its_kind(surefoot, sent):
    """Also when the user names it himself; nothing is called to find out."""
    sent()
    for words, rule in [
        (["attack", "r", "--attack", "os:system"], "attack 'os:system' must be a function of (model, images, labels)."),
        (["attack", "r", "--attack", "subprocess:Popen"], "attack 'subprocess:Popen' must be a function of"),
        (["train", "--objective", "os:system", "--output", "o"], "must be a subclass of surefoot.objectives.Objective."),
        (["train", "--objective", "noisy", "--set", "objective.view=os:system", "--output", "o"], "must be a subclass of"),
        (["train", "--objective", "noisy", "--set", "objective.view=subprocess:run", "--output", "o"], "must be a subclass of"),
    ]:
        assert refused(surefoot(*words), rule)


def test_a_run_is_not_trained_or_removed_through_links(sent, surefoot, here):
    folder, elsewhere = sent(), here / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("years")
    for name, words in [
        ("state", []),
        ("audit-data", ["--overwrite"]),
        ("tracker", ["--overwrite", "--tracker", "tensorboard"]),
    ]:
        (folder / name).symlink_to(elsewhere)
        assert refused(surefoot("train", "--output", "r", "--quiet", *words), f"'r/{name}' is a link")
        (folder / name).unlink()
        assert (folder / "model.safetensors").is_file()
    assert [path.name for path in elsewhere.iterdir()] == ["precious"]


def test_a_link_in_the_place_of_a_file_is_replaced(surefoot, here):
    precious = here / "precious"
    precious.write_text("years")
    (here / "out").mkdir()
    for name in ("audit.json", "report.html"):
        (here / "out" / name).symlink_to(precious)
    sf.Predictions.from_logits(torch.randn(60, 3), torch.arange(60) % 3).save(here / "p.npz")
    assert surefoot("audit", "--predictions", "p.npz", "--output", "out", "--quiet").code == 0
    assert precious.read_text() == "years"
    assert not any((here / "out" / name).is_symlink() for name in ("audit.json", "report.html"))
