import logging
import pickle
from argparse import Namespace

import pytest
import torch
from checkpoint_formats import NAMES, noise, prefixed, write_format
from torch import nn

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.files import write_tensors
from surefoot.models.checkpoints import load_checkpoint, load_weights


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


@pytest.fixture(scope="module")
def trained():
    """A model that differs from a fresh one in its weights, its statistics and its normalisation."""
    model = sf.load_model("small-resnet", num_classes=10, mean=0.3, std=0.6, seed=5)
    model.train()(torch.rand(8, 3, 32, 32))
    return model.eval()


@pytest.mark.parametrize("part", ["classifier", "module"])
@pytest.mark.parametrize("name", NAMES)
def test_every_format(trained, tmp_path, name, part):
    state = (trained if part == "classifier" else trained.module).state_dict()
    path = write_format(name, state, tmp_path)
    given = {} if part == "classifier" else {"mean": 0.3, "std": 0.6}
    model = sf.load_model("small-resnet", num_classes=10, seed=0, checkpoint=path, **given).eval()
    images = torch.rand(4, 3, 32, 32)
    assert torch.equal(model(images), trained(images))
    if name != "no counters":
        assert same(model, trained)


def test_modules_compiled_inside(trained, tmp_path):
    state = {name.replace("module.", "module._orig_mod.", 1): value for name, value in trained.state_dict().items()}
    path = write_format("bare", state, tmp_path)
    assert same(trained, sf.load_model("small-resnet", num_classes=10, checkpoint=path))


def test_the_average_is_preferred_and_said(trained, tmp_path, caplog):
    caplog.set_level(logging.INFO, "surefoot")
    path = write_format("timm", trained.module.state_dict(), tmp_path)
    assert same(trained.module, sf.load_model("small-resnet", num_classes=10, checkpoint=path).module)
    expected = f"Checkpoint '{path}' holds state_dict_ema and state_dict; the averaged weights 'state_dict_ema' are used."
    assert caplog.messages == [expected]


def test_what_lies_beside_the_model_is_said(trained, tmp_path, caplog):
    caplog.set_level(logging.INFO, "surefoot")
    path = write_format("lightning", trained.module.state_dict(), tmp_path)
    sf.load_model("small-resnet", num_classes=10, checkpoint=path)
    assert caplog.messages == [f"Checkpoint '{path}': 1 tensors beside the model are left out, such as criterion.weight."]


class Nested(nn.Module):
    """A net whose own names begin like the prefixes."""

    def __init__(self):
        super().__init__()
        self.module = nn.Linear(12, 4)
        self.model = nn.Linear(4, 3)

    def forward(self, x):
        return self.model(self.module(x.flatten(1)).relu())


@pytest.mark.parametrize("prefix", ["", "module.", "model.", "_orig_mod.", "module.module."])
def test_nets_whose_names_begin_like_a_prefix(tmp_path, prefix):
    wanted, model = Nested(), sf.adapt(Nested(), 0, 1, 2)
    path = write_format("bare", prefixed(prefix, wanted.state_dict()), tmp_path)
    load_checkpoint(model, path)
    assert same(model.module, wanted)


def test_counters_that_are_missing_stay(trained, tmp_path):
    model = sf.load_model(
        "small-resnet", num_classes=10, checkpoint=write_format("no counters", trained.state_dict(), tmp_path)
    )
    assert model.module.norm.num_batches_tracked == 0
    assert trained.module.norm.num_batches_tracked == 1


def test_second_heads_and_thops_counters_are_left_out(trained, tmp_path):
    beside = {"AuxLogits.fc.weight": torch.ones(4, 768), "fc.total_ops": torch.ones(1), "conv.total_params": torch.ones(1)}
    path = write_format("bare", {**trained.module.state_dict(), **beside}, tmp_path)
    assert same(trained.module, sf.load_model("small-resnet", num_classes=10, checkpoint=path).module)


def test_a_checkpoint_of_other_classes(digits, tmp_path):
    path = tmp_path / "w.safetensors"
    for classes, hint in ((3, ""), (12, r"; a class map \(--class-map\) may name classes that the data lack")):
        write_tensors(path, sf.load_model("small-resnet", num_classes=classes, seed=0).state_dict())
        with pytest.raises(SurefootError, match=rf"does not fit the model: it is for {classes} classes, not 10{hint}\.$"):
            sf.load_model("small-resnet", data=digits, checkpoint=str(path))


