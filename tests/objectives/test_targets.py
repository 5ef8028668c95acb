import pytest
import torch
from torch import nn
from torch.nn import functional as F

import surefoot as sf
from surefoot.data.dataset import TensorSplit
from surefoot.errors import SurefootError
from surefoot.objectives import CrossEntropy, Focal, LabelSmoothing, balanced_weights

LOGITS = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 3, 3, 0])


@pytest.mark.parametrize("objective", [CrossEntropy(), LabelSmoothing(0.2), Focal(2.0)])
def test_one_hot_soft_labels_are_hard_labels(objective):
    hard = objective(nn.Identity(), LOGITS, LABELS).total
    soft = objective(nn.Identity(), LOGITS, F.one_hot(LABELS, 4).double()).total
    assert torch.allclose(hard, soft)


def test_soft_labels_by_hand():
    q = torch.tensor([[0.5, 0.25, 0.25, 0.0]] * 6, dtype=torch.float64)
    log_p = LOGITS.log_softmax(1)
    assert torch.allclose(CrossEntropy()(nn.Identity(), LOGITS, q).total, -(q * log_p).sum(1).mean())
    focal = -(q * (1 - log_p.exp()) ** 2 * log_p).sum(1).mean()
    assert torch.allclose(Focal(2.0)(nn.Identity(), LOGITS, q).total, focal)


def test_mixed_precision_rounds_neither_shares_nor_losses():
    """Logits come in bfloat16; 0.9 would become 0.8984 in it, and a loss of 0.9107 0.9102."""
    logits = (4 * LOGITS).bfloat16()
    exact = logits.double().log_softmax(1)
    soft = 0.9 * F.one_hot(LABELS, 4) + 0.1 / 4
    with torch.autocast("cpu", torch.bfloat16):
        found = {
            "soft": CrossEntropy()(nn.Identity(), logits, soft).total,
            "focal": Focal(2.0)(nn.Identity(), logits, LABELS).total,
            "soft focal": Focal(2.0)(nn.Identity(), logits, soft).total,
        }
    own = exact[torch.arange(6), LABELS]
    expected = {
        "soft": -(soft * exact).sum(1).mean(),
        "focal": -((1 - own.exp()) ** 2 * own).mean(),
        "soft focal": -(soft * (1 - exact.exp()) ** 2 * exact).sum(1).mean(),
    }
    for name, value in expected.items():
        assert found[name].item() == pytest.approx(value.item(), rel=1e-5), name


def test_class_weights_by_hand():
    weights = torch.tensor([1.0, 2.0, 0.5, 3.0], dtype=torch.float64)
    losses = -LOGITS.log_softmax(1)[torch.arange(6), LABELS]
    expected = (weights[LABELS] * losses).mean()  # not divided by the weights: parts of a batch then add up
    assert torch.allclose(CrossEntropy(weights.tolist())(nn.Identity(), LOGITS, LABELS).total, expected)
    assert torch.allclose(LabelSmoothing(0.0, weights.tolist())(nn.Identity(), LOGITS, LABELS).total, expected)
    assert balanced_weights(torch.tensor([0, 0, 0, 1]), 2) == pytest.approx([4 / 6, 2.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CrossEntropy([1.0, -1.0]), "class_weights must be one number >= 0 for each class"),
        (
            lambda: CrossEntropy([1.0, 1.0])(nn.Identity(), LOGITS, LABELS),
            "class_weights must be one for each of 4 classes, got 2",
        ),
        (lambda: CrossEntropy()(nn.Identity(), LOGITS, LOGITS), "soft labels must be at least 0 and sum to 1"),
        (lambda: CrossEntropy()(nn.Identity(), LOGITS, LOGITS[:, :2]), "soft labels must be images x classes"),
    ],
)
def test_bad_targets(make, message):
    with pytest.raises(SurefootError, match=message):
        make()


def test_training_on_soft_labels(digits):
    """One-hot shares in the training split give the weights that hard labels give."""
    from dataclasses import replace

    train = digits.train
    soft = replace(digits, train=TensorSplit(train.images, F.one_hot(train.labels, 10).float(), train.indices))

    def weight(data):
        torch.manual_seed(0)
        model = sf.adapt(nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)), 0.5, 0.5, 32)
        return sf.fit(model, CrossEntropy(), data, epochs=1, learning_rate=0.01, progress=False).model.head.weight

    assert torch.allclose(weight(soft), weight(digits), atol=1e-6)


def test_weights_from_the_command_line(surefoot, here):
    option = "objective.class_weights=[1, 1, 1, 1, 1, 1, 1, 1, 1, 5]"
    assert surefoot("train", "--epochs", 1, "--set", option, "--output", "r", "--quiet").code == 0
    assert sf.load_run("r").objective.class_weights[-1] == 5.0
