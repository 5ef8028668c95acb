"""The table is the truth: every number of an audit that is of images, again with plain pandas from the Parquet parts alone."""

import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import surefoot as sf
from audit_schema import faults
from surefoot.auditing.depths import DEPTHS, Depth
from surefoot.auditing.table import conditions_in, read_table, write_table
from surefoot.errors import NotFound, UnknownName

BINS = 15
TABLE1 = {"corruptions": {"names": ("gaussian_noise", "fog", "contrast"), "severities": (1, 4), "max_images": 60}}


@pytest.fixture(scope="module")
def folder(run, digits, tmp_path_factory):
    """A standard audit on few images, in a folder."""
    few = {"max_images": 30}
    depth = DEPTHS["standard"].having(
        **TABLE1,
        noise={"levels": (8, 40), "draws": 2, "max_images": 50},
        occlusions={"max_images": 40},
        attacks={"names": ("fgsm", "pgd-weak"), "max_images": 40},
        security_curve={"budgets": (0, 2), "max_images": 40},
        masking=None,
    )
    depth = depth.having(**{label.replace("-", "_"): few for label in depth.measure if "max_images" in depth.measure[label]
                            and label not in ("corruptions", "noise", "occlusions", "attacks", "security-curve")})  # fmt: skip
    output = tmp_path_factory.mktemp("table")
    sf.audit(run.predictor, digits, depth=depth, calibrate_on="calibration", output=output, progress=False)
    return output


@pytest.fixture(scope="module")
def frame(folder):
    """What anybody can open."""
    return pd.concat([pd.read_parquet(part) for part in sorted((folder / "audit-data" / "table").glob("part-*.parquet"))])


@pytest.fixture(scope="module")
def audit(folder):
    return json.loads((folder / "audit.json").read_text())


def test_a_standard_audit_keeps_to_its_schema(audit):
    assert faults(audit) == []


def binned(confidence, correct):
    """Sums of (confidence - right), counts: equal bins that contain their upper end."""
    confidence, correct = confidence.to_numpy(float), correct.to_numpy(float)
    where = np.clip(np.ceil(confidence * BINS).astype(int) - 1, 0, BINS - 1)
    gaps = np.bincount(where, confidence - correct, BINS)
    return gaps, np.bincount(where, minlength=BINS)


def ece(rows, column="confidence"):
    gaps, _ = binned(rows[column], rows.correct)
    return np.abs(gaps).sum() / len(rows)


def rms(rows):
    gaps, counts = binned(rows.confidence, rows.correct)
    full = counts > 0
    return math.sqrt((gaps[full] ** 2 / counts[full]).sum() / len(rows))


def close(audited, plain):
    value = audited["value"] if isinstance(audited, dict) else audited
    assert value == pytest.approx(plain, abs=1e-6)


def test_one_row_for_each_image_and_condition(frame):
    assert not frame.duplicated(["image", "condition"]).any()
    assert frame.image.str.len().gt(0).all()


def test_clean_scores(frame, audit):
    clean, found = frame[frame.condition == "clean"], audit["calibration"]
    assert len(clean) == audit["subject"]["images"]
    close(found["accuracy"], clean.correct.mean())
    close(found["top5"], (clean["rank"] < 5).mean())
    close(found["nll"], clean.nll.mean())
    close(found["brier"], clean.brier.mean())
    close(found["ece"], ece(clean))
    close(found["rms"], rms(clean))
    gaps, counts = binned(clean.confidence, clean.correct)
    close(found["signed_error"], gaps.sum() / len(clean))
    close(found["max_error"], max(abs(gaps[counts > 0] / counts[counts > 0])))
    ranked = clean.sort_values("confidence", ascending=False, kind="stable")
    close(audit["temperature"]["calibration"]["ece"], ece(clean, "scaled_confidence"))
    right, wrong = (ranked[ranked.correct == side].confidence.to_numpy() for side in (True, False))
    pairs = (right[:, None] > wrong).mean() + 0.5 * (right[:, None] == wrong).mean()
    close(found["auroc"], pairs)
    close(audit["geometry"]["mean_margin"], clean.margin.mean())
    close(audit["geometry"]["logit_norm"], clean.logit_norm.mean())
    close(audit["geometry"]["largest_logit"], clean.largest_logit.mean())


