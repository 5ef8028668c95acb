"""From a name or a file to a study at one scale: what it extends, and what the scale changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..data.remote_sources import local_data, refuse_remote_model
from ..errors import NotFound, SurefootError, UnknownName, nearest, shown
from ..measurements.registry import MEASUREMENTS
from ..registry import refuse_code
from ..schemas import check_keys, load_yaml
from .schema import Study, check_study

SHIPPED = Path(__file__).parent / "shipped"
SCALES = ("smoke", "cpu", "full")
OF_FILE = ("extends", "scales", "measure_options")
MERGED = ("training", "training_of", "table", "measure_options")  # others replace what is extended


def study_names() -> list[str]:
    """The studies that come with the package; files that begin with an underscore are only extended."""
    return sorted((path.stem for path in SHIPPED.glob("[!_]*.yaml")), key=in_order)


def in_order(name: str) -> tuple[str, int]:
    """So that table10 comes after table9."""
    words = name.rstrip("0123456789")
    return words, int(name[len(words) :] or 0)


def read_study(name: str, scale: str, changes: Mapping[str, Any] | None = None, *, allow_code: bool = False) -> Study:
    """A study by name, or by the path of a file of one's own, at a scale; `changes` replace keys of the result.

    Only with `allow_code` may a file that did not come with the package name code to run, and data and models to fetch.
    """
    check_scale(scale)
    if allow_code and is_shipped(name):
        raise SurefootError(f"allow_code (--allow-code) is for a study file of one's own, and '{name}' came with the package.")
    content = at_scale(read_file(name, allow_code=allow_code), scale)
    if not (allow_code or is_shipped(name)):
        content = without_fetching(f"Study '{name}'", content)
    return check_study(name, {**content, **(changes or {})})


def check_scale(scale: str) -> None:
    if scale not in SCALES:
        raise UnknownName("scale", scale, SCALES)


def is_shipped(name: str) -> bool:
    return find_study(name).parent == SHIPPED


def without_fetching(source: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """A study whose data and models are on this machine; what would be fetched is refused.

    Its data are not downloaded, nor are those of measurements, which follow them.
    """
    data = {label: named(section) for label, section in mapping(content.get("data")).items() if named(section)}
    models = [named(section) for section in mapping(content.get("models")).values()]
    for options in map(mapping, mapping(content.get("measure")).values()):
        for section in (options, *map(mapping, mapping(options.get("surrogates")).values())):
            local_data(source, named(section.get("data")), has_flags=False)
            models.append(named(section.get("model")))
    for section in models:
        refuse_remote_model(source, section, has_flags=False)
    here = {label: {**local_data(source, section, has_flags=False), "download": False} for label, section in data.items()}
    return {**content, "data": {**content["data"], **here}} if here else dict(content)


def named(section: Any) -> dict[str, Any]:
    """A section that may be just its name."""
    return {"name": section} if isinstance(section, str) else dict(mapping(section))


def read_file(name: str, extended_by: tuple[Path, ...] = (), *, allow_code: bool = False) -> dict[str, Any]:
    """The mapping of a study with everything that it extends; a name of code in it is refused unless `allow_code`."""
    path = find_study(name)
    if path.resolve() in extended_by:
        raise SurefootError(f"Study '{path}' extends itself.")
    try:
        given = load_yaml(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SurefootError(f"Study '{path}' is not valid YAML: {error}.") from error
    if not isinstance(given, dict):
        raise SurefootError(f"Study '{path}' must be a mapping.")
    if not allow_code:
        refuse_code(f"Study '{path}'", given)
    check_keys(f"key of study '{name}'", given, [*OF_FILE, *Study.model_fields])
    scales = given.get("scales") or {}
    if not isinstance(scales, dict):
        raise SurefootError(f"scales of study '{name}' must be a mapping, got {shown(scales)}.")
    check_keys("scale", scales, SCALES)
    for scale, changed in scales.items():
        if not isinstance(changed, Mapping | None):
            raise SurefootError(f"Scale '{scale}' of study '{name}' must be a mapping, got {shown(changed)}.")
        check_keys(f"key of scale '{scale}'", changed or {}, [*Study.model_fields, "measure_options"])
    parent = given.pop("extends", None)
    if parent is None:
        whole = given
    else:
        beside = path.parent / f"{parent}.yaml"
        above = str(beside) if beside.is_file() else str(parent)
        whole = merged(read_file(above, (*extended_by, path.resolve()), allow_code=allow_code), given)
    check_labels(name, given, whole)
    return whole


def check_labels(name: str, given: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
    """What a file changes by label must be somewhere in the study, at whatever scale: other options would reach nothing."""
    everywhere = [whole, *(scale for scale in (whole.get("scales") or {}).values() if scale)]
    grid = sorted(set().union(*map(labels_of, everywhere)), key=str)
    measured = set(MEASUREMENTS.names)
    for each in everywhere:
        for label, own in mapping(each.get("measure")).items():
            measured |= {label, str(mapping(own).get("measurement", label))}
    for own in [given, *(scale for scale in (given.get("scales") or {}).values() if scale)]:
        check_keys(
            "training_of (a model, data or method of this study)", mapping(own.get("training_of")), sorted(grid, key=str)
        )
        options = own.get("measure_options") or {}
        if not (isinstance(options, Mapping) and all(isinstance(each, Mapping | None) for each in options.values())):
            raise SurefootError(f"measure_options of study '{name}' must be options by measurement, got {shown(options)}.")
        check_keys("measurement (of measure_options)", options, sorted(measured, key=str))


def find_study(name: str) -> Path:
    """The file of a shipped study, or the user's own."""
    shipped = SHIPPED / f"{name}.yaml"
    if shipped.is_file():
        return shipped
    if Path(name).suffix in (".yaml", ".yml"):
        if not Path(name).is_file():
            raise NotFound("study", name)
        return Path(name)
    if Path(name).is_file():
        raise SurefootError(f"A study of one's own is a .yaml file, got '{name}'.")
    raise UnknownName("study", name, study_names() if nearest(name, study_names()) else groups())


