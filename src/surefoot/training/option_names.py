"""The options that a section of a recipe may name, read from our own source, since importing what takes them takes seconds."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from ..objectives.methods import OBJECTIVES
from ..schemas import british, check_keys
from .arguments import NOT_DATA_OPTIONS, NOT_MODEL_OPTIONS

TAKEN_BY = {  # the function or class that takes the options of a section, and what else it takes
    "data": ("surefoot.data.loading:load_data", NOT_DATA_OPTIONS),
    "model": ("surefoot.models.loading:load_model", NOT_MODEL_OPTIONS),
    "augmentation": ("surefoot.data.augmentation:Augmentation", ()),
}


def check_option_names(recipe: Mapping[str, Any]) -> None:
    """Refuse an option that no section has; values, and options of one's own methods, are for whoever builds them."""
    method = str(recipe["objective"].get("name"))
    by_section = dict(TAKEN_BY)
    if method in OBJECTIVES.ours:
        by_section["objective"] = (OBJECTIVES.target_of(method), ())
    for section, (target, leave_out) in by_section.items():
        options = {name: value for name, value in (recipe.get(section) or {}).items() if name != "name"}
        if options:
            known = [name for name in arguments_of(target) if name not in leave_out]
            check_keys(f"option of {section}", british(options), known)


def arguments_of(target: str) -> list[str]:
    """The arguments of `module:function`, of `module:Class` by its constructor, or the fields of a data class."""
    module, _, name = target.partition(":")
    package, *inner, file = module.split(".")
    tree = ast.parse(files(package).joinpath(*inner, f"{file}.py").read_text(encoding="utf-8"))
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name)
    if isinstance(found, ast.ClassDef):
        makers = [node for node in found.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
        if not makers:
            fields = [node.target for node in found.body if isinstance(node, ast.AnnAssign)]
            return [field.id for field in fields if isinstance(field, ast.Name)]
        found = makers[0]
    return [each.arg for each in (*found.args.args, *found.args.kwonlyargs) if each.arg != "self"]
