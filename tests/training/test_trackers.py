"""Real trackers on local stores: names, hyper-parameters, every term, and the numbers and page of an audit, in one run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.data.augmentation import Augmentation
from surefoot.errors import SurefootError
from surefoot.training.trackers import flat

TERMS = ("loss", "cross_entropy", "margin", "consistency", "validation_accuracy", "learning_rate")
EPOCHS = 2


@pytest.fixture(scope="module")
def few():
    return sf.load_data("digits", max_images=60)


def fit(few, folder, **options):
    torch.manual_seed(0)
    model = sf.adapt(nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)), 0.5, 0.5, 32)
    own = {"epochs": EPOCHS, "batch_size": 32, "learning_rate": 1e-3, "augmentation": Augmentation(), "progress": False}
    return sf.fit(model, sf.objectives.MaCS(margin=0.7), few, output=folder, **own, **options)


def tracked(few, folder, tracker, **options):
    """A run by a tracker, with an audit of predictions told to it."""
    run = fit(few, folder, tracker=tracker, **options)
    audit = sf.audit_predictions(sf.Predictions.from_logits(torch.randn(60, 10), torch.arange(60) % 10), output=folder)
    sf.write_page(folder / "report.html", [folder], assets="beside")
    sf.track(folder, tracker)
    return run, audit


def test_flat_parameters():
    given = {"seed": 3, "training": {"epochs": 2, "decay": (1, 2), "clip": None}, "data": None}
    assert flat(given) == {"seed": 3, "training.epochs": 2, "training.decay": "(1, 2)"}


def test_tensorboard(few, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.metadata import SESSION_START_INFO_TAG
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    folder = tmp_path / "first"
    run, audit = tracked(few, folder, "tensorboard")
    found = EventAccumulator(str(folder / "tracker"))
    found.Reload()
    for name in TERMS:
        assert [event.value for event in found.Scalars(name)] == pytest.approx([epoch[name] for epoch in run.history])
    (number,) = found.Scalars("audit/calibration.ece")
    assert number.value == pytest.approx(audit.calibration.ece)
    assert str(folder / "report.html").encode() in found.Tensors("audit/page/text_summary")[0].tensor_proto.string_val
    content = found.SummaryMetadata(SESSION_START_INFO_TAG).plugin_data.content
    told = HParamsPluginData.FromString(content).session_start_info.hparams
    assert (told["objective.margin"].number_value, told["training.epochs"].number_value) == (0.7, EPOCHS)


def test_mlflow(few, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    from mlflow.tracking import MlflowClient

    folder = tmp_path / "first"
    run, audit = tracked(few, folder, "mlflow", project="digits")
    client = MlflowClient()
    (experiment,) = (each for each in client.search_experiments() if each.name == "digits")
    (found,) = client.search_runs([experiment.experiment_id])  # training and audit are one run
    assert found.info.run_name == "first"
    assert found.data.params.items() >= {"objective.margin": "0.7", "training.epochs": "2", "seed": "0"}.items()
    for name in TERMS:
        values = [each.value for each in client.get_metric_history(found.info.run_id, name)]
        assert values == pytest.approx([epoch[name] for epoch in run.history])
    assert found.data.metrics["audit/calibration.ece"] == pytest.approx(audit.calibration.ece)
    assert [each.path for each in client.list_artifacts(found.info.run_id, "audit")] == ["audit/report.html"]
    fit(few, folder, tracker="mlflow", project="digits", overwrite=True)
    assert len(client.search_runs([experiment.experiment_id])) == 2  # another run has its own


WANDB = """
import json, sys
from pathlib import Path
import test_trackers as ours
from wandb.proto.wandb_internal_pb2 import Record
from wandb.sdk.internal.datastore import DataStore

folder = Path(sys.argv[1])
run, audit = ours.tracked(ours.sf.load_data("digits", max_images=60), folder, "wandb", project="digits")
found = {"runs": [], "config": {}, "history": [], "summary": {}}
plain = lambda items: {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items}
for path in sorted((folder / "tracker").rglob("run-*.wandb")):
    store = DataStore()
    store.open_for_scan(str(path))
    while (data := store.scan_data()) is not None:
        record = Record.FromString(data)
        if record.HasField("run"):
            found["runs"].append([record.run.project, record.run.display_name, record.run.run_id])
        found["config"] |= plain(record.run.config.update) | plain(record.config.update)
        found["history"].append(plain(record.history.item))
        found["summary"] |= plain(record.summary.update)
print(json.dumps({**found, "epochs": run.history, "ece": audit.calibration.ece}))
"""


def test_wandb(tmp_path):
    """In a process of its own: wandb lies apart, since timm imports it into every process where it can."""
    apart = Path(os.environ.get("SUREFOOT_TRACKERS") or Path(sys.prefix) / "trackers")
    if not (apart / "wandb").is_dir():
        if os.environ.get("CI"):
            pytest.fail("CI needs wandb: make setup")
        pytest.skip(f"no wandb in {apart}: make setup")
    path = os.pathsep.join([str(apart), str(Path(sf.__file__).parent.parent), str(Path(__file__).parent)])
    settings = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")} | {"PYTHONPATH": path}
    folder = tmp_path / "first"
    done = subprocess.run([sys.executable, "-c", WANDB, str(folder)], env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {tuple(each[:2]) for each in found["runs"]} == {("digits", "first")}
    assert len({each[2] for each in found["runs"]}) == 1  # training and audit are one run
    assert (found["config"]["objective.margin"], found["config"]["training.epochs"]) == (0.7, EPOCHS)
    for name in TERMS:
        told = [row[name] for row in found["history"] if name in row]
        assert told == pytest.approx([epoch[name] for epoch in found["epochs"]])
    assert found["summary"]["audit/calibration.ece"] == pytest.approx(found["ece"])
    assert len(list((folder / "tracker").rglob("media/html/**/*.html"))) == 1


def test_refusals(few, tmp_path):
    with pytest.raises(SurefootError, match="Unknown tracker of audits 'mlfow'. Did you mean 'mlflow'?"):
        sf.track(tmp_path, "mlfow")
    with pytest.raises(SurefootError, match="No audit at"):
        sf.track(tmp_path, "tensorboard")
    with pytest.raises(SurefootError, match="^project is for a tracker.$"):
        fit(few, tmp_path / "r", project="digits")
    assert not (tmp_path / "r").exists()


def test_on_the_command_line(surefoot, here):
    """An audit of predictions has no run to join: it begins one in its own folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sf.Predictions.from_logits(torch.randn(60, 10), torch.arange(60) % 10).save(here / "p.npz")
    done = surefoot("audit", "--predictions", "p.npz", "--output", "out", "--quiet", "--tracker", "tensorboard")
    assert (done.code, done.out) == (0, "")
    found = EventAccumulator(str(here / "out" / "tracker"))
    found.Reload()
    audit = json.loads((here / "out" / "audit.json").read_text())
    assert found.Scalars("audit/calibration.ece")[0].value == pytest.approx(audit["calibration"]["ece"]["value"])
    for command in (["audit", "--predictions", "p.npz"], ["train"]):
        assert surefoot(*command, "--project", "x").err == "surefoot: --project is for --tracker.\n"