def test_class_wise_scores_from_the_logits(frame, audit):
    clean, found = frame[frame.condition == "clean"], audit["calibration"]
    logits = np.stack(clean.logits.to_numpy()).astype(float)
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    p = (shifted / shifted.sum(1, keepdims=True)).astype(np.float32)
    labels = clean.label.to_numpy()
    errors = []
    for number in range(p.shape[1]):
        gaps, _ = binned(pd.Series(p[:, number]), pd.Series(labels == number))
        errors.append(np.abs(gaps).sum() / len(clean))
    close(found["classwise_ece"], np.mean(errors))
    shares = np.bincount(labels, minlength=p.shape[1]) / len(labels)
    close(found["brier_uncertainty"], (shares * (1 - shares)).sum())


def test_corruptions(frame, audit):
    found = audit["corruptions"]
    cells = []
    for cell in found["cells"]:
        rows = frame[frame.condition == f"{cell['name']}/{cell['severity']}"]
        assert len(rows) == found["images"] == 60
        close(cell["accuracy"], rows.correct.mean())
        close(cell["nll"], rows.nll.mean())
        close(cell["ece"], ece(rows))
        close(cell["rms"], rms(rows))
        close(cell["scaled_ece"], ece(rows, "scaled_confidence"))
        cells.append(rows)
    assert len(cells) == 6
    for name, score in (("accuracy", lambda r: r.correct.mean()), ("nll", lambda r: r.nll.mean()), ("ece", ece), ("rms", rms)):
        close(found[f"mean_{name}"], np.mean([score(rows) for rows in cells]))
    whole = pd.concat(cells)
    close(found["pooled_rms"], rms(whole))
    clean = frame[(frame.condition == "clean") & frame.image.isin(cells[0].image)]
    close(found["clean_accuracy"], clean.correct.mean())
    close(found["relative_drop"], 1 - np.mean([rows.correct.mean() for rows in cells]) / clean.correct.mean())


def test_noise_and_occlusions(frame, audit):
    for level in audit["noise"]:
        name = f"noise-gaussian/{255 * level['level']:g}"
        draws = [frame[frame.condition == each] for each in (name, f"{name}#1")]
        close(level["accuracy"], np.mean([rows.correct.mean() for rows in draws]))
        close(level["deviation"], np.std([rows.correct.mean() for rows in draws], ddof=1))
        close(level["ece"], np.mean([ece(rows) for rows in draws]))
    assert len(audit["occlusions"]) == 6
    for occlusion in audit["occlusions"]:
        rows = frame[frame.condition == f"{occlusion['name']}/{occlusion['severity']:g}"]
        close(occlusion["accuracy"], rows.correct.mean())
        close(occlusion["nll"], rows.nll.mean())


def test_attacks(frame, audit):
    clean = frame[frame.condition == "clean"].set_index("image")
    for name, found in audit["attacks"].items():
        rows = frame[frame.condition == name].set_index("image")
        before = clean.loc[rows.index].correct.astype(bool)
        after = rows.correct.astype(bool)
        close(found["success_rate"], (before & ~after).sum() / before.sum())
        close(found["robust_accuracy"], (before & after).mean())
        close(found["confidence"], rows.confidence.mean())
        close(found["ece"], ece(rows))
        close(found["nll"], rows.nll.mean())
    for point in audit["security_curve"]:
        rows = frame[frame.condition == f"pgd/{255 * point['eps']:g}"]
        close(point["accuracy"], rows.correct.mean())
        close(point["ece"], ece(rows))


def test_geometry(frame, audit):
    clean, found = frame[frame.condition == "clean"], audit["geometry"]["measured"]
    columns = {
        "sensitivity": "sensitivity", "probability_change": "prediction_sensitivity", "radius": "radius",
        "curvature": "curvature", "feature_rms": "feature_rms", "feature_cosine": "feature_cosine",
        "perturbation_rms": "perturbation_rms", "hyperplane_distance": "hyperplane_distance", "fisher_trace": "fisher_trace",
    }  # fmt: skip
    for column, name in columns.items():
        values = clean[column].dropna()
        assert len(values) == 30, column
        assert found[name]["value"] == pytest.approx(values.astype(float).mean(), rel=1e-5), name
    few = clean.dropna(subset=["sensitivity"])
    assert found["margin_to_sensitivity"]["value"] == pytest.approx(few.margin.mean() / few.sensitivity.mean(), rel=1e-4)


