"""Several predictions as one: models together, one model with dropout on, or one model on several views of a picture.

Probabilities are averaged, and given as logits whose softmax they are. What the members say apart tells doubt about the model
from doubt about the picture: mutual information is the entropy of the mean minus the mean entropy (Houlsby et al. 2011,
"Bayesian active learning for classification and preference learning"), the variation ratio the share of members that do not
vote with the majority, and disagreement the share of pairs of members with different answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import SurefootError, require
from ..types import Images, Logits

UNCERTAINTIES = ("mutual_information", "variation_ratio", "disagreement")


class Several(nn.Module):
    """log of the mean over members of p(x)."""

    @abstractmethod
    def member_logits(self, images: Images) -> Tensor:
        """Members x images x classes."""

    def forward(self, images: Images) -> Logits:
        logits = self.member_logits(images).log_softmax(2)
        return logits.logsumexp(0) - torch.log(torch.tensor(float(len(logits)), dtype=logits.dtype, device=logits.device))


class Ensemble(Several):
    """Models that take the same pictures and know the same classes (Lakshminarayanan, Pritzel and Blundell 2017).

    >>> import torch
    >>> import surefoot as sf
    >>> models = [sf.load_model("tiny-resnet", num_classes=4, image_size=32, seed=seed) for seed in (0, 1)]
    >>> together = sf.Ensemble(models)
    >>> images = torch.rand(3, 3, 32, 32)
    >>> together(images).shape, together.member_logits(images).shape
    (torch.Size([3, 4]), torch.Size([2, 3, 4]))
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        members = list(models)
        require(len(members) >= 2, "models", "at least 2 for an ensemble", len(members))
        wrong = next((each for each in members if not isinstance(each, nn.Module)), None)
        if wrong is not None:
            raise SurefootError(f"models must be modules, such as load_run(folder).predictor, got {type(wrong).__name__}.")
        for what in ("num_classes", "image_size", "channels"):
            known = {getattr(each, what) for each in members if hasattr(each, what)}
            if len(known) > 1:
                said = " and ".join(str(value) for value in sorted(known, key=str))
                raise SurefootError(f"The models of an ensemble differ in {what}: {said}.")
        self.members = nn.ModuleList(members)
        self.training = members[0].training

    def member_logits(self, images: Images) -> Tensor:
        return torch.stack([member(images) for member in self.members])


class MonteCarloDropout(Several):
    """One model with its dropout on, drawn anew for each member (Gal and Ghahramani 2016).

    Every call draws from torch's global generator.

    >>> import torch
    >>> import surefoot as sf
    >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(3 * 8 * 8, 5))
    >>> drawn = sf.MonteCarloDropout(sf.adapt(net, image_size=8), draws=4)
    >>> drawn.member_logits(torch.rand(2, 3, 8, 8)).shape
    torch.Size([4, 2, 5])
    """

    randomised = True

    def __init__(self, model: nn.Module, draws: int = 10) -> None:
        super().__init__()
        require(draws >= 2, "draws", "at least 2", draws)
        self.model, self.draws, self.training = model, draws, model.training
        if not any(layer.p > 0 for layer in self.dropouts()):
            raise SurefootError("The model has no dropout, so every draw would be the same.")

    def dropouts(self) -> list[nn.modules.dropout._DropoutNd]:
        return [layer for layer in self.model.modules() if isinstance(layer, nn.modules.dropout._DropoutNd)]

    def extra_repr(self) -> str:
        return f"draws={self.draws}"

    def member_logits(self, images: Images) -> Tensor:
        layers = self.dropouts()
        before = [layer.training for layer in layers]
        try:
            for layer in layers:
                layer.training = True
            return torch.stack([self.model(images) for _ in range(self.draws)])
        finally:
            for layer, mode in zip(layers, before, strict=True):
                layer.training = mode


class TestTimeAugmentation(Several):
    """One model on the picture, its mirror image, and both moved by `shift` of the side in four directions.

    >>> import torch
    >>> import surefoot as sf
    >>> model = sf.load_model("tiny-resnet", num_classes=4, image_size=32, seed=0)
    >>> sf.TestTimeAugmentation(model).member_logits(torch.rand(3, 3, 32, 32)).shape
    torch.Size([10, 3, 4])
    """

    __test__ = False  # to pytest it is none of its own

    def __init__(self, model: nn.Module, flip: bool = True, shift: float = 0.0625) -> None:
        super().__init__()
        require(0 <= shift < 0.5, "shift", "at least 0 and below 0.5", shift)
        require(flip or shift > 0, "flip", "on where nothing is shifted", flip)
        self.model, self.flip, self.shift, self.training = model, flip, shift, model.training

    def extra_repr(self) -> str:
        return f"flip={self.flip}, shift={self.shift}"

    def views(self, images: Images) -> list[Images]:
        sides = (images, images.flip(-1)) if self.flip else (images,)
        rows, columns = (round(self.shift * side) for side in images.shape[2:])
        moves = dict.fromkeys([(0, 0), (rows, 0), (-rows, 0), (0, columns), (0, -columns)])
        return [moved(side, *move) for side in sides for move in moves]

    def member_logits(self, images: Images) -> Tensor:
        return torch.stack([self.model(view) for view in self.views(images)])


def moved(images: Images, rows: int, columns: int) -> Images:
    """The pictures moved down and to the right, with their edges repeated."""
    if not (rows or columns):
        return images
    height, width = images.shape[2:]
    edge = max(abs(rows), abs(columns))
    wider = F.pad(images, (edge, edge, edge, edge), mode="replicate")
    return wider[:, :, edge - rows : edge - rows + height, edge - columns : edge - columns + width]


def uncertainties(member_logits: Tensor) -> dict[str, Tensor]:
    """The three of `UNCERTAINTIES` for each picture, from members x images x classes."""
    log_p = member_logits.double().log_softmax(2)
    count = len(log_p)
    mean = log_p.exp().mean(0)
    of_mean = torch.special.entr(mean).sum(1)
    votes = F.one_hot(log_p.argmax(2), log_p.shape[2]).sum(0).double()
    agreeing = (votes * (votes - 1)).sum(1) / (count * (count - 1))
    return {
        "mutual_information": (of_mean - torch.special.entr(log_p.exp()).sum(2).mean(0)).clamp_min(0),
        "variation_ratio": 1 - votes.amax(1) / count,
        "disagreement": 1 - agreeing,
    }
