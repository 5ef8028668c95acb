"""Further test sets are conditions of the same table: their rows against the model itself, the promises, the gate, pairs."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import surefoot as sf
from surefoot.auditing.comparison import compare
from surefoot.auditing.rules import judge, parse_rule
from surefoot.auditing.table import conditions_in, read_table
from surefoot.errors import SurefootError
from surefoot.files import read_json


def write(folder, images, labels, names, noise=0):
    for image, label, name in zip(images, labels, names, strict=True):
        place = folder / "test" / f"class{int(label)}"
        place.mkdir(parents=True, exist_ok=True)
        levels = image.permute(1, 2, 0).numpy().astype(int) + noise
        Image.fromarray(levels.clip(0, 255).astype(np.uint8)).save(place / f"{name}.png")


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 8), nn.ReLU(), nn.Linear(8, 3)).eval()


@pytest.fixture(scope="module")
def audited(net, tmp_path_factory):
    """40 pictures; the same ones lighter, in part, with others beside them; and more of two classes alone, without partners."""
    folder = tmp_path_factory.mktemp("shifts")
    images = torch.randint(0, 256, (130, 3, 8, 8), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    labels = torch.arange(130) % 3
    write(folder / "here", images[:40], labels[:40], range(40))
    write(folder / "lighter", images[:50], labels[:50], range(50), noise=60)
    few = labels[50:] != 0
    write(folder / "others", images[50:][few], labels[50:][few], range(1000, 1000 + int(few.sum())))
    shifts = [str(folder / "lighter"), str(folder / "others")]
    model, data = sf.adapt(net, 0, 1, 8), sf.load_data(folder / "here")
    for name, bias in (("audit", 0.0), ("worse", 2.0)):
        with torch.no_grad():
            net[3].bias[0] += bias
        audit = sf.audit(model, data, depth="clean", shifts=shifts, output=folder / name, batch_size=16, progress=False)
        with torch.no_grad():
            net[3].bias[0] -= bias
        if name == "audit":
            first = audit
    return first, folder


def test_rows_are_what_the_model_says(audited, net):
    audit, folder = audited
    assert conditions_in(folder / "audit") == ["clean", "shift-lighter", "shift-others"]
    assert len(audit.table()) == 40 + 50 + 53
    for name in ("lighter", "others"):
        rows, pictures = audit.table(f"shift-{name}"), sf.load_data(folder / name)
        logits = net(pictures.test.images / 255)
        labels = torch.tensor([["class0", "class1", "class2"].index(pictures.class_names[at]) for at in pictures.test.labels])
        rows = rows.set_index("index").loc[pictures.test.indices.numpy()]
        np.testing.assert_array_equal(rows["label"], labels)
        np.testing.assert_array_equal(rows["predicted"], logits.argmax(1))
        np.testing.assert_allclose(rows["confidence"], logits.softmax(1).amax(1).detach(), atol=1e-6)
        np.testing.assert_allclose(
            rows["nll"], nn.functional.cross_entropy(logits, labels, reduction="none").detach(), atol=1e-5
        )
        scaled = (logits.double() / torch.tensor(rows["temperature"].to_numpy().copy())[:, None]).softmax(1).amax(1)
        np.testing.assert_allclose(rows["scaled_confidence"], scaled.detach(), atol=1e-6)
        assert set(rows["temperature"]) == set(audit.temperature.temperatures)  # both folds are used


def test_summaries_are_of_the_rows(audited):
    audit, _ = audited
    for name, values in audit.measurements["shift"].items():
        rows = audit.table(f"shift-{name}")
        assert float(values["accuracy"]) == pytest.approx(rows["correct"].mean())
        assert float(values["nll"]) == pytest.approx(rows["nll"].mean(), abs=1e-6)
        assert values["accuracy"].low < float(values["accuracy"]) < values["accuracy"].high
        promise = audit.promises["conditions"][f"shift-{name}"]
        assert float(promise["coverage"]) == pytest.approx(rows["covered"].mean())
        assert float(promise["set_size"]) == pytest.approx(rows["set_size"].mean())
        assert float(promise["answered"]) == pytest.approx(rows["answered"].mean())
    notes = " ".join(audit.geometry.notes)
    assert "lighter has 50 images; 40 images of it pair with the data's by name" in notes
    assert "others has 53 images; no image of it pairs" in notes


def test_pairs_have_one_name_and_one_fold(audited):
    """A picture and its partner have the same `image` and what was fitted without it; a stranger is called by its own set."""
    audit, _ = audited
    clean, lighter = (audit.table(name).set_index("image") for name in ("clean", "shift-lighter"))
    both = lighter.index.intersection(clean.index)
    assert len(both) == 40
    np.testing.assert_array_equal(lighter.loc[both, "temperature"], clean.loc[both, "temperature"])
    change = lighter.loc[both, "correct"].astype(float) - clean.loc[both, "correct"].astype(float)
    found = audit.measurements["shift"]["lighter"]["accuracy_change"]
    assert float(found) == pytest.approx(change.mean())
    assert set(lighter.index.difference(clean.index).str.split("/").str[0]) == {"lighter"}
    assert "accuracy_change" not in audit.measurements["shift"]["others"]


def test_gates_and_comparisons(audited):
    _, folder = audited
    plain, rows = read_json("audit", folder / "audit" / "audit.json"), read_table(folder / "audit", "shift-others")
    rules = ["coverage@shift-others > 0", "accuracy@shift-others >= 0", "shift.others.ece < 1"]
    verdicts = judge([parse_rule(rule) for rule in rules], plain)
    assert [verdict.name for verdict in verdicts[1:]] == ["measurements.shift.others.accuracy", "measurements.shift.others.ece"]
    assert verdicts[0].found.value == pytest.approx(rows["covered"].mean())
    assert verdicts[1].found.value == pytest.approx(rows["correct"].mean())
    found = {item.name: item for item in compare([folder / "audit", folder / "worse"]).differences}
    accuracies = [read_table(folder / name, "shift-others")["correct"].mean() for name in ("audit", "worse")]
    difference = found["measurements.shift.others.accuracy"]
    assert difference.paired
    assert difference.value == pytest.approx(accuracies[1] - accuracies[0])
    page = sf.write_page(folder / "page.html", [folder / "audit"]).read_text()
    assert "shift-others" in page


def test_wrong_shifts(audited, net, tmp_path):
    _, folder = audited
    model, data = sf.adapt(net, 0, 1, 8), sf.load_data(folder / "here")
    odd = torch.zeros(5, 3, 8, 8, dtype=torch.uint8), torch.arange(5)
    with pytest.raises(SurefootError, match="has a class that the data do not have"):
        sf.audit(model, data, shifts={"odd": odd}, progress=False)
    with pytest.raises(SurefootError, match="Two shifts have the same name"):
        sf.audit(model, data, shifts=[str(folder / "others"), str(folder / "others")], progress=False)