@pytest.mark.parametrize(
    ("architecture", "asked", "size", "prefix"),
    [
        ("resnet34", "resnet18", 224, ""),
        ("resnet18", "resnet18", 32, "module."),
        ("vit_tiny_patch16_224", "small-resnet", 32, "model._orig_mod."),
        *(("mobilenetv3_small_100", "resnet18", 32, prefix) for prefix in ("", "module.", "model._orig_mod.")),
        ("torchvision/swin_t", "resnet18", 32, "module."),
        ("densenet121", "small-resnet", 32, ""),
    ],
)
def test_another_architecture_is_named(tmp_path, architecture, asked, size, prefix):
    from surefoot.models.builders import build_module

    torch.manual_seed(0)
    path = write_format("bare", prefixed(prefix, build_module(architecture, 10, 3).state_dict()), tmp_path)
    with pytest.raises(SurefootError) as caught:
        sf.load_model(asked, num_classes=10, image_size=size, checkpoint=path)
    assert "\n" not in str(caught.value)
    assert f"It is nearest to '{architecture}' with its ImageNet stem (" in str(caught.value)


def test_an_architecture_that_nobody_knows_is_not_guessed(tmp_path):
    path = write_format("bare", nn.Linear(3, 4).state_dict(), tmp_path)
    with pytest.raises(SurefootError, match=r"conv.weight is missing; .*weight is not in the model.*\)\.$"):
        sf.load_model("small-resnet", num_classes=10, checkpoint=path)


class Bomb:
    def __reduce__(self):
        return (eval, ("open('boom', 'w')",))


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("place", ["bare", "arguments"])
def test_a_malicious_pickle_is_refused_and_not_run(digits, here, protocol, place):
    content = {"x": Bomb()} if place == "bare" else {"args": Namespace(lr=Bomb()), "state_dict": {}}
    (here / "w.pth").write_bytes(pickle.dumps(content, protocol))
    torch.save(content, here / "zip.pth")
    for name in ("w.pth", "zip.pth"):
        with pytest.raises(SurefootError, match=r"is refused: it is not plain tensors [^\n]*$"):
            sf.load_model("small-resnet", data=digits, checkpoint=name)
    assert not (here / "boom").exists()


def test_a_whole_pickled_module_is_refused_with_advice(tmp_path):
    torch.save(Nested(), tmp_path / "w.pt")
    with pytest.raises(SurefootError, match=r"it would run \S*Nested; save the model's state_dict\(\) instead\)\.$"):
        load_checkpoint(sf.adapt(Nested(), 0, 1, 2), tmp_path / "w.pt")


@pytest.mark.parametrize("name", ["bare", "safetensors", "safetensors with another ending", "legacy pickle"])
@pytest.mark.parametrize("part", [0.0, 0.001, 0.5, 0.99])
def test_files_that_were_cut_short(trained, tmp_path, name, part):
    path = write_format(name, trained.state_dict(), tmp_path)
    with open(path, "rb+") as file:
        file.truncate(int(part * file.seek(0, 2)))
    with pytest.raises(SurefootError, match=r"^[Cc]heckpoint '[^\n]*$"):
        load_checkpoint(trained, path)


@pytest.mark.parametrize(
    "content",
    [b"epoch,loss\n1,0.5\n", b"<!DOCTYPE html>", b"{}", b"version https://git-lfs.github.com/spec/v1\n", b"\x00" * 64],
)
def test_files_that_are_something_else(trained, tmp_path, content):
    path = tmp_path / "w.pth"
    path.write_bytes(content)
    with pytest.raises(SurefootError, match=r"^Checkpoint '[^\n]*' is refused: it is not plain tensors \([^\n]+\)\.$"):
        load_checkpoint(trained, path)


@pytest.mark.parametrize("content", [{"state_dict": {}}, {}, [torch.ones(2)], torch.ones(2), {"epoch": 3}])
def test_pickles_without_weights(trained, tmp_path, content):
    torch.save(content, tmp_path / "w.pth")
    with pytest.raises(SurefootError, match="must hold a state dict"):
        load_checkpoint(trained, tmp_path / "w.pth")


def test_our_own_weights_must_fit_in_every_name(trained):
    state = trained.state_dict()
    load_weights(trained, state, "w")
    with pytest.raises(SurefootError, match=r"w does not fit the model: 1 of its tensors differ \(mean is missing\)"):
        load_weights(trained, {name: value for name, value in state.items() if name != "mean"}, "w")
    counter = "module.norm.num_batches_tracked"
    with pytest.raises(SurefootError, match=f"{counter} is missing"):
        load_weights(trained, {name: value for name, value in state.items() if name != counter}, "w")


def test_noise_is_noise(trained):
    state = trained.state_dict()
    assert not any(torch.equal(value, state[name]) for name, value in noise(state).items())