def groups() -> list[str]:
    """Where there is no near name: one of each family."""
    first: dict[str, str] = {}
    for name in study_names():
        first.setdefault(in_order(name)[0], name)
    return list(first.values())


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on top of `base`: options are merged, grids and all else are replaced."""
    out = dict(base)
    for key, value in over.items():
        if key == "scales":
            before = out.get(key) or {}
            out[key] = {**before, **{scale: merged(before.get(scale) or {}, new or {}) for scale, new in (value or {}).items()}}
        else:
            out[key] = deep(out.get(key), value) if key in MERGED else value
    return out


def deep(base: Any, over: Any) -> Any:
    """Mappings merged all the way down."""
    if not (isinstance(base, Mapping) and isinstance(over, Mapping)):
        return over
    return {**base, **{key: deep(base.get(key), value) for key, value in over.items()}}


def at_scale(given: Mapping[str, Any], scale: str) -> dict[str, Any]:
    """The study with the changes of one scale: its training replaces the study's own, since a schedule is one whole.

    `measure_options` reach only the measurements that the study has.
    """
    changes = (given.get("scales") or {}).get(scale) or {}
    out = merged({key: value for key, value in given.items() if key not in OF_FILE}, without(changes, "measure_options"))
    out |= {"training": changes["training"]} if "training" in changes else {}
    options = deep(given.get("measure_options") or {}, changes.get("measure_options") or {})
    measure = out.get("measure") or {}
    if isinstance(measure, Mapping):
        out["measure"] = {label: with_options(label, own, options) for label, own in measure.items()}
    if isinstance(out.get("training_of"), Mapping):
        out["training_of"] = {label: value for label, value in out["training_of"].items() if label in labels_of(out)}
    return out


def with_options(label: str, own: Any, options: Mapping[str, Any]) -> Any:
    """The options of a measurement with those of the scale, by its label and by the measurement behind it."""
    if not isinstance(own, Mapping | None):
        return own  # refused when the study is checked
    given = dict(own or {})
    return {**given, **(options.get(given.get("measurement", label)) or {}), **(options.get(label) or {})}


def labels_of(study: Mapping[str, Any]) -> set[str]:
    return {*mapping(study.get("models")), *mapping(study.get("data")), *mapping(study.get("methods"))}


def mapping(value: Any) -> Mapping[str, Any]:
    """A mapping as it is, and nothing else; what is wrong is refused when the study is checked."""
    return value if isinstance(value, Mapping) else {}


def without(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}
