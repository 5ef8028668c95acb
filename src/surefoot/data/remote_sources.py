"""What a file may not ask for: data and models that come over the network, and roots that are commands.

A name that the user gives himself is fetched. A name in a recipe or study is not, unless the user trusts the file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from ..errors import SurefootError
from ..registry import TRUST
from .arguments import DOWNLOADED, PACKAGES, has_reader
from .settings import HUB, MODEL_FILES, TRANSFORMERS


def check_package(name: str) -> None:
    """That a set is named, and that the package which reads it is there."""
    if not name.partition("/")[2].strip("/"):
        raise SurefootError(f"Data '{name}' must go on with the name of a data set, such as {name.partition('/')[0]}/NAME.")
    package = PACKAGES[name.partition("/")[0]]
    if find_spec(package) is None:
        raise SurefootError(f"Data '{name}' needs the package '{package}': pip install {package.replace('_', '-')}.")


def check_label(name: str, split: str, label: int, classes: int) -> int:
    """The label, if it is a class; publishers hide those of a test split as -1."""
    if not 0 <= label < classes:
        hidden = " (the publisher hides its labels)" if label == -1 else ""
        raise SurefootError(f"labels must be in 0 to {classes - 1}, got {label} in the {split} split of '{name}'{hidden}.")
    return label


LOCAL = "wds"  # the only one of the readers that reads nothing but what is in its root


def local_data(source: str, section: Mapping[str, Any], own: Collection[str] = (), *, has_flags: bool = True) -> dict[str, Any]:
    """A data section of the file `source` that is read from this machine, and not downloaded.

    `own` are the options that the user gave himself; data whose name is among them may be downloaded. `has_flags` says that
    the command has flags to do so.
    """
    name, root = section.get("name"), section.get("root")
    if "name" not in own and isinstance(name, str) and has_reader(name) and name.partition("/")[0] != LOCAL:
        raise SurefootError(f"{source} names data that would be fetched, '{name}': {way(has_flags, '--data')}.")
    if "root" not in own and isinstance(root, str) and is_remote(root):
        raise SurefootError(f"{source} names a root that is no folder, '{root}': {way(has_flags, '--root')}.")
    refuse_shares(source, section, {"name": "--data", "labels": "--labels", "class_map": "--class-map"}, own, has_flags)
    decided = not isinstance(name, str) or name not in DOWNLOADED or "download" in own
    return dict(section) if decided else {**section, "download": "name" in own}


def refuse_remote_model(source: str, section: Mapping[str, Any], own: Collection[str] = (), *, has_flags: bool = True) -> None:
    """Refuse a model section of the file `source` whose description or weights would be fetched."""
    name, pretrained = section.get("name"), section.get("pretrained")
    if "name" not in own and isinstance(name, str):
        refuse_foreign(source, name)
    if "name" not in own and isinstance(name, str) and name.startswith((HUB, TRANSFORMERS)):
        raise SurefootError(f"{source} names a model that would be fetched, '{name}': if you trust it, {TRUST}.")
    refuse_shares(source, section, {"checkpoint": "--checkpoint"}, own, has_flags)
    if "pretrained" not in own and pretrained:
        advice = way(has_flags, "--pretrained (or --set model.pretrained)")
        raise SurefootError(f"{source} asks for the published weights of '{name}', which would be fetched: {advice}.")


def refuse_foreign(source: str, name: str) -> None:
    """Refuse a model of the file `source` that is a program: a file of TorchScript and its like, a command, an address."""
    if name.lower().endswith(MODEL_FILES) or name.startswith(("cmd:", "http://", "https://")):
        raise SurefootError(f"{source} names a model that is a program, '{name}': if you trust it, {TRUST}.")


def way(has_flags: bool, flag: str) -> str:
    """What the user can do about a refusal."""
    return f"give {flag} yourself, or {TRUST}" if has_flags else f"if you trust it, {TRUST}"


def refuse_shares(
    source: str, section: Mapping[str, Any], flags: Mapping[str, str], own: Collection[str], has_flags: bool
) -> None:
    """Refuse paths on other machines; `flags` are those by which the user may give them himself."""
    for key, flag in flags.items():
        if key not in own and isinstance(value := section.get(key), str) and is_share(value):
            raise SurefootError(f"{source} names a path on another machine, '{value}': {way(has_flags, flag)}.")


def is_share(path: str) -> bool:
    """Whether Windows would ask another machine for a path."""
    return path.startswith(("//", "\\\\"))


def is_remote(path: str) -> bool:
    """Whether a path is a URL, a command (`pipe:`) or a folder of another machine; a drive such as `C:` is not."""
    try:
        scheme = urlsplit(path).scheme  # as the readers understand it
    except ValueError:
        return True
    return len(scheme) > 1 or is_share(path)


def refuse_remote_shards(name: str, root: str | None, reader: Any) -> None:
    """Refuse an `_info.json` in a local root whose shards are URLs or commands."""
    shards = getattr(getattr(reader, "split_info", None), "filenames", None) or ()
    wrong = next((shard for shard in shards if is_remote(str(shard))), None)
    if wrong is not None and not is_remote(root or ""):
        raise SurefootError(f"Data '{name}' name a shard that is no file, '{wrong}', in '{root}'.")
