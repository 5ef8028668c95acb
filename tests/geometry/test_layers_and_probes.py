"""The blocks of a model, their features and projections, and a linear probe."""

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.corruptions import add_gaussian_noise
from surefoot.errors import SurefootError, UnknownName
from surefoot.geometry import block_features, fit_probe, layer_projection, linear_probe, main_blocks, pca, probe_features, tsne
from surefoot.geometry.layers import pooled, pooled_square


@pytest.fixture(scope="module")
def model():
    return sf.load_model("small-resnet", num_classes=10, image_size=16, seed=0)


def test_blocks_by_hand(model, images):
    names = ["module.blocks.0", "module.blocks.3", "module.fc"]
    model.train()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    found = block_features(model, images, names, batch_size=4)
    assert model.training
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    model.eval()
    inside = model.module
    with torch.no_grad():
        x = torch.relu(inside.norm(inside.conv((images - model.mean) / model.std)))
        first = inside.blocks[0](x)
        torch.testing.assert_close(found[names[0]], first.mean((2, 3)))
        torch.testing.assert_close(found[names[1]], model.features(images))
        torch.testing.assert_close(found[names[2]], model(images))
    assert not inside.blocks[0]._forward_hooks


def test_tokens_and_own_pooling():
    class Tokens(nn.Module):
        def forward(self, x):
            return x.flatten(2).transpose(1, 2)

    net, images = nn.Sequential(Tokens(), nn.Identity()), torch.rand(3, 4, 2, 2)
    torch.testing.assert_close(block_features(net, images, ["0"])["0"], images.mean((2, 3)))
    first = block_features(net, images, ["0"], pool=lambda tokens: tokens[:, 0])["0"]
    assert torch.equal(first, images[:, :, 0, 0])


def test_compiled_models_are_seen_too(images):
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 5), nn.ReLU(), nn.Linear(5, 3))
    expected = net[:2](images).detach()
    net.compile(backend="eager")
    torch.testing.assert_close(block_features(net, images, ["1"])["1"], expected)
    torch.testing.assert_close(block_features(torch.compile(net, backend="eager"), images, ["1"])["1"], expected)


def test_unknown_and_unused_blocks(model, images):
    with pytest.raises(UnknownName, match="Unknown block 'module.blocks.33'. Did you mean 'module.blocks.3'"):
        block_features(model, images, ["module.blocks.33"])
    with pytest.raises(SurefootError, match="at least one name"):
        block_features(model, images, [])
    net = nn.Sequential(nn.Flatten())
    net.spare = nn.ModuleList([nn.ReLU()])
    net.forward = lambda x: x
    with pytest.raises(SurefootError, match="'spare.0' was not called"):
        block_features(net, images, ["spare.0"])
    with pytest.raises(SurefootError, match="gives tuple"):
        block_features(nn.Sequential(nn.LSTM(16, 2)), images[:, 0], ["0"])


def test_pca_keeps_a_plane():
    torch.manual_seed(0)
    plane = torch.randn(40, 2, dtype=torch.float64) * torch.tensor([3.0, 1.0])
    turn = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64))[0][:2]
    found = pca(plane @ turn + 7)
    torch.testing.assert_close(torch.cdist(found, found), torch.cdist(plane, plane), rtol=1e-6, atol=1e-6)
    assert found[:, 0].var() > found[:, 1].var()
    assert pca(torch.randn(5, 1)).shape == (5, 2)


def test_tsne_separates_clusters_and_is_seeded():
    torch.manual_seed(0)
    clusters = torch.cat([torch.randn(20, 5), torch.randn(20, 5) + 30])
    first, second = tsne(clusters), tsne(clusters)
    assert torch.equal(first, second)
    gap = (first[:20].mean(0) - first[20:].mean(0)).norm()
    assert gap > 2 * (first[:20] - first[:20].mean(0)).norm(dim=1).mean()


def test_projection_of_clean_and_noisy(model, images):
    labels, blocks = torch.arange(6), ["module.blocks.1", "module.blocks.3"]
    found = layer_projection(model, images, labels, blocks, 0.1, pca)
    assert found.clean.shape == found.noisy.shape == (2, 6, 2)
    noisy = add_gaussian_noise(images, 0.1)
    both = torch.cat([block_features(model, part, blocks[:1])[blocks[0]] for part in (images, noisy)])
    torch.testing.assert_close(found.noisy[0], pca(both)[6:])
    still = layer_projection(model, images, labels, blocks, 0.0, pca)
    torch.testing.assert_close(still.clean, still.noisy)


def test_probe_finds_the_stationary_point():
    """At the minimum, the gradient of mean cross-entropy is -strength * weight, and 0 for the bias."""
    torch.manual_seed(0)
    features, labels = torch.randn(60, 4, dtype=torch.float64), torch.randint(3, (60,))
    weight, bias = fit_probe(features, labels, 3, 0.1)
    residual = (features @ weight.T + bias).softmax(1) - nn.functional.one_hot(labels, 3)
    torch.testing.assert_close(residual.T @ features / 60, -0.1 * weight, rtol=0, atol=1e-5)
    torch.testing.assert_close(residual.mean(0), torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-5)


