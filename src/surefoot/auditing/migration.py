"""`audit.json` of earlier versions, read as one of today: a step for each schema, from it to the next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import SurefootError, shown

SCHEMA = 3  # of `audit.json`
Content = dict[str, Any]
LATER_SCORES = (  # than the first audits of schema 1
    *("top5", "brier", "brier_reliability", "brier_resolution", "brier_uncertainty", "rms", "max_error"),
    *("debiased_ece", "adaptive_ece", "classwise_ece", "smooth_ece", "aurc", "auroc"),
)
UNKNOWN = {"value": None, "low": None, "high": None}
LEFT_OUT = "Read from schema 1: its corruptions and attacks are left out, since it does not say how many images they are of."


def migrate(path: str | Path, content: Any) -> Content:
    """The content of an `audit.json` in today's schema."""
    schema = content.get("schema") if isinstance(content, dict) else None
    if type(schema) is not int or schema not in {*STEPS, SCHEMA}:
        raise SurefootError(f"'{path}' has schema {shown(schema)}, and this version reads {min(STEPS)} to {SCHEMA}.")
    found: Content = dict(content)
    for step in range(schema, SCHEMA):
        found = {**STEPS[step](found), "schema": step + 1}
    return found


def from_1(content: Content) -> Content:
    """Schema 2 has depths: what schema 1 measured at none of them cannot be compared, and goes; clean scores stay."""
    subject = dict(part(content, "subject"))
    notes = subject.get("notes")
    if content.get("corruptions") or content.get("attacks"):
        subject["notes"] = [*(notes if isinstance(notes, list) else ()), LEFT_OUT]
    scores = {**dict.fromkeys(LATER_SCORES, UNKNOWN), **part(content, "calibration")}
    scaling = part(content, "temperature")
    rest = {name: content.get(name) or [] for name in ("preflight", "thresholds", "classes")}
    return {
        **rest,
        "subject": subject,
        "calibration": scores,
        "temperature": {**scaling, "corrupted_ece": None, "corrupted_scaled_ece": None} if scaling else None,
        "geometry": part(content, "geometry"),
    }


def from_2(content: Content) -> Content:
    """Schema 3 says that a number is not known where schema 2 had no such number yet."""
    corruptions, attacks = part(content, "corruptions"), part(content, "attacks")
    named = {name: {"eps": None, **attack} if isinstance(attack, dict) else attack for name, attack in attacks.items()}
    known = {"clean_accuracy": None, **corruptions} if corruptions else content.get("corruptions")
    parts = {"corruptions": known, "attacks": named or content.get("attacks")}
    return {**content, **{name: value for name, value in parts.items() if name in content}}


def part(content: Content, name: str) -> Content:
    """A part that has parts; empty where it is missing or something else, which the checks of the content name."""
    found = content.get(name)
    return found if isinstance(found, dict) else {}


STEPS: dict[int, Callable[[Content], Content]] = {1: from_1, 2: from_2}
