"""Foreign pictures in an audit: what is scored, kept, shown, refused, and what it comes to on a made-up truth."""

import json
import math
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.metrics import roc_auc_score
from torch.utils._python_dispatch import TorchDispatchMode

import surefoot as sf
from surefoot.auditing.depths import Depth
from surefoot.errors import SurefootError
from surefoot.ood.arguments import MADE
from surefoot.ood.foreign import BLOCK, foreign_sets, shuffled_patches

ONLY = Depth("quick", {"foreign": {"max_images": 60, "train_images": 200}})


@pytest.fixture(scope="module")
def audited(run, digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("foreign")
    return sf.audit(run.predictor, digits, depth=ONLY, output=folder, progress=False), folder


def test_every_score_on_every_made_set(audited):
    audit, folder = audited
    assert tuple(audit.foreign["sets"]) == MADE
    for found in audit.foreign["sets"].values():
        assert set(found["scores"]) == set(sf.ood.NAMES)
        best = found["scores"][found["best"]]
        assert best["auroc_difference"] == 0
        assert all(score["auroc"] <= best["auroc"] for score in found["scores"].values())
        assert all(score["auroc"].low <= score["auroc"] <= score["auroc"].high for score in found["scores"].values())
    assert [name for name, found in audit.foreign["sets"].items() if found["near"]] == ["patches"]
    assert audit.foreign["fitted_on"] == "200 pictures of the train split"
    shown = json.loads((folder / "audit-data" / "points.json").read_text())["foreign"]
    assert all(len(pictures) == 8 for pictures in shown.values())
    for pictures in shown.values():
        sure = [each["confidence"] for each in pictures]
        assert sure == sorted(sure, reverse=True)


def test_a_number_of_the_audit_by_hand(audited, run, digits):
    """Energy on uniform noise, from the model itself and scikit-learn."""
    audit, _ = audited
    rows = sf.audit(run.predictor, digits, depth=Depth("quick", {}), progress=False).predictions
    from surefoot.data.subsets import chosen_rows

    known = rows.logits[chosen_rows(digits.test, 60, 0)]
    noise = next(foreign_sets((), digits, "test")["noise-uniform"].batches(60, 60, 3, "cpu")).images
    with torch.inference_mode():
        foreign = run.predictor(noise)
    scores = -torch.cat([known, foreign]).logsumexp(1)
    expected = roc_auc_score(np.arange(120) >= 60, scores.numpy())
    assert float(audit.foreign["sets"]["noise-uniform"]["scores"]["energy"]["auroc"]) == pytest.approx(expected, abs=1e-6)


def test_statistics_are_kept_and_used_again(audited, run, digits, monkeypatch):
    audit, folder = audited
    assert (folder / "audit-data" / "known.safetensors").is_file()
    from surefoot.ood import known

    monkeypatch.setattr(known.Known, "add", lambda *_: pytest.fail("the pass was made again"))
    again = sf.audit(run.predictor, digits, depth=ONLY, output=folder, progress=False)
    assert again.foreign == audit.foreign


def test_without_training_pictures_each_half_serves_the_other(run, digits):
    from dataclasses import replace

    empty = replace(digits.test, images=digits.test.images[:0], labels=digits.test.labels[:0], indices=digits.test.indices[:0])
    audit = sf.audit(run.predictor, replace(digits, train=empty), depth=ONLY, progress=False)
    assert audit.foreign["fitted_on"] == "two-fold cross-fitting on the test split"
    assert audit.foreign["sets"]["noise-uniform"]["scores"]["mahalanobis"]["auroc"] > 0.9


def test_sets_of_one_s_own(run, digits, tmp_path):
    folder = tmp_path / "scribbles"
    folder.mkdir()
    random = np.random.default_rng(0)
    for number in range(12):
        Image.fromarray(random.integers(0, 255, (40, 50, 3), dtype=np.uint8)).save(folder / f"{number}.jpg")
    np.savez(tmp_path / "grey.npz", images=random.integers(0, 255, (9, 32, 32), dtype=np.uint8), labels=np.zeros(9, int))
    given = {
        "near:scribbles": folder,
        "grey": str(tmp_path / "grey.npz"),
        "pixels": torch.rand(7, 3, 20, 20),
        "photographs": "photographs",
    }
    audit = sf.audit(run.predictor, digits, depth=ONLY, foreign=given, progress=False)
    sets = audit.foreign["sets"]
    assert {name: found["images"] for name, found in sets.items()} == {
        "scribbles": 12,
        "grey": 9,
        "pixels": 7,
        "photographs": 60,
    }
    assert sets["scribbles"]["near"]
    assert not sets["grey"]["near"]
    said = [finding.message for finding in audit.preflight if finding.name == "foreign-size"]
    assert said == [
        "Foreign pictures of 'scribbles' are 40 x 50, the known ones 32 x 32.",
        "Foreign pictures of 'pixels' are 20 x 20, the known ones 32 x 32.",
    ]
    classes = [finding.message for finding in audit.preflight if finding.name == "foreign-classes"]
    assert classes == ["Foreign set 'grey' and the known data have 1 classes of the same name: 0."]


def test_other_compression_is_noticed(tmp_path):
    random = np.random.default_rng(0)
    for place, suffix in (("known/a", "png"), ("known/b", "png"), ("other", "jpg")):
        (tmp_path / place).mkdir(parents=True)
        for number in range(10):
            pixels = random.integers(0, 255, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / place / f"{number}.{suffix}")
    from surefoot.ood.checks import check_foreign

    data = sf.load_data(tmp_path / "known")
    findings = check_foreign(foreign_sets([str(tmp_path / "other")], data, "test"), data, "test")
    assert [finding.name for finding in findings] == ["foreign-compression"]
    assert "are JPEG, the known ones not compressed so" in findings[0].message
    with pytest.raises(SurefootError, match="holds the known pictures"):
        check_foreign(foreign_sets([str(tmp_path / "known")], data, "test"), data, "test")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"same": "digits"}, "Foreign set 'same' holds the known pictures"),
        (["photograps"], "Did you mean 'photographs'?"),
        (["nowhere/at/all"], "No foreign pictures at"),
        ({"x": 3}, "must be a name, a path, a data set, a split or a tensor, got int."),
        ({"x": torch.rand(2, 3, 8, 8) * 9}, "must be in [0, 1]"),
        ({"x": torch.rand(0, 3, 32, 32)}, "Foreign set 'x' has no pictures."),
        ("photographs", "must be a list of names or a mapping"),
        (["near:patches", "patches"], "names two sets 'patches'"),
    ],
)
def test_foreign_sets_that_cannot_be_used_are_one_line(run, digits, given, said):
    with pytest.raises(SurefootError) as error:
        sf.audit(run.predictor, digits, depth=ONLY, foreign=given, progress=False)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_empty_folder_and_a_wrong_file(run, digits, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("no pictures")
    for name, said in (("empty", "has no pictures."), ("text.txt", "is neither a folder nor a .npz file.")):
        with pytest.raises(SurefootError, match=said):
            foreign_sets([str(tmp_path / name)], digits, "test")


def test_a_model_without_a_linear_end_has_the_scores_of_logits(digits):
    class Odd(torch.nn.Module):
        def forward(self, images):
            return images.mean((2, 3)).repeat(1, 4)[:, :10] * 3 + torch.arange(10)

    audit = sf.audit(Odd(), digits, depth=ONLY, progress=False)
    scores = audit.foreign["sets"]["photographs"]["scores"]
    assert set(scores) == {"msp", "max-logit", "energy", "entropy", "gen"}
    assert any("features are not available" in note for note in audit.subject["notes"])


def test_patches_keep_the_pixels_and_change_their_places():
    images = torch.rand(64, 3, 18, 16)
    shuffled = shuffled_patches(images, torch.Generator().manual_seed(0))
    assert torch.equal(shuffled[:, :, 16:], images[:, :, 16:])
    assert torch.allclose(shuffled.flatten(1).sort(1).values, images.flatten(1).sort(1).values)
    moved = (shuffled[:, :, :16] - images[:, :, :16]).abs().flatten(1).amax(1)
    assert (moved > 0).float().mean() > 0.9
    assert torch.equal(shuffled_patches(images[:50], torch.Generator().manual_seed(0)), shuffled[:50])


def test_made_pictures_are_the_same_every_time(digits):
    one, two = (foreign_sets((), digits, "test", seed) for seed in (0, 0))
    for name in MADE:
        assert torch.equal(one[name].split.images, two[name].split.images)
    assert one["photographs"].split.images.float().std() > 30
    assert not torch.equal(one["noise-uniform"].split.images, foreign_sets((), digits, "test", 1)["noise-uniform"].split.images)


def test_the_page_shows_it_and_escapes_names(audited, tmp_path):
    from surefoot.report.page import read_audit

    _, folder = audited
    plain = read_audit(folder)
    for part in (plain["foreign"]["sets"], plain["points"]["foreign"]):
        part["<b>noise</b>"] = part.pop("noise-uniform")
    text = sf.write_page(tmp_path / "page.html", [plain]).read_text()
    section = text[text.index('id="foreign"') :].split("</section>")[0]
    assert "Near the known pictures" in section
    assert section.count("<small>best</small>") == len(MADE)
    assert "&lt;b&gt;noise&lt;/b&gt;" in section
    assert "<b>noise</b>" not in section
    assert section.count("<img ") == 8 * len(MADE)
    assert 'data-figure="mixtures-0"' in section


def test_the_command_takes_sets_and_a_gate_reads_their_numbers(run, surefoot, quicker, tmp_path):
    sets = ("--foreign", "noise-uniform", "--foreign", "near:patches")
    assert surefoot("audit", run.folder, "--output", tmp_path, *sets, "--only", "foreign", "--quiet").code == 0
    plain = json.loads((tmp_path / "audit.json").read_text())
    assert list(plain["foreign"]["sets"]) == ["noise-uniform", "patches"]
    rule = "foreign.sets.noise-uniform.scores.mahalanobis.auroc > 0.5"
    assert surefoot("gate", tmp_path, "--rule", rule).code == 0
    assert surefoot("gate", tmp_path, "--rule", "foreign.patches.foreign_answered < -1").code == 1
    wrong = surefoot("audit", run.folder, "--output", tmp_path / "other", "--foreign", "photograps")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "Did you mean 'photographs'?" in wrong.err


def test_classes_that_were_held_out_are_near():
    """A net that never saw 8 and 9: they are near, photographs are far, and the two are averaged apart."""
    script = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "near_foreign.py"))
    data = sf.load_data("digits", image_size=8, seed=0)
    known, near = script["without"](data, (2, 9))
    assert known.class_names == tuple("01345678")
    assert len(known.test) + len(near) == len(data.test)
    assert set(near.indices.tolist()) == set(data.test.indices[(data.test.labels == 2) | (data.test.labels == 9)].tolist())
    place = {label: number for number, label in enumerate((0, 1, 3, 4, 5, 6, 7, 8))}
    before = dict(zip(data.train.indices.tolist(), data.train.labels.tolist(), strict=True))
    pairs = zip(known.train.indices.tolist(), known.train.labels.tolist(), strict=True)
    assert all(place[before[index]] == label for index, label in pairs)
    sets = script["audited"](data, (2, 9), epochs=3, images=100)
    assert {name: found["near"] for name, found in sets.items()} == {
        "held out": True,
        "photographs": False,
        "noise-uniform": False,
    }
    assert sets["held out"]["scores"][sets["held out"]["best"]]["auroc"] > 0.8
    assert sets["photographs"]["scores"]["mahalanobis"]["auroc"] > 0.9


@pytest.mark.parametrize("name", MADE)
def test_a_made_set_takes_the_memory_of_a_block(digits, name):
    """No tensor of floats on the way is larger than a block of pictures, however many there are (photographs apart)."""
    largest = 0

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            made = function(*args, **(kwargs or {}))
            if isinstance(made, torch.Tensor) and made.is_floating_point():
                largest = max(largest, made.numel())
            return made

    with Watching():
        pictures = foreign_sets([name], digits, "test")[name]
    assert len(pictures) == len(digits.test) > 2 * BLOCK
    photograph = 3 * 427 * 640  # scikit-learn's
    block = BLOCK * digits.channels * math.prod(digits.image_size)
    assert 0 < largest <= (max(block, photograph) if name == "photographs" else block)
