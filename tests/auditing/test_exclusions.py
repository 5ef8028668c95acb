"""What a model cannot give is left out with a line; what the user does not want is left out too; pages have no holes."""

import re

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import surefoot as sf
from surefoot.auditing import batch_sizes
from surefoot.auditing.batch_sizes import bytes_of_one, chosen_batch_size
from surefoot.auditing.depths import Depth, geometry
from surefoot.auditing.exclusions import FEATURES, GRADIENT, find_lacks
from surefoot.errors import SurefootError, UnknownName
from surefoot.measurements.registry import MEASUREMENTS
from surefoot.types import Batch

SHORT = Depth(
    "quick",
    {
        "corruptions": {"names": ("contrast", "gaussian_noise"), "severities": (1, 3)},
        "attacks": {"names": ("fgsm", "noise")},
        **geometry(10, 2),
    },
)


@pytest.fixture(scope="module")
def pictures():
    draws = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (40, 3, 8, 8), generator=draws, dtype=torch.uint8), torch.arange(40) % 3


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 8), nn.ReLU(), nn.Linear(8, 3)).eval()


class Session(nn.Module):
    """Somebody's session in a module: scores without a gradient."""

    def __init__(self, net):
        super().__init__()
        self.net = [net]

    def forward(self, images):
        return torch.from_numpy(self.net[0](images.detach()).detach().numpy())


def test_names_are_those_of_measurements():
    assert {*GRADIENT, *FEATURES} <= set(MEASUREMENTS.names)


def test_a_model_without_gradient_is_audited_all_the_same(net, pictures, tmp_path):
    """It ended in an exception after 72 seconds, because no gradient reached the pictures."""
    audit = sf.audit(Session(net), pictures, depth=SHORT, output=tmp_path, progress=False)
    lines = audit.subject["model"]
    assert lines[0] == "Left out, since no gradient reaches the pixels: displacement, curvature-noise, plane."
    assert lines[1] == "Left out, since it does not end in one linear layer: features, centres, cone, bias, collapse."
    assert set(audit.attacks) == {"noise", "square", "rays"}
    assert {"sensitivity", "radius"} <= set(audit.geometry.measured)
    plain = sf.audit(sf.adapt(net, 0, 1, 8), pictures, depth=SHORT, progress=False)
    for name in ("accuracy", "ece", "nll"):
        assert float(getattr(audit.calibration, name)) == pytest.approx(float(getattr(plain.calibration, name)), abs=1e-6)
    assert float(audit.corruptions.mean_accuracy) == pytest.approx(float(plain.corruptions.mean_accuracy), abs=1e-6)
    assert "model" not in plain.subject
    page = sf.write_page(tmp_path / "page.html", [tmp_path]).read_text()
    assert "no gradient reaches the pixels" in page
    check_no_holes(page)


def check_no_holes(page):
    """Every section of the page has something in it, and every figure its points."""
    body = page.partition("<script")[0]
    for name, content in re.findall(r'<section id="([\w-]+)".*?</h2>(.*?)</section>', body, re.DOTALL):
        assert re.sub(r"<[^>]+>|\s", "", content), name
    for figure in re.findall(r'data-figure="([\w-]+)"', body):
        assert f'"{figure}"' in page, figure


def test_probabilities_alone_have_temperatures_on_their_logarithms(net, pictures):
    given = sf.adapt(lambda x: net(x).softmax(1), num_classes=3, returns="probabilities")
    one, two = (sf.audit(model, pictures, only=["sensitivity"], progress=False) for model in (given, sf.adapt(net, 0, 1, 8)))
    assert one.temperature.temperatures == pytest.approx(two.temperature.temperatures, rel=1e-3)
    assert float(one.temperature.calibration.ece) == pytest.approx(float(two.temperature.calibration.ece), abs=1e-4)


