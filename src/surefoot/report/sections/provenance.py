"""How it was made, how to make it again, and measurements beyond those of the page."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from ...auditing.frames import leaves
from ..words import Audit
from .base import Model, Section

# Measurements beyond those of the page: the user's own, and others that were requested.


def measurements_section(models: Sequence[Model]) -> Section | None:
    """A row for each number of each model; None where nothing was measured beyond the page."""
    rows = [
        {"label": label, "model": model.name, "number": ".".join(words), "value": value, "low": low, "high": high}
        for label in dict.fromkeys(label for model in models for label in model.audit.get("measurements") or {})
        for model in models
        for words, value, low, high in leaves((model.audit.get("measurements") or {}).get(label, {}))
    ]
    return Section("measurements", "Your measurements", {"rows": rows, "several": len(models) > 1}) if rows else None


# How it was made, and how to make it again.


MACHINE = ("download", "memory_gib", "workers", "skip_bad_images")  # settings of where it ran, not of what was seen


def provenance_section(models: Sequence[Model]) -> Section:
    """What was audited, on what, with which versions, and the command for it."""
    rows = [
        {"model": model, "facts": facts(model.audit), "command": command(model.audit), "recipe": recipe(model.audit)}
        for model in models
    ]
    return Section("provenance", "How it was made", {"rows": rows, "several": len(models) > 1})


def facts(audit: Audit) -> dict[str, str]:
    """One line for each thing worth knowing."""
    subject = audit["subject"]
    data = {key: value for key, value in subject["data"].items() if value is not None and key not in MACHINE}
    rows = {
        "data": ", ".join(f"{key}: {value}" for key, value in data.items())
        or ("given in Python" if "depth" in subject else "given as predictions"),
        "split": f"{subject['split']}, {subject['images']:,} images, {len(subject.get('classes') or ())} classes",
        "depth": subject.get("depth", "predictions alone"),
        "seed": str(subject["seed"]),
        "made": subject["created"],
        "with": ", ".join(f"{name} {version}" for name, version in subject["versions"].items()),
    }
    if worse := audit.get("corruptions"):
        origins = dict.fromkeys(cell.get("origin") or "generated" for cell in worse["cells"])
        rows["corruptions"] = f"{worse.get('images', subject['images']):,} images, {', '.join(origins)}"
    if given := subject.get("input"):
        rows["input"] = f"{given}."
    if found := subject.get("model"):
        rows["model"] = " ".join(line if line.endswith(".") else f"{line}." for line in found)
    if notes := subject.get("notes"):
        rows["notes"] = " ".join(notes)
    return rows


def command(audit: Audit) -> str:
    """The command line that would measure the same; what it was called with, if the audit says so."""
    subject = audit["subject"]
    if given := subject.get("command"):
        return str(given)
    if "depth" not in subject:
        return "surefoot audit --predictions FILE"
    name = subject["data"].get("name")
    data = ["--data", str(name)] if name else []
    words = ["--depth", subject["depth"], "--split", subject["split"], "--seed", str(subject["seed"])]
    return f"surefoot audit RUN {shlex.join([*data, *words])}"


def recipe(audit: Audit) -> str:
    """How the model was trained, if the audit says so."""
    content: Any = audit["subject"].get("recipe")
    return "" if not content else content if isinstance(content, str) else json.dumps(content, indent=1)
