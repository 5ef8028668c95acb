"""The templates of the pages, read and compiled once for a process."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ..metrics import find
from .words import change, few_percent, measure, percent, short, spoken

if TYPE_CHECKING:
    from jinja2 import Template


@cache
def template(name: str) -> Template:
    """A page's template; jinja escapes what users named."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("surefoot.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {function.__name__: function for function in (percent, few_percent, short, spoken, measure)}
    environment.globals |= {"change": change, "metric": find}
    return environment.get_template(f"{name}.html.j2")
