import json

import numpy as np
import pytest
import torch

import surefoot.storage
from surefoot import Predictions
from surefoot.errors import NotFound, SurefootError
from surefoot.storage import StoredPredictions, write_predictions


def some(count=57, classes=4, dtype=torch.float32, features=True):
    draws = torch.Generator().manual_seed(0)
    logits = torch.randn(count, classes, generator=draws).to(dtype)
    extra = torch.randn(count, 3, generator=draws) if features else None
    return Predictions.from_logits(logits, torch.arange(count) % classes, extra, torch.arange(count) * 2)


@pytest.mark.parametrize("name", ["folder", "one.safetensors", "arrays.npz", "table.csv"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_written_is_read(tmp_path, name, dtype):
    given = some(dtype=dtype)
    given.save(tmp_path / name)
    found = Predictions.load(tmp_path / name)
    assert torch.equal(found.logits.to(dtype), given.logits)
    assert torch.equal(found.labels, given.labels)
    assert torch.equal(found.indices, given.indices)
    if name == "table.csv":
        assert found.features is None
    else:
        assert torch.equal(found.features, given.features)


@pytest.mark.parametrize("name", ["folder", "table.csv"])
def test_batches_are_written_and_read_a_chunk_at_a_time(tmp_path, monkeypatch, name):
    monkeypatch.setattr(surefoot.storage, "CHUNK_BYTES", 10 * 4 * 4)
    given, alive = some(features=False), []

    def batches():
        for start in range(0, 57, 7):
            alive.append(start)
            yield given[start : start + 7]

    write_predictions(tmp_path / name, batches())
    assert len(alive) == 9
    stored = StoredPredictions(tmp_path / name)
    sizes = [len(chunk) for chunk in stored]
    assert max(sizes) < 20
    assert sum(sizes) == 57
    assert torch.equal(stored.load().logits.float(), given.logits)
    assert [len(chunk) for chunk in stored] == sizes  # as often as one likes


def test_one_file_is_read_some_rows_at_a_time(tmp_path, monkeypatch):
    some().save(tmp_path / "p.safetensors")
    monkeypatch.setattr(surefoot.storage, "CHUNK_BYTES", 10 * 4 * 4)
    assert [len(chunk) for chunk in StoredPredictions(tmp_path / "p.safetensors")] == [10, 10, 10, 10, 10, 7]


def test_a_folder_is_complete_or_refused(tmp_path):
    some().save(tmp_path / "p")
    assert json.loads((tmp_path / "p" / "predictions.json").read_text()) == {"chunks": 1, "images": 57}
    (tmp_path / "p" / "00001.safetensors").write_bytes(b"of an earlier, longer set")
    some(20).save(tmp_path / "p")
    assert sorted(p.name for p in (tmp_path / "p").iterdir()) == ["00000.safetensors", "predictions.json"]
    (tmp_path / "p" / "predictions.json").unlink()
    with pytest.raises(SurefootError, match="holds no complete predictions"):
        StoredPredictions(tmp_path / "p")


def test_files_of_other_programs(tmp_path):
    p = np.array([[0.25, 0.75], [0.5, 0.5]])
    np.savez(tmp_path / "p.npz", probabilities=p, labels=np.array([1, 0], dtype=np.int32))
    assert Predictions.load(tmp_path / "p.npz").log_probabilities.exp().numpy() == pytest.approx(p)
    (tmp_path / "p.csv").write_text("probability_0,probability_1,label\n0.25,0.75,1\n0.5,0.5,0\n")
    found = Predictions.load(tmp_path / "p.csv")
    assert found.log_probabilities.exp().numpy() == pytest.approx(p)
    assert (found.labels.tolist(), found.indices) == ([1, 0], None)


def test_a_csv_of_classes_by_name(tmp_path):
    (tmp_path / "p.csv").write_text("file,probability_dog,label,probability_cat\na.png,0.25, cat ,0.75\nb.png,0.5,dog,0.5\n")
    found = Predictions.load(tmp_path / "p.csv")
    assert found.class_names == ("dog", "cat")
    assert found.labels.tolist() == [1, 0]
    assert found.log_probabilities.exp().tolist() == [pytest.approx([0.25, 0.75]), pytest.approx([0.5, 0.5])]
    found[:1].save(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text().splitlines()[0] == "label,logit_dog,logit_cat"
    again = Predictions.load(tmp_path / "again.csv")
    assert (again.class_names, again.labels.tolist()) == (("dog", "cat"), [1])
    assert Predictions.join([found, again]).class_names == ("dog", "cat")


def test_numbered_columns_go_before_named_ones(tmp_path):
    (tmp_path / "p.csv").write_text("label,logit_scale,probability_0,probability_1\n1,3,0.25,0.75\n")
    found = Predictions.load(tmp_path / "p.csv")
    assert (found.class_names, found.num_classes, found.correct.tolist()) == (None, 2, [True])


def test_class_names_are_one_for_each_class():
    with pytest.raises(SurefootError, match="class_names must be 2 different names"):
        Predictions(torch.zeros(1, 2), torch.zeros(1, dtype=torch.long), class_names=("a", "a"))
    named = [
        Predictions(torch.zeros(1, 2), torch.zeros(1, dtype=torch.long), class_names=names) for names in ("ab", "ba", None)
    ]
    with pytest.raises(SurefootError, match="parts must be of the same classes"):
        Predictions.join(named[:2])
    assert Predictions.join(named[1:]).class_names is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "label,logit_cat,logit_dog\ncow,1,2\n", "'.*a.csv': Unknown label 'cow'. .*cat"),
        ("a.csv", "label,logit_cat,logit_cat\ncat,1,2\n", "has the column logit_cat twice"),
        ("a.csv", "label,logit_cat,logit_1\ncat,1,2\n", "must have each of logit_0 to logit_1 once; logit_cat does not fit"),
        ("a.csv", "label,logit_cat\ncat,1\n", "with at least 2 classes"),
        ("a.csv", "logit_0,logit_1,label\n0,1\n", "has a row that does not fit its names"),
        ("a.csv", "", "must begin with a line of names"),
        ("a.csv", "a,b\n1,2\n", "must begin with a line of names"),
        ("a.csv", "label,logit_0,logit_1\n0,1\n", "has a row that does not fit its names"),
        (
            "a.csv",
            "label,logit_0,logit_1\n0,one,2\n",
            "logit_0 is 'one', no number in the row '0,one,2'",
        ),
        ("a.csv", "label,logit_0,logit_1\n1,2,3\n0,1,\n", "does not fit its names: logit_1 is missing in the row '0,1,'"),
        ("a.csv", "label,index,logit_0,logit_1\n0,99999999999999999999,1,2\n", "has a row that does not fit its names"),
        ("a.csv", "label,logit_0,logit_1\n1,1,2\ncat,1,2\n", "labels must be whole numbers from 0, got 'cat'"),
        ("a.csv", "label,logit_0,logit_1\n2,1,2\n", r"labels must be in 0 to 1, got 2 to 2"),
        ("a.csv", "label,logit_0,logit_1\n0,nan,2\n0,1,2\n", r"1 of 2 images have NaN or infinity \(first: 0\)"),
        ("a.csv", "label,probability_0,probability_1\n0,0.5,0.6\n", "sum to 1; 1 of 1 images do not"),
        ("a.csv", "label,logit_0\n0,1\n", "with at least 2 classes"),
        (
            "a.csv",
            "label,logit_0,logit_1,logit_3\n0,1,2,3\n",
            "must have each of logit_0 to logit_2 once; logit_3 does not fit",
        ),
        (
            "a.csv",
            "label,logit_0,logit_1,logit_0\n0,1,2,3\n",
            "must have each of logit_0 to logit_2 once; logit_0, .* does not",
        ),
        ("a.csv", b"label,logit_0,logit_1,caf\xe9\n0,1,2,3\n", "predictions '.*a.csv' must be text in UTF-8"),
        ("a.csv", b"label,logit_0,logit_1\n0,1,\xff\n", "predictions '.*a.csv' must be text in UTF-8"),
        ("a.txt", "", "Unknown format of predictions '.txt'"),
        ("a.safetensors", "not one", "is not a whole safetensors file"),
        ("a.npz", "not one", "is not an .npz of plain arrays"),
        ("a.npz", "", "is not an .npz of plain arrays"),
    ],
)
def test_bad_files_are_named_in_one_line(tmp_path, name, text, message):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SurefootError, match=message) as error:
        Predictions.load(tmp_path / name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kept", [100, 300, -30])
def test_half_an_npz_is_refused(tmp_path, kept):
    some().save(tmp_path / "p.npz")
    (tmp_path / "p.npz").write_bytes((tmp_path / "p.npz").read_bytes()[:kept])
    with pytest.raises(SurefootError, match="is not an .npz of plain arrays"):
        Predictions.load(tmp_path / "p.npz")


def test_a_csv_with_a_byte_order_mark(tmp_path):
    (tmp_path / "p.csv").write_text("label,logit_0,logit_1\n1,0.5,2\n", encoding="utf-8-sig")
    assert Predictions.load(tmp_path / "p.csv").logits.tolist() == [[0.5, 2.0]]


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "best.safetensors").write_bytes(b"weights")
    some().save(tmp_path)
    assert len(Predictions.load(tmp_path)) == 57
    assert (tmp_path / "best.safetensors").read_bytes() == b"weights"


