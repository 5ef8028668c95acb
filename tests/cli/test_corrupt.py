import json

import numpy as np
from PIL import Image

from surefoot.corruptions import CBAR, CBAR_CIFAR, NAMES, PAPERS4


def test_writes_copies_and_goes_on(surefoot, here):
    command = ("corrupt", "--data", "digits", "--max-images", 20, "--output", "out", "--quiet")
    found = surefoot(*command, "--names", "contrast")
    assert (found.code, found.out) == (0, "")
    written = (here / "out" / "contrast.npy").stat().st_mtime_ns
    assert surefoot(*command, "--names", "contrast,occlusion+gaussian_noise").code == 0
    assert (here / "out" / "contrast.npy").stat().st_mtime_ns == written
    count = len(np.load(here / "out" / "labels.npy"))
    assert np.load(here / "out" / "occlusion+gaussian_noise.npy").shape == (5 * count, 32, 32, 3)
    refused = surefoot(*command, "--names", "contrast", "--seed", 1)
    assert refused.code == 2
    assert refused.err == "surefoot: 'out' holds other copies: seed is 0 there and 1 here.\n"


def test_progress_and_the_folder_are_shown(surefoot, here, terminal):
    found = surefoot(
        "corrupt", "--data", "digits", "--max-images", 20, "--output", "out", "--names", "fog", "--layout", "folders"
    )
    assert found.code == 0
    assert found.out == "out\n"
    assert "fog" in found.err
    assert len(list((here / "out" / "fog" / "5").rglob("*.png"))) == len(list((here / "out" / "fog" / "1").rglob("*.png"))) > 0


def test_preview_shows_every_corruption(surefoot, here):
    found = surefoot("corrupt", "--data", "digits", "--preview", "sheet.png", "--image", 3)
    assert found.code == 0, found.err
    sheet = np.asarray(Image.open(here / "sheet.png").convert("RGB")).astype(int)
    assert sheet.shape == (20 + len(NAMES) * 68, 132 + 6 * 68, 3)
    tiles = sheet[20:, 132:].reshape(len(NAMES), 68, 6, 68, 3)[:, :64, :, :64].transpose(0, 2, 1, 3, 4)
    assert (tiles[:, 0] == tiles[0, 0]).all()
    changed = np.abs(tiles[:, 1:] - tiles[:, :1]).mean((2, 3, 4))
    assert (changed.max(1) > 0.2).all()


def test_preview_takes_the_constants_that_are_named(surefoot, here):
    sheets = []
    for scale in ("auto", "32", "224"):
        command = ("corrupt", "--data", "digits", "--preview", f"{scale}.png", "--names", "gaussian_noise", "--scale", scale)
        assert surefoot(*command).code == 0
        sheets.append(np.asarray(Image.open(here / f"{scale}.png")))
    assert (sheets[0] == sheets[1]).all()
    assert (sheets[0] != sheets[2]).any()


def test_groups_by_their_names(surefoot, here):
    done = surefoot("corrupt", "--data", "digits", "--max-images", 2, "--output", "out", "--names", "papers4", "--quiet")
    assert done.code == 0, done.err
    assert {path.stem for path in (here / "out").glob("*.npy")} == {*PAPERS4, "labels"}


def test_the_second_set_by_its_name(surefoot, here):
    done = surefoot("corrupt", "--data", "digits", "--max-images", 2, "--output", "out", "--names", "c-bar", "--quiet")
    assert done.code == 0, done.err
    assert {path.stem for path in (here / "out").glob("*.npy")} == {*CBAR, "labels"}
    listed = surefoot("list", "corruptions", "--json")
    assert {*CBAR, *CBAR_CIFAR} <= {row["name"] for row in json.loads(listed.out)["corruptions"]}


def test_errors_are_one_line(surefoot, here):
    for arguments, message in {
        (): "Give --output for the copies, or --preview for a sheet.",
        ("--output", "out", "--names", "fogg"): "Unknown corruption 'fogg'. Did you mean 'fog'?",
        ("--output", "out", "--scale", "33"): "Unknown scale '33'.",
        ("--preview", "x.png", "--image", 99999): "--image must be below",
        ("--output", "out", "--frost", "nothing"): "No folder of frost photographs at 'nothing'.",
        ("--output", "out", "--image", 3): "--image is for --preview.",
        ("--preview", "x.png", "--layout", "folders"): "--layout is for --output.",
        ("--output", "out", "--split", "train", "--max-images", 5): "--max-images is for the test split",
    }.items():
        found = surefoot("corrupt", "--data", "digits", *arguments)
        assert found.code == 2
        assert message in found.err
        assert found.err.count("\n") == 1
