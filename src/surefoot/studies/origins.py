"""Where the corrupted pictures of a study come from: our generators, or published copies, never both in one table.

A folder is named by what it holds, not by its path, so that the cells of one machine serve another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..corruptions.arguments import find_photographs
from ..corruptions.families import NAMES
from ..corruptions.published import ArrayCopies, FolderCopies, open_copies
from ..errors import SurefootError
from ..measurements.corruptions import GENERATED
from ..measurements.registry import check_measure
from .schema import Study, check_study

Origins = dict[str, str]  # the name of an origin to its folder on this machine
KIND = "corruptions"  # the measurement that reads copies
HEAD = 65_536  # bytes of a file that tell it from another


def with_origins(name: str, study: Study, folders: Sequence[Path], frost: str | None) -> tuple[Study, Origins]:
    """The study with its corruptions read from folders of copies, or generated with photographs of frost.

    What a folder has and nobody asks for is measured as a condition of its own, unless it is one of the benchmark's 19.
    """
    if folders and frost:
        raise SurefootError("--frost is for corruptions that are generated, and --corrupted reads them.")
    if not folders and not frost:
        return study, {}
    measure = {label: dict(options) for label, options in study.measure.items()}
    of_corruptions = {label: options for label, options in measure.items() if options.get("measurement", label) == KIND}
    asked = {label: check_measure(label, options)[1]["names"] for label, options in of_corruptions.items()}
    if not asked:
        raise SurefootError(f"--corrupted and --frost are for corruptions, and study '{name}' measures none.")
    if frost:
        folder = find_photographs(frost)
        origin = f"{GENERATED}, frost of {named(folder, sorted(path for path in folder.iterdir() if path.is_file()))}"
        changed = {label: {**options, "origin": origin} if label in asked else options for label, options in measure.items()}
        return check_study(name, {**study.model_dump(), "measure": changed}), {origin: str(folder.resolve())}
    copies = {origin_of(opened := open_copies(folder)): opened for folder in folders}
    for label, names in asked.items():
        measure[label]["origin"] = origin_with(label, names, copies)
    columns = study.table.columns
    for origin, opened in copies.items():
        wanted = {each for names in asked.values() for each in names}
        others = [each for each in opened.names if each not in wanted and each not in NAMES]
        if others:
            label = opened.folder.resolve().name.lower().replace(".", "-")
            measure[label] = {"measurement": KIND, "names": others, "each": True, "origin": origin}
            columns = (*columns, f"{label}.accuracy") if columns else columns
    table = {**study.table.model_dump(), "columns": columns}
    changed_study = check_study(name, {**study.model_dump(), "measure": measure, "table": table})
    return changed_study, {origin: str(opened.folder.resolve()) for origin, opened in copies.items()}


def origin_with(label: str, names: Sequence[str], copies: Mapping[str, ArrayCopies | FolderCopies]) -> str:
    """The folder that has all corruptions of a measurement; what is missing is not generated in its place."""
    missing = {origin: [each for each in names if each not in opened.names] for origin, opened in copies.items()}
    nearest = min(missing, key=lambda origin: len(missing[origin]))
    if missing[nearest]:
        lacking = ", ".join(missing[nearest][:6]) + (", ..." if len(missing[nearest]) > 6 else "")
        advice = "give the folder that has them too (--corrupted again), since a table does not mix read and generated pictures"
        raise SurefootError(f"'{copies[nearest].folder}' lacks corruptions that {label} asks for ({lacking}): {advice}.")
    return nearest


def origin_of(copies: ArrayCopies | FolderCopies) -> str:
    """The name of the folder and a hash of what it holds."""
    if isinstance(copies, ArrayCopies):
        return named(copies.folder, [copies.folder / f"{name}.npy" for name in (*copies.names, "labels")])
    firsts = [next(iter(sorted((copies.folder / name / "1").rglob("*.*"))), None) for name in copies.names]
    return named(copies.folder, [path for path in firsts if path is not None])


def named(folder: Path, files: Sequence[Path]) -> str:
    hashed = blake2b(digest_size=4)
    for path in files:
        with open(path, "rb") as file:
            hashed.update(repr((path.relative_to(folder).as_posix(), path.stat().st_size)).encode() + file.read(HEAD))
    return f"{folder.resolve().name} ({hashed.hexdigest()})"


def origin_words(measure: Mapping[str, tuple[str, Mapping[str, Any]]]) -> str:
    """Where the corrupted pictures of some measurements come from, in words; empty where there are none."""
    origins = [(options["origin"], options["generator"]) for name, options in measure.values() if name == KIND]
    shown = [f"{each} (version {version})" if each.startswith(GENERATED) else f"read from {each}" for each, version in origins]
    return "; ".join(dict.fromkeys(shown))
