"""The command line on a user's own folder and a user's own module."""

import json

import numpy as np
import pytest
import yaml
from PIL import Image


@pytest.fixture
def folder(here):
    """Two classes, dark and bright, in pictures of different sizes."""
    random = np.random.default_rng(0)
    for split, count in (("train", 40), ("test", 16)):
        for name, level in (("dark", 60), ("light", 190)):
            place = here / "own" / split / name
            place.mkdir(parents=True)
            for number in range(count):
                size = (40 + number % 5, 50 - number % 7, 3)
                pixels = np.clip(random.normal(level, 30, size), 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(place / f"{number}.png")
    return here / "own"


def test_train_and_audit_a_folder(surefoot, here, folder):
    size = ["--image-size", "32x24"]
    trained = surefoot("train", "--data", folder, *size, "--epochs", 2, "--batch-size", 16, "--output", "r", "--quiet")
    assert trained.code == 0, trained.err
    recipe = yaml.safe_load((here / "r" / "recipe.yaml").read_text())
    assert recipe["data"]["image_size"] == [32, 24]
    assert recipe["augmentation"]["flip"] is True
    found = json.loads(surefoot("audit", "r", "--json", "--quiet", "--max-images", 10).out)
    assert found["subject"]["images"] == 10
    assert found["subject"]["classes"] == ["dark", "light"]
    assert found["calibration"]["accuracy"]["value"] > 0.8
    again = surefoot("train", "--recipe", "r/recipe.yaml", "--output", "again", "--quiet")
    assert again.code == 0, again.err
    assert (here / "again" / "model.safetensors").read_bytes() == (here / "r" / "model.safetensors").read_bytes()


def test_a_python_run_is_audited_on_the_same_pixels(surefoot, here, folder):
    """Images of one size above 64 px, trained without naming a model's settings: the command must not resize them anew."""
    import surefoot as sf

    for path in (here / "own").rglob("*.png"):
        if int(path.stem) < 20 and ("train" in path.parts or int(path.stem) < 6):
            Image.open(path).resize((80, 72)).save(path)
        else:
            path.unlink()
    data = sf.load_data(str(folder))
    assert data.image_size == (72, 80)
    model = sf.load_model("test_resnet", data=data, seed=0)
    sf.fit(model, sf.objectives.CrossEntropy(), data, epochs=1, batch_size=16, output="r", progress=False)
    expected = sf.audit(sf.load_run("r").predictor, data, depth="clean", progress=False).to_dict()
    found = json.loads(surefoot("audit", "r", "--depth", "clean", "--json", "--quiet").out)
    assert found["calibration"] == expected["calibration"]


def test_wrong_class_order_is_refused(surefoot, here, folder):
    options = ["--data", folder, "--image-size", "32", "--epochs", 2, "--batch-size", 16]
    assert surefoot("train", *options, "--output", "r", "--quiet").code == 0
    (here / "order.txt").write_text("light\ndark\n")
    said = surefoot("audit", "r", "--data", folder, "--class-map", "order.txt")
    assert said.code == 2
    assert "class 'light' is number 1 of the run and 0 of the data; give the run's order with --class-map" in said.err
    right = surefoot("audit", "r", "--data", folder)
    assert "! " not in right.out


def test_any_module(surefoot, here, folder, monkeypatch):
    monkeypatch.syspath_prepend(str(here))
    (here / "my_net.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        bright = 20 * x.mean((1, 2, 3))\n"
        "        return torch.stack([-bright, bright], 1)\n"
        "def build():\n    return Net().eval()\n"
        "def classes():\n    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 5))\n"
    )
    options = ["--data", folder, "--image-size", 32, "--json"]
    found = surefoot("audit", "--import", "my_net:build", "--mean", 0.5, "--std", 0.25, *options, "--quiet")
    assert found.code == 0, found.err
    assert json.loads(found.out)["calibration"]["accuracy"]["value"] == 1.0
    raw = json.loads(surefoot("audit", "--import", "my_net:build", *options, "--quiet").out)
    assert raw["calibration"]["accuracy"]["value"] == 0.5
    assert [finding["name"] for finding in raw["preflight"]] == ["chance", "normalisation"]
    assert "must end in one linear layer" in surefoot("audit", "--import", "my_net:build", *options).err
    wrong = surefoot("audit", "--import", "my_net:classes", *options)
    assert wrong.code == 2
    assert "5" in wrong.err
    assert wrong.err.count("\n") == 1


def test_skip_bad_images(surefoot, folder):
    (folder / "test" / "dark" / "0.png").write_bytes(b"")
    options = ["--data", folder, "--image-size", 32, "--epochs", 1, "--batch-size", 16, "--output"]
    refused = surefoot("train", *options, "a")
    assert refused.code == 2
    assert "0.png" in refused.err
    assert refused.err.count("\n") == 1
    assert surefoot("train", *options, "b", "--skip-bad-images", "--quiet").code == 0