def test_probe_as_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    torch.manual_seed(0)
    features, labels = torch.randn(80, 5, dtype=torch.float64), torch.randint(4, (80,))
    weight, bias = fit_probe(features, labels, 4, 0.05)
    peer = LogisticRegression(C=1 / (0.05 * 80), tol=1e-8, max_iter=1000).fit(features.numpy(), labels.numpy())
    torch.testing.assert_close(weight, torch.as_tensor(peer.coef_), rtol=0, atol=1e-4)
    torch.testing.assert_close(bias - bias.mean(), torch.as_tensor(peer.intercept_ - peer.intercept_.mean()), rtol=0, atol=1e-4)


def test_test_labels_do_not_choose():
    torch.manual_seed(0)
    splits = [(torch.randn(50, 6), torch.randint(3, (50,))) for _ in range(3)]
    found = probe_features(*splits, 3)
    other = probe_features(splits[0], splits[1], (splits[2][0], (splits[2][1] + 1) % 3), 3)
    assert found.strength == other.strength
    assert torch.equal(found.weight, other.weight)
    best = found.values.max()
    assert found.strength == max(s for s, v in zip(found.strengths.tolist(), found.values.tolist(), strict=True) if v == best)
    features = (splits[2][0] - found.mean) / found.std
    right = (features @ found.weight.T + found.bias).argmax(1) == splits[2][1]
    assert found.test_accuracy == pytest.approx(right.double().mean().item())


def test_a_feature_that_does_not_vary_is_harmless():
    torch.manual_seed(0)
    features = torch.cat([torch.randn(40, 2), torch.full((40, 1), 5.0)], 1)
    labels = (features[:, 0] > 0).long()
    found = probe_features((features, labels), (features, labels), (features, labels), 2)
    assert found.test_accuracy > 0.95
    assert found.weight.isfinite().all()


def test_frozen_features_of_another_data_set(digits):
    model = sf.load_model("small-resnet", num_classes=7, image_size=digits.image_size, channels=digits.channels, seed=0)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    found = linear_probe(model, digits, strengths=(1e-3, 1e-1))
    assert found.weight.shape == (10, 128)
    assert found.test_accuracy > 0.6  # random features carry much of the digits
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


class Listed(nn.Module):
    """Blocks in a list, which is never called itself; the head inside a part; features that no module gives."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU()) for _ in range(5)])
        self.unused = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.top = nn.Sequential(nn.Dropout(), nn.Linear(4, 3))

    def forward(self, images):
        images = self.stem(images)
        for block in self.blocks:
            images = block(images)
        return self.top(images.mean((2, 3)))


@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        ("small-resnet", ["blocks.0", "blocks.1", "blocks.2", "blocks.3"]),
        ("resnet18", ["layer1", "layer2", "layer3", "layer4"]),
        ("mobilenetv3_small_050", ["blocks.0", "blocks.2", "blocks.4", "flatten"]),
        ("vit_tiny_patch16_224", ["blocks.0", "blocks.4", "blocks.8", "head_drop"]),
        ("torchvision/vgg11", ["features.0", "features.8", "features.13", "classifier.5"]),
    ],
)
def test_known_models(name, blocks):
    size = 224 if "vit" in name else 32
    model = sf.load_model(name, num_classes=10, image_size=size, pretrained=False)
    assert list(main_blocks(model, torch.rand(2, 3, size, size))) == [f"module.{block}" for block in blocks]


def test_blocks_in_a_list_and_how_many():
    model = Listed().train()
    images = torch.rand(2, 3, 8, 8)
    assert main_blocks(model, images, 9) == ("blocks.0", "blocks.1", "blocks.2", "blocks.3", "blocks.4")
    assert main_blocks(model, images, 3) == ("blocks.0", "blocks.2", "blocks.4")
    assert main_blocks(model, images, 1) == ("blocks.4",)
    assert model.training
    assert not any(layer._forward_hooks for layer in model.modules())


def test_a_model_that_is_its_last_layer_has_none():
    with pytest.raises(SurefootError, match="no blocks with weights before its last layer"):
        main_blocks(nn.Sequential(nn.Flatten(), nn.Linear(12, 3)), torch.rand(2, 3, 2, 2))


def test_maps_with_the_channels_last_are_told_by_their_shape():
    maps = torch.rand(2, 5, 5, 3)
    assert torch.equal(pooled_square(maps), maps.mean((1, 2)))
    first = maps.permute(0, 3, 1, 2)
    assert torch.equal(pooled_square(first), pooled(first))
    tokens = torch.rand(2, 7, 3)
    assert torch.equal(pooled_square(tokens), tokens.mean(1))
