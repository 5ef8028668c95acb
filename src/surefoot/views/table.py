"""Views by name, and as a recipe writes them: `noise`, `blur+noise`, `{name: noise, std: 0.06}`, or a list for a chain."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ..errors import SurefootError
from ..registry import UNNAMED, Own, Registry
from ..schemas import check_options
from ..types import Images
from .base import View
from .combinations import Chain

AnyView = Callable[..., Images]


def is_view(target: Any) -> bool:
    """Whether an object of the user's own is a view: a class of them, or a function whose first argument is `images`."""
    if isinstance(target, type):
        return issubclass(target, View)
    return inspect.isfunction(target) and next(iter(inspect.signature(target).parameters), None) == "images"


VIEWS = Registry(
    "view",
    [
        ("noise", "surefoot.views.simple:GaussianNoise", "Gaussian noise, one level or a range"),
        ("blur", "surefoot.views.simple:GaussianBlur", "Gaussian blur with a small kernel"),
        ("jpeg", "surefoot.views.simple:JPEG", "JPEG compression"),
        ("rotate-translate", "surefoot.views.simple:RotateTranslate", "A few degrees and pixels"),
        ("shear", "surefoot.views.simple:Shear", "Shear along both sides"),
        ("autocontrast", "surefoot.views.simple:AutoContrast", "Every channel stretched to the whole range"),
        ("contrast", "surefoot.views.simple:Contrast", "Less contrast, or more"),
        ("equalize", "surefoot.views.simple:Equalize", "Every level used equally often"),
        ("posterize", "surefoot.views.simple:Posterize", "Fewer bits"),
        ("solarize", "surefoot.views.simple:Solarize", "Bright pixels inverted"),
        ("augmix", "surefoot.views.augmix:AugMixChains", "Mixed chains of nine operations"),
        ("mixed-tone", "surefoot.views.combinations:MixedTone", "The image mixed with one change of its tone"),
        ("one-of", "surefoot.views.combinations:OneOf", "One of several views for each image"),
        ("chain", "surefoot.views.combinations:Chain", "Views one after the other"),
    ],
    Own("a subclass of surefoot.views.View, or a function of images", is_view),
)


class Unnamed(View):
    """Stands for a view that came from Python when a run is read again: its name is known, its code is not."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, images: Images, generator: torch.Generator | None = None) -> Images:
        raise SurefootError(f"The view '{self.name}' came from Python and is not part of the recipe; pass it in again.")


def build_view(given: Any) -> AnyView:
    """A view from its name, its mapping, a list of views, or itself."""
    if isinstance(given, str) and given.startswith(UNNAMED):
        return Unnamed(given.removeprefix(UNNAMED))
    if isinstance(given, str):
        names = given.split("+") if ":" not in given else [given]
        return _named(names[0].strip(), {}) if len(names) == 1 else Chain([name.strip() for name in names])
    if isinstance(given, Mapping):
        options = dict(given)
        if not isinstance(options.get("name"), str):
            raise SurefootError(f"view must have a name, got {dict(given)!r}.")
        return _named(options.pop("name"), options)
    if isinstance(given, Sequence):
        return Chain(given)
    if not callable(given):
        raise SurefootError(f"view must be a name, a mapping, a list of views or a callable, got {given!r}.")
    view: AnyView = given
    return view


def describe_view(view: Any) -> Any:
    """What `build_view` makes the same view from, in words and numbers; only the name of a callable from elsewhere."""
    if isinstance(view, Chain | Sequence) and not isinstance(view, str):
        return [describe_view(each) for each in (view.views if isinstance(view, Chain) else view)]
    if isinstance(view, Unnamed):
        return UNNAMED + view.name
    if isinstance(view, View) and VIEWS.name_of(type(view)) in VIEWS:
        options = {key: _plain(value) for key, value in view.options().items()}
        return {"name": VIEWS.name_of(type(view)), **options}
    if callable(view):
        return UNNAMED + getattr(view, "__qualname__", type(view).__qualname__)
    return view


def _named(name: str, options: Mapping[str, Any]) -> AnyView:
    target = VIEWS.load(name)
    if isinstance(target, type):
        made: AnyView = target(**check_options(f"view '{name}'", target, options))
        return made
    if options:
        raise SurefootError(f"view '{name}' is a function and takes no options, got {dict(options)!r}.")
    function: AnyView = target
    return function


def _plain(value: Any) -> Any:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [describe_view(each) if callable(each) else each for each in value]
    return value
