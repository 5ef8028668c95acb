import re
from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from surefoot.errors import SurefootError
from surefoot.models.foreign import Normalised
from surefoot.models.preflight import USUAL, class_order, other_inputs, preflight

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)


class Around(nn.Module):
    """A model with something before it and something after it."""

    def __init__(self, model, before=lambda x: x, after=lambda x: x):
        super().__init__()
        self.model, self.before, self.after = model, before, after
        self.eval()

    def forward(self, images):
        return self.after(self.model(self.before(images)))


@pytest.fixture
def model(run):
    return deepcopy(run.model).eval()


@pytest.fixture(scope="module")
def sample(digits):
    batch = next(digits.test.batches(200))
    return batch.images, batch.labels


def findings(model, sample, **options):
    return {finding.name: finding for finding in preflight(model, *sample, **{"num_classes": 10} | options)}


def test_a_clean_model_gives_nothing(model, sample):
    assert preflight(model, *sample, num_classes=10, native_size=(32, 32)) == []


def test_the_model_and_the_random_state_are_left_alone(model, sample):
    dropout = nn.Dropout(0.5).train()
    mixed = nn.Sequential(model, dropout)
    mixed.eval()
    dropout.train()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    model.module.conv.weight.requires_grad_(False)
    state, random = deepcopy(mixed.state_dict()), torch.get_rng_state()
    images = sample[0].clone()
    preflight(mixed, *sample, num_classes=10)
    assert dropout.training
    assert not mixed.training
    assert all(torch.equal(value, state[name]) for name, value in mixed.state_dict().items())
    assert all(torch.equal(p.grad, torch.ones_like(p)) for p in model.parameters())
    assert not model.module.conv.weight.requires_grad
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.equal(sample[0], images)
    assert not any(layer._forward_hooks for layer in mixed.modules())


def test_probabilities(model, sample):
    found = findings(Around(model, after=lambda x: x.softmax(1)), sample)
    assert list(found) == ["probabilities"]
    assert "all 200 images" in found["probabilities"].message
    assert "--returns probabilities" in found["probabilities"].advice
    assert findings(Around(model, after=lambda x: x.log_softmax(1)), sample) == {}
    assert findings(Around(model, after=lambda x: x.sigmoid()), sample) == {}


def test_training_mode(model, sample):
    found = findings(model.train(), sample)
    assert list(found) == ["training-mode"]
    assert "9 layers" in found["training-mode"].message
    assert model.training
    model.eval().training = True  # as a wrapper around a net in evaluation mode
    assert findings(model, sample) == {}


@pytest.mark.parametrize("columns", [7, 12])
def test_class_count(model, sample, columns):
    def resize(logits):
        return torch.cat([logits, torch.full((len(logits), 2), -9.0)], 1)[:, :columns]

    found = findings(Around(model, after=resize), sample)
    assert list(found) == ["class-count"]
    assert f"{columns} logits, but the data have 10 classes" in found["class-count"].message


def test_classes_among_many_others_are_a_count_and_an_order(model, sample):
    found = findings(Around(model, after=lambda x: torch.cat([x - 50, x], 1)), sample)
    assert list(found) == ["class-count", "class-order"]
    assert "class 0 as 10, 1 as 11, 2 as 12 and so on" in found["class-order"].message


def test_pixel_range_ends_what_needs_pixels(model, sample):
    images, labels = sample
    wrong = Around(model, after=lambda x: x.roll(1, 1))
    found = findings(wrong, (255 * images, labels))
    assert list(found) == ["pixel-range"]
    assert "from 0 to 255" in found["pixel-range"].message
    assert "Divide" in found["pixel-range"].advice
    found = findings(wrong, ((images - MEAN) / STD, labels), native_size=(64, 64))
    assert list(found) == ["pixel-range", "image-size"]
    assert "adapt" in found["pixel-range"].advice


def test_image_size(model, sample):
    found = findings(model, sample, native_size=(224, 192))
    assert list(found) == ["image-size"]
    assert "32 x 32 px, but the model was made for 224 x 192 px" in found["image-size"].message


def test_constant(sample):
    linear = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10)).eval()
    nn.init.zeros_(linear[1].weight)
    found = findings(linear, sample)
    assert list(found) == ["constant"]
    assert "all 200 images" in found["constant"].message
    one = sample[0][:1].expand(200, -1, -1, -1)
    assert findings(linear, (one, sample[1])) == {}  # of equal images nothing else can be said