@pytest.mark.parametrize(
    ("choice", "parts"),
    [
        ({"skip": ["attacks", "geometry"]}, {"corruptions"}),
        ({"only": ["corruptions"]}, {"corruptions"}),
        ({"only": ["attacks"]}, {"attacks"}),
        ({"skip": ["corruptions", "attacks", "sensitivity"]}, {"geometry"}),
    ],
)
def test_skip_and_only(net, pictures, tmp_path, choice, parts):
    audit = sf.audit(sf.adapt(net, 0, 1, 8), pictures, depth=SHORT, output=tmp_path, progress=False, **choice)
    assert (audit.corruptions is not None) == ("corruptions" in parts)
    assert bool(audit.attacks) == ("attacks" in parts)
    assert bool(audit.geometry.measured) == ("geometry" in parts)
    assert "sensitivity" not in audit.geometry.measured
    check_no_holes(sf.write_page(tmp_path / "page.html", [tmp_path]).read_text())


@pytest.mark.parametrize("returns", ["logits", "probabilities"])
def test_what_the_model_is_given_is_on_the_page(net, pictures, tmp_path, returns):
    """Range, order of channels, normalisation, what is returned and the order of classes, each with the flag that sets it."""
    given = nn.Sequential(net, nn.Softmax(1)) if returns == "probabilities" else net
    model = sf.adapt(given, (0.4, 0.5, 0.6), 0.25, 8, returns=returns)
    audit = sf.audit(model, pictures, depth="clean", output=tmp_path, progress=False)
    line = audit.subject["input"]
    assert line == (
        "pixels from 0 to 1, red, green, blue, 8 x 8 px (--image-size), normalised inside the model by mean 0.4, 0.5, 0.6 and "
        f"std 0.25 (--mean, --std); it returns {returns} (--returns), of which 0 is 0, 1 is 1, 2 is 2 (--classes, --class-map)"
    )
    assert f"{line}." in sf.write_page(tmp_path / "page.html", [tmp_path]).read_text()


def test_wrong_choices(net, pictures):
    model = sf.adapt(net, 0, 1, 8)
    with pytest.raises(UnknownName, match="Did you mean 'attacks'"):
        sf.audit(model, pictures, skip=["attaks"])
    with pytest.raises(SurefootError, match="exclude each other"):
        sf.audit(model, pictures, skip=["attacks"], only=["corruptions"])
    with pytest.raises(SurefootError, match="must be a list of names, got 'attacks'"):
        sf.audit(model, pictures, skip="attacks")
    with pytest.raises(SurefootError, match=r"got function: sf.adapt\(model, returns="):
        sf.audit(lambda x: x, pictures)
    with pytest.raises(SurefootError, match=r"got str: sf.load_model"):
        sf.audit("resnet18", pictures)


def test_an_audit_takes_a_loader(net, pictures):
    """`AttributeError: 'DataLoader' object has no attribute 'split'` it was."""
    loader = DataLoader(TensorDataset(*pictures), batch_size=16)
    audit = sf.audit(sf.adapt(net, 0, 1, 8), loader, only=["sensitivity"], progress=False)
    wanted = (net(pictures[0] / 255).argmax(1) == pictures[1]).double().mean()
    assert float(audit.calibration.accuracy) == pytest.approx(float(wanted))


def test_lacks(net, pictures):
    batch = Batch(pictures[0][:4] / 255, pictures[1][:4], torch.arange(4))
    assert find_lacks(sf.adapt(net, 0, 1, 8), batch) == {}
    ended = nn.Sequential(net, nn.Softmax(1))
    assert find_lacks(ended, batch) == {"features": "it does not end in one linear layer"}


def test_the_batch_follows_from_the_model_and_the_memory(net, monkeypatch):
    """A layer of known size: 2 x its outputs, forward and backward, and twelve copies of the picture."""
    wide = nn.Sequential(nn.Conv2d(3, 100, 1), nn.ReLU(), nn.Flatten(), nn.Linear(100 * 16 * 16, 3))
    images = torch.rand(4, 3, 16, 16)
    outputs = 4 * (3 * 100 * 16 * 16 + 3)
    assert bytes_of_one(wide, images) == 2 * outputs + 12 * images[0].nbytes
    batch = Batch(images, torch.zeros(4, dtype=torch.long), torch.arange(4))
    assert chosen_batch_size(wide, batch, None, None) == (256, [])
    assert chosen_batch_size(wide, batch, None, 7) == (7, [])
    monkeypatch.setattr(batch_sizes, "available", lambda _: 4 * 5 * bytes_of_one(wide, images))
    size, (line,) = chosen_batch_size(wide, batch, None, None)
    assert size == 4
    assert line.startswith("4 pictures at a time: one takes about 1 MiB in the model")
