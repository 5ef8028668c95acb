"""Attacks by name, with the papers' budgets (representation-space 4.4)."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from typing import Any

from ..errors import SurefootError
from ..schemas import check_options
from ._fast_strong import fast_strong
from ._pgd import pgd
from .attempts import Attack
from .auto_attack import AutoAttack
from .table import ATTACKS, FIXED, NOT_OPTIONS

pgd_weak = partial(pgd, eps=0.4 / 255, steps=7, step_size=0.2 / 255)
pgd_strong = partial(pgd, eps=8 / 255, steps=7, step_size=2 / 255)
sparse_weak = partial(fast_strong, eps=3, norm="l1")
sparse_strong = partial(fast_strong, eps=12, norm="l1")
autoattack_weak = AutoAttack(eps=1 / 255)
autoattack_strong = AutoAttack(eps=8 / 255)


def find_attack(attack: str | Attack, *, early_stop: bool, **options: Any) -> Attack:
    """An attack by name, with options, that stops early or goes on where it can do both and nobody decided."""
    chosen: Any = ATTACKS.load(attack) if isinstance(attack, str) else attack
    if options:
        chosen = with_options(attack if isinstance(attack, str) else "attack", chosen, options)
    given = chosen.keywords if isinstance(chosen, partial) else {}
    if "early_stop" not in given and "early_stop" in inspect.signature(chosen).parameters:
        chosen = partial(chosen, early_stop=early_stop)
    method: Attack = chosen
    return method


def takes_budget(attack: str) -> bool:
    """Whether any budget can be chosen: not if it belongs to the name, or if an attack of one's own has no `eps`."""
    method: Any = ATTACKS.load(attack)
    return attack not in FIXED and (isinstance(method, AutoAttack) or "eps" in inspect.signature(method).parameters)


def budget_of(attack: str) -> float | None:
    """How far an attack may change a pixel by default; None for one in L1, and for one's own that does not say."""
    method: Any = ATTACKS.load(attack)
    if isinstance(method, partial) and method.keywords.get("norm") == "l1":
        return None
    given = method.keywords.get("eps") if isinstance(method, partial) else getattr(method, "eps", None)
    if given is None and (own := inspect.signature(method).parameters.get("eps")) is not None:
        given = own.default
    return None if given is None else float(given)


def with_options(name: str, attack: Any, options: dict[str, Any]) -> Any:
    """The attack with some of its options changed, each checked against its signature."""
    if name in FIXED:
        known = ", ".join(other for other in ATTACKS.names if other not in FIXED)
        raise SurefootError(f"{name} has its own budget and steps; options are for {known}.")
    ensemble = isinstance(attack, AutoAttack)
    checked = check_options(name, AutoAttack if ensemble else attack, options, NOT_OPTIONS)
    chosen = {key: checked[key] for key in options}
    return replace(attack, **chosen) if ensemble else partial(attack, **chosen)
