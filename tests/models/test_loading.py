import pickle

import pytest
import torch

import surefoot as sf
from surefoot.errors import NotFound, SurefootError, UnknownName
from surefoot.files import write_tensors


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_the_seed_decides_the_weights_and_leaves_the_callers_generator(digits):
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    a, b, c = (sf.load_model("small-resnet", data=digits, seed=seed) for seed in (0, 0, 1))
    assert same(a, b)
    assert not same(a, c)
    assert torch.random.get_rng_state().equal(before)


def test_without_a_seed_torchs_own_decides_and_is_recorded(digits):
    torch.manual_seed(3)
    a = sf.load_model("small-resnet", data=digits)
    torch.manual_seed(3)
    assert same(a, sf.load_model("small-resnet", data=digits))
    assert same(a, sf.load_model("small-resnet", data=digits, seed=a.source["seed"]))


def test_small_resnet(digits):
    model = sf.load_model("small-resnet", data=digits, seed=0)
    assert (model.num_classes, model.feature_dim) == (10, 128)
    assert sum(p.numel() for p in model.parameters()) < 400_000
    model(torch.rand(2, 3, 32, 32)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_any_timm_name(digits):
    model = sf.load_model("resnet18", data=digits, seed=0)
    assert (model.num_classes, model.feature_dim) == (10, 512)
    assert model.mean.flatten().tolist() == pytest.approx([0.485, 0.456, 0.406])
    assert sf.load_model("resnet10t", num_classes=4, channels=1, image_size=40, seed=0)(torch.rand(1, 1, 40, 40)).shape == (
        1,
        4,
    )


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
@pytest.mark.parametrize("part", ["whole", "module"])
def test_checkpoints(digits, tmp_path, suffix, part):
    model = sf.load_model("small-resnet", data=digits, seed=5)
    state = (model if part == "whole" else model.module).state_dict()
    path = tmp_path / f"w{suffix}"
    if suffix == ".pth":
        torch.save(state, path)
    else:
        write_tensors(path, state)
    assert same(model, sf.load_model("small-resnet", data=digits, seed=0, checkpoint=str(path)))


def test_a_checkpoint_of_another_net(digits, tmp_path):
    path = tmp_path / "w.safetensors"
    write_tensors(path, sf.load_model("small-resnet", num_classes=3, seed=0).state_dict())
    with pytest.raises(SurefootError, match=r"2 of its tensors differ \(module.fc.weight is \(3, 128\), not \(10, 128\)"):
        sf.load_model("small-resnet", data=digits, checkpoint=str(path))


class Bomb:
    def __reduce__(self):
        return (eval, ("open('boom', 'w')",))


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_malicious_pickle_is_refused_and_not_run(digits, here, protocol):
    (here / "w.pth").write_bytes(pickle.dumps({"x": Bomb()}, protocol))
    with pytest.raises(SurefootError, match="is refused: it is not plain tensors"):
        sf.load_model("small-resnet", data=digits, checkpoint="w.pth")
    assert not (here / "boom").exists()


def test_bad_names(digits, tmp_path):
    with pytest.raises(UnknownName, match=r"Unknown model 'resnet81'\. Did you mean 'resnet18'"):
        sf.load_model("resnet81", data=digits)
    with pytest.raises(NotFound, match="No checkpoint at"):
        sf.load_model("small-resnet", data=digits, checkpoint=str(tmp_path / "no.pth"))
    with pytest.raises(SurefootError, match="num_classes must be given"):
        sf.load_model("small-resnet")
    with pytest.raises(SurefootError, match="no pretrained weights"):
        sf.load_model("small-resnet", data=digits, pretrained=True)
