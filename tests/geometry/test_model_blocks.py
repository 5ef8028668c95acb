"""The blocks of a model by its own structure: stages, transformer blocks, plain layers."""

import pytest
import torch
from torch import nn

import surefoot as sf
from surefoot.errors import SurefootError
from surefoot.geometry import main_blocks
from surefoot.geometry.layers import pooled, pooled_square


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