@pytest.mark.parametrize(
    ("before", "words", "advice"),
    [
        (
            lambda z: z * STD + MEAN,
            "when they are normalised with ImageNet's mean",
            "--mean 0.485,0.456,0.406 --std 0.229,0.224,0.225",
        ),
        (lambda z: z * 0.5 + 0.5, "when they are normalised with mean 0.5 and std 0.5", "--mean 0.5 --std 0.5"),
        (lambda x: (x - MEAN) / STD, "with ImageNet's mean and std .* is undone", "twice"),
        (lambda x: (x - 0.5) / 0.5, "with mean 0.5 and std 0.5 is undone", "twice"),
        (lambda x: x / 255, "multiplied by 255", "0 to 255"),
    ],
)
def test_normalisation(model, sample, before, words, advice):
    found = findings(Around(model, before), sample)
    assert list(found) == ["normalisation"]
    assert re.search(words, found["normalisation"].message)
    assert re.match(r"Accuracy on 200 images is [\d.]+ % with pixels and [5-9][\d.]+ %", found["normalisation"].message)
    assert advice in found["normalisation"].advice


@pytest.mark.parametrize("own", [(0.0, 1.0), (0.5, 0.5), (MEAN, STD)])
def test_other_inputs_replace_the_normalisation(own):
    """What the module sees of the changed pixels is what the other normalisation would give it."""
    pixels = torch.rand(2, 3, 4, 4)
    by_name = {other.how: other for other in other_inputs(3, *(torch.as_tensor(each) for each in own))}
    for name, (mean, std) in USUAL.items():
        wanted = (pixels - torch.tensor(mean).view(1, -1, 1, 1)) / torch.tensor(std).view(1, -1, 1, 1)
        other = by_name.get(f"when they are normalised with {name}")
        if other is None:  # the model's own
            assert torch.allclose((pixels - own[0]) / own[1], wanted, atol=1e-5)
        else:
            assert torch.allclose((pixels * other.scale + other.shift - own[0]) / own[1], wanted, atol=1e-4)
    assert torch.allclose((pixels * by_name["when they are multiplied by 255"].scale) / own[1], 255 * pixels, atol=1e-3)


@pytest.mark.parametrize(("wrong", "flag"), [((0.5, 0.5), "0.485,0.456,0.406"), ((0.0, 1.0), "0.485,0.456,0.406")])
def test_a_wrong_normalisation_is_found_whatever_it_is(model, sample, wrong, flag):
    """A net that was trained on ImageNet's statistics, wrapped with others."""
    inner = Around(model, lambda z: z * STD + MEAN)
    found = findings(Normalised(inner, *wrong, channels=3).eval(), sample)
    assert list(found) == ["normalisation"]
    assert f"--mean {flag}" in found["normalisation"].advice
    assert found["normalisation"].severity == "fatal"
    assert findings(Normalised(inner, MEAN.flatten().tolist(), STD.flatten().tolist(), channels=3).eval(), sample) == {}


def test_class_order(model, sample):
    order = torch.tensor([3, 0, 1, 2, 9, 4, 5, 6, 7, 8])
    found = findings(Around(model, after=lambda x: x[:, order]), sample)
    assert list(found) == ["class-order"]
    assert re.match(r"Accuracy is [\d.]+ % and would be [5-9][\d.]+ %", found["class-order"].message)
    assert "class 0 as 1, 1 as 2, 2 as 3 and so on" in found["class-order"].message
    assert found["class-order"].severity == "fatal"
    given = re.search(r"\(--classes ([\d,]+)\)", found["class-order"].advice)[1]
    back = [int(number) for number in given.split(",")]
    assert findings(Around(model, after=lambda x: x[:, order][:, back]), sample) == {}


def test_two_classes_that_were_exchanged(model, sample):
    swapped = torch.tensor([1, 0, *range(2, 10)])  # most answers are right still
    found = findings(Around(model, after=lambda x: x[:, swapped]), sample)["class-order"]
    assert found.severity == "warning"
    assert found.message.endswith("the model predicts class 0 as 1, 1 as 0.")
    assert "(--classes 1,0,2,3,4,5,6,7,8,9)" in found.advice


