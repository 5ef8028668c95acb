"""A calibrated model from elsewhere as a folder: the flags that name it, its file, and the calibrator behind it.

It is given to commands like a run folder. Nothing in it is executed unless `--allow-code` says that it may be.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.settings import is_foreign, is_model_file
from ..errors import SurefootError
from ..files import only_writer, read_json, write_json
from ..registry import TRUST
from ..schemas import check_keys
from ..training.run_files import CALIBRATION, GUARANTEES, MODEL
from ..version import VERSION
from .options import ModelFlags

if TYPE_CHECKING:
    from torch import nn

    from ..calibration.calibrators import Calibrator
    from ..calibration.guarantees import Guarantees
    from .targets import Target

KEPT = ("surefoot", "name", "model", "data", "weights")
PATHS = ("checkpoint", "classes")  # flags that may name a file, which is copied


def is_calibrated(folder: Path | None) -> bool:
    return folder is not None and (folder / MODEL).is_file()


def write_calibrated_model(
    output: Path, source: ModelFlags, target: Target, calibrator: Calibrator, guarantees: Guarantees | None
) -> None:
    """Write the folder; files of the model go with it, and `model.json`, which comes last, marks it complete."""
    from ..training.runs import copy_folder

    with only_writer(output):
        folder = copy_folder(None, output)
        folder.mkdir(parents=True, exist_ok=True)
        given = {each.name: getattr(source, each.name) for each in fields(source)}
        given = {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}
        for key in ("model", *PATHS):
            value = given[key]
            if value and (key != "model" or is_model_file(value)) and Path(value).is_file():
                shutil.copyfile(value, folder / f"{key}{Path(value).suffix}")
                given[key] = f"{key}{Path(value).suffix}"
        calibrator.save(folder / CALIBRATION)
        if guarantees is not None:
            guarantees.save(folder / GUARANTEES)
        kept = {key: value for key, value in given.items() if value not in (None, False) and key != "data"}
        about = {"surefoot": VERSION, "name": target.name, "model": kept, "data": target.data.source}
        about["weights"] = weights_of(target.model)
        write_json(folder / MODEL, about)


def weights_of(model: nn.Module) -> str:
    from ..attacks.cache import fingerprint

    return fingerprint(*model.state_dict().values())


def needs_trust(folder: Path) -> bool:
    """Whether the model in a folder is a program."""
    return program_in(read_json("calibrated model", folder / MODEL)["model"]) is not None


def program_in(flags: Mapping[str, Any]) -> str | None:
    name = flags.get("import_") or (flags.get("model") if is_foreign(str(flags.get("model"))) else None)
    return None if name is None else str(name)


def read_calibrated_model(folder: Path, given: ModelFlags) -> tuple[ModelFlags, dict[str, Any], Calibrator, Guarantees | None]:
    """The flags of the model in a folder, with `--data` as given, what else is kept, and what is behind it."""
    about = read_json("calibrated model", folder / MODEL)
    flags = about.get("model") if isinstance(about, dict) else None
    data = about.get("data") if isinstance(about, dict) else None
    if not isinstance(flags, dict) or not isinstance(data, dict):
        raise SurefootError(f"'{folder / MODEL}' does not say which model it is of.")
    check_keys(f"key in '{folder / MODEL}'", about, KEPT)
    check_keys(f"flag in '{folder / MODEL}'", flags, [each.name for each in fields(ModelFlags)])
    program = program_in(flags)
    if program and not given.allow_code:
        raise SurefootError(f"'{folder / MODEL}' names a model that is a program, '{program}': if you trust it, {TRUST}.")
    for key in ("model", *PATHS):
        if isinstance(flags.get(key), str) and (folder / flags[key]).is_file() and Path(flags[key]).name == flags[key]:
            flags[key] = str(folder / flags[key])
    if flags.get("checkpoint"):
        flags["checkpoint"] = Path(flags["checkpoint"])
    refused = next(
        (each.name for each in fields(given) if getattr(given, each.name) and each.name not in ("data", "allow_code")), None
    )
    if refused is not None:
        raise SurefootError(f"--{refused.rstrip('_').replace('_', '-')} is not for a calibrated model, which knows its own.")
    own = replace(ModelFlags(**flags), data=given.data or data.get("name"), allow_code=False)
    from ..calibration.calibrators import load_calibrator
    from ..calibration.guarantees import load_guarantees

    promises = load_guarantees(folder / GUARANTEES) if (folder / GUARANTEES).is_file() else None
    return own, about, load_calibrator(folder / CALIBRATION), promises