def test_names_are_never_guessed(tmp_path):
    np.savez(tmp_path / "p.npz", scores=np.zeros((2, 2)), labels=np.zeros(2, dtype=int))
    with pytest.raises(SurefootError, match="must hold labels, and logits or probabilities; it holds labels, scores"):
        Predictions.load(tmp_path / "p.npz")
    with pytest.raises(NotFound, match="No predictions at"):
        Predictions.load(tmp_path / "q.npz")


@pytest.mark.parametrize("kind", ["logit", "probability"])
def test_a_file_of_names_alone(tmp_path, kind):
    (tmp_path / "a.csv").write_text(f"label,{kind}_0,{kind}_1\n")
    assert len(Predictions.load(tmp_path / "a.csv")) == 0


@pytest.mark.parametrize(
    ("row", "right"),
    [
        ("0.995,0.001,0.001,0.001", True),  # 0.002 from 1: as far as three digits of four classes go
        ("0.995,0.001,0.001,0.000", False),
        ("0.997,0.001,0.0,0.0004", False),  # a fourth digit, which leaves no room for rounding
    ],
)
def test_probabilities_that_were_rounded(tmp_path, row, right):
    names = ",".join(f"probability_{number}" for number in range(4))
    (tmp_path / "a.csv").write_text(f"label,{names}\n0,{row}\n")
    if right:
        assert Predictions.load(tmp_path / "a.csv").confidences.tolist() == pytest.approx([0.995 / 0.998])
    else:
        with pytest.raises(SurefootError, match="sum to 1; 1 of 1 images do not"):
            Predictions.load(tmp_path / "a.csv")