def test_classes(frame, audit):
    clean = frame[frame.condition == "clean"]
    for number, found in enumerate(audit["classes"]):
        rows = clean[clean.label == number]
        assert found["images"] == len(rows)
        close(found["accuracy"], rows.correct.mean())
        close(found["precision"], clean[clean.predicted == number].correct.mean())
        close(found["confidence"], rows.confidence.mean())


def test_thresholds(frame, audit):
    clean = frame[frame.condition == "clean"]
    for found in audit["thresholds"]:
        (bound,) = found["thresholds"]
        kept = clean[clean.confidence >= bound]
        close(found["coverage"], len(kept) / len(clean))
        if len(kept):
            close(found["risk"], 1 - kept.correct.mean())


def test_a_table_in_python_and_as_a_file(folder, frame, tmp_path, surefoot):
    assert len(read_table(folder)) == len(frame)
    fog = read_table(folder, "fog/4")
    assert set(fog.condition) == {"fog/4"}
    assert len(fog) == 60
    assert conditions_in(folder)[0] == "clean"
    with pytest.raises(UnknownName, match="fog/4"):
        read_table(folder, "fog/5")
    with pytest.raises(NotFound):
        read_table(tmp_path)
    assert write_table(folder, tmp_path / "fog.parquet", "fog/4") == 60
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "fog.parquet"), fog)
    printed = surefoot("table", folder, "--condition", "fog/4")
    assert printed.code == 0
    assert len(printed.out.splitlines()) == 61
    written = surefoot("table", folder / "audit.json", "--format", "parquet", "--output", tmp_path / "all.parquet")
    assert (written.code, len(pd.read_parquet(tmp_path / "all.parquet"))) == (0, len(frame))
    names = surefoot("table", folder, "--conditions").out.split()
    assert {"clean", "fog/4", "pgd-weak", "noise-gaussian/8#1"} <= set(names)
    assert surefoot("table", folder, "--format", "xml").code == 2


def test_an_audit_without_a_folder_has_a_table_too(run, digits):
    depth = DEPTHS["quick"].having(**TABLE1)
    depth = type(depth)("tiny", {"corruptions": depth.measure["corruptions"]})
    found = sf.audit(run.predictor, digits, depth=depth, progress=False)
    shares = found.table().groupby("condition", observed=True).correct.mean()
    assert shares["clean"] == pytest.approx(found.calibration.accuracy)
    assert shares["fog/4"] == pytest.approx(found.corruptions["fog"][1].accuracy)
    assert len(found.table("fog/4")) == 60


def test_tables_are_compared_with_torch_out_of_reach(folder):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from surefoot.auditing.comparison import compare\n"
        f"found = compare([{str(folder)!r}, {str(folder)!r}])\n"
        "assert all(item.value == 0 and item.paired for item in found.differences), found\n"
        "print(len(found.differences))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 15


def test_two_measurements_of_one_column_overwrite_nothing(run, digits):
    few = {"max_images": 12}
    noise, alone = {"draws": 2, "curvature_draws": 2, **few}, {"draws": 4, **few}
    both = sf.audit(run.predictor, digits, depth=Depth("both", {"curvature-noise": noise, "curvature": alone}), progress=False)
    one = sf.audit(run.predictor, digits, depth=Depth("one", {"curvature": alone}), progress=False)
    ours, theirs = both.table("clean"), one.table("clean")
    np.testing.assert_allclose(ours["curvature.curvature"], theirs["curvature"], rtol=1e-6)
    measured = ours["curvature"].dropna()
    assert len(measured) == 12
    assert not np.allclose(measured, theirs["curvature"].dropna())
    assert both.geometry.measured["curvature"] == pytest.approx(measured.mean(), rel=1e-5)
    assert both.geometry.measured["curvature.curvature"] == pytest.approx(theirs["curvature"].mean(), rel=1e-5)