def test_alike_classes_are_no_exchange():
    """Of two classes more are taken for the other than for themselves: that is a weak model, not another order."""
    labels = torch.arange(800) % 4
    answers = torch.where((labels < 2) & (torch.arange(800) // 4 % 100 < 62), 1 - labels, labels)
    logits = F.one_hot(answers, 4).float() * 5
    assert class_order(logits, labels, 4) is None
    exchanged = torch.where((labels < 2) & (torch.arange(800) // 4 % 100 < 90), 1 - labels, labels)
    found = class_order(F.one_hot(exchanged, 4).float() * 5, labels, 4)
    assert "(--classes 1,0,2,3)" in found.advice
    assert "(--classes)" in class_order(F.one_hot(exchanged, 4).float() * 5, labels, 4, mapped=True).advice


def test_class_order_of_sorted_labels_and_of_two_classes(model, sample):
    images, labels = sample
    order = labels.argsort()
    turned = Around(model, after=lambda x: x.roll(1, 1))
    assert list(findings(turned, (images[order], labels[order]))) == ["class-order"]
    few = labels < 2
    two = Around(model, after=lambda x: x[:, :2].flip(1))
    assert list(findings(two, (images[few], labels[few]), num_classes=2)) == ["class-order"]


@pytest.mark.parametrize("seed", range(6))
def test_random_weights_and_random_answers_are_no_other_order(sample, seed):
    draw = torch.Generator().manual_seed(seed)
    linear = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10)).eval()
    nn.init.normal_(linear[1].weight, std=0.02, generator=draw)
    nn.init.zeros_(linear[1].bias)
    assert findings(linear, sample) == {}
    answers = torch.randn(200, 10, generator=draw)
    assert findings(Around(nn.Identity(), after=lambda x: answers[: len(x)]), sample) == {}


def net(*layers):
    """Convolutions, then a head that takes any size."""
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LazyLinear(10)).eval()


def halvings(count):
    return [nn.Conv2d(3, 3, 3, 2, 1) for _ in range(count)]


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([nn.Conv2d(3, 4, 7, 2, 3)], "the first convolution is 7 x 7 with stride 2"),
        ([nn.Conv2d(3, 4, 16, 16)], "patches of 16 px, more than a quarter"),
        (halvings(5), "the last feature map is 1 x 1"),
        ([nn.MaxPool2d(32), nn.Conv2d(3, 4, 3, 1, 1)], "the last feature map is 1 x 1"),
        ([nn.Conv2d(3, 3, 7, 2, 3), *halvings(4)], "stride 2 and the last feature map is 1 x 1"),
    ],
)
def test_imagenet_stem(sample, layers, words):
    found = findings(net(*layers), sample)
    assert "imagenet-stem" in found
    assert words in found["imagenet-stem"].message
    assert "32 x 32 px" in found["imagenet-stem"].message


@pytest.mark.parametrize(
    "layers",
    [
        [nn.Conv2d(3, 4, 8, 8)],  # a quarter of the side
        [nn.Conv2d(3, 4, 7, 1, 3)],
        halvings(4),
        [nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 4, 1)],  # as in squeeze and excitation
        [nn.MaxPool2d(4), nn.Conv2d(3, 4, 8)],  # a fully connected layer by another name
    ],
)
def test_stems_that_are_all_right(sample, layers):
    assert "imagenet-stem" not in findings(net(*layers), sample)


def test_a_stem_for_large_images_is_right_for_large_images(sample):
    images, labels = sample
    large = nn.functional.interpolate(images[:20], size=(96, 96))
    assert "imagenet-stem" not in findings(net(nn.Conv2d(3, 4, 7, 2, 3)), (large, labels[:20]))


@pytest.mark.parametrize(("name", "expected"), [("resnet18", True), ("mobilenetv3_small_050", True), ("resnet18", False)])
def test_stems_of_timm(sample, name, expected):
    import timm

    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=10).eval()
    images, labels = sample
    size = (32, 32) if expected else (128, 128)
    few = nn.functional.interpolate(images[:8], size=size), labels[:8]
    assert ("imagenet-stem" in findings(model, few)) == expected


def test_what_cannot_be_judged_is_one_line(model, sample):
    images, labels = sample
    with pytest.raises(SurefootError, match=r"cannot be run on images of 1 x 32 x 32 \("):
        preflight(nn.Conv2d(3, 4, 3).eval(), images[:, :1], labels, num_classes=10)
    with pytest.raises(SurefootError, match="output must be images x classes, got"):
        preflight(nn.Conv2d(3, 4, 3).eval(), images, labels, num_classes=10)
    with pytest.raises(SurefootError, match="images must be floating point"):
        preflight(model, images.to(torch.uint8), labels, num_classes=10)
    with pytest.raises(SurefootError, match="images must be a batch of at least one"):
        preflight(model, images[:0], labels[:0], num_classes=10)
    with pytest.raises(SurefootError, match="labels must be in 0 to 4"):
        preflight(model, images, labels, num_classes=5)


def test_one_image(model, sample):
    assert preflight(model, sample[0][:1], sample[1][:1], num_classes=10) == []
