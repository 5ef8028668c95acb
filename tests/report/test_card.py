"""A run for the Hugging Face hub and back, through a cache on this machine."""

import json
import shutil

import pytest
import torch
import yaml
from huggingface_hub import ModelCard, constants

import small_audits
import surefoot as sf
from surefoot.calibration import fit_temperature
from surefoot.errors import SurefootError
from surefoot.training.runs import write_calibrated

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A calibrated run with an audit beside it."""
    base = tmp_path_factory.mktemp("card")
    data = sf.load_data("digits", max_images=40)
    model = sf.load_model("tiny-resnet", data=data, seed=0)
    run = sf.fit(model, "cross-entropy", data, epochs=1, batch_size=32, output=base / "plain", progress=False)
    temperature = fit_temperature(sf.Predictions.from_logits(3 * torch.randn(60, 10), torch.arange(60) % 10))
    write_calibrated(run, temperature, base / "a `run`")
    plain = small_audits.audit("mine")
    plain["attacks"]["a|b"] = plain["attacks"]["pgd-weak"]
    (base / "a `run`" / "audit.json").write_text(json.dumps(plain))
    return base / "a `run`"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A cache as huggingface_hub keeps it, without a network; puts a folder there as a repository."""
    cache = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    def push(folder, name):
        repo = cache / f"models--{name.replace('/', '--')}"
        for part in ("refs", "blobs", f"snapshots/{COMMIT}"):
            (repo / part).mkdir(parents=True)
        (repo / "refs" / "main").write_text(COMMIT)
        for number, file in enumerate(sorted(folder.iterdir())):
            shutil.copyfile(file, repo / "blobs" / str(number))
            (repo / "snapshots" / COMMIT / file.name).symlink_to(repo / "blobs" / str(number))
        return repo

    return push


def test_a_card_and_back(surefoot, trained, here, hub):
    done = surefoot("card", trained, "--output", "card", "--name", "my-net", "--license", "apache-2.0")
    assert (done.code, done.out) == (0, "card: card/README.md\nnext: hf upload OWNER/NAME card\n")
    files = ["README.md", "calibration.safetensors", "config.json", "history.jsonl", "model.safetensors", "recipe.yaml"]
    assert sorted(path.name for path in (here / "card").iterdir()) == files
    hub(here / "card", "me/my-net")
    images = torch.rand(4, 3, 32, 32)
    before, after, pinned = (sf.load_run(each) for each in (trained, "hf://me/my-net", f"hf://me/my-net@{COMMIT}"))
    for run in (after, pinned):
        assert torch.equal(run.predictor(images), before.predictor(images))
        assert (run.calibrator, run.class_names, run.history) == (before.calibrator, before.class_names, before.history)
    config = json.loads((here / "card" / "config.json").read_text())
    assert config.items() >= {"architecture": "tiny-resnet", "num_classes": 10, "image_size": [32, 32]}.items()
    assert (config["id2label"]["3"], config["calibrated"], len(config["mean"])) == ("3", True, 3)


def test_metadata_as_the_hub_reads_it(trained, tmp_path):
    card = ModelCard.load(sf.write_card(trained, tmp_path / "card", license="mit") / "README.md")
    assert (card.data.library_name, card.data.pipeline_tag, card.data.license) == ("surefoot", "image-classification", "mit")
    assert card.data.model_name == "a--run-"
    found = {result.metric_type: result for result in card.data.eval_results}
    assert found["accuracy"].metric_value == 0.9
    assert (found["ece"].metric_value, found["ece"].dataset_name, found["ece"].dataset_split) == (0.02, "digits", "test")
    assert found["attacks.pgd-weak.success_rate"].metric_value == 0.4
    assert "| accuracy | 90.00 % | 89.00 % to 91.00 % |" in card.text
    assert "| `a\\|b` success | 40.00 % |" in card.text
    assert "# `a--run-`" in card.text


def test_a_run_without_an_audit_says_so(trained, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(trained, bare, ignore=shutil.ignore_patterns("audit.json"))
    card = ModelCard.load(sf.write_card(bare, tmp_path / "card") / "README.md")
    assert card.text.rstrip().endswith("It has not been audited.")
    assert card.data.eval_results is None


def test_where_the_data_lie_stays_here(trained, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(trained, own)
    recipe = yaml.safe_load((own / "recipe.yaml").read_text())
    recipe["data"] |= {"name": "/home/me/secret/pets", "root": "/home/me/data"}
    (own / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    card = sf.write_card(own, tmp_path / "card")
    assert not any(b"/home/me" in path.read_bytes() for path in card.iterdir())
    assert yaml.safe_load((card / "recipe.yaml").read_text())["data"]["name"] == "pets"
    assert sf.load_run(card).class_names == sf.load_run(trained).class_names


def test_what_comes_from_the_hub_runs_no_code(trained, tmp_path, hub):
    """A recipe that names code, and files that a run does not have, are no more than in anybody's folder."""
    card = sf.write_card(trained, tmp_path / "card")
    recipe = yaml.safe_load((card / "recipe.yaml").read_text())
    recipe["objective"]["name"] = "os:system"
    (card / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    hub(card, "me/evil")
    with pytest.raises(SurefootError, match="os:system"):
        sf.load_run("hf://me/evil")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("hf://me", "hf://OWNER/NAME or hf://OWNER/NAME@REVISION, got 'hf://me'"),
        ("hf://../../etc", "hf://OWNER/NAME or"),
        ("hf://me/x@a b", "hf://OWNER/NAME or"),
        ("hf://me/unknown", "'hf://me/unknown' cannot be read: "),
    ],
)
def test_addresses_that_cannot_be_read(hub, address, said):
    with pytest.raises(SurefootError) as stopped:
        sf.load_run(address)
    assert said in str(stopped.value)
    assert "\n" not in str(stopped.value)


def test_refusals(surefoot, trained, here):
    assert surefoot("card", "no-run").code == 2
    told = json.loads(surefoot("card", trained, "--output", "told", "--json").out)
    assert (told["folder"], "README.md" in told["files"]) == ("told", True)
    assert "name must be letters, digits" in surefoot("card", trained, "--name", "../x").err
    assert "license must be a name of the hub" in surefoot("card", trained, "--license", "a b").err
    (here / "full").mkdir()
    (here / "full" / "file").touch()
    assert "output must be a new or empty folder" in surefoot("card", trained, "--output", "full").err
