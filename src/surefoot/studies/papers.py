"""The tables and figures of the four papers: which study has each, and why some figures have none."""

from __future__ import annotations

import re
from functools import cache

from ..errors import SurefootError, UnknownName
from .study_files import find_study, in_order, read_file, study_names

FAMILIES = {  # what the names of a paper's studies begin with
    "macs": "macs",
    "discriminative-noise": "discriminative",
    "magnma": "magnma",
    "representation-space": "representation",
}
NOT_COMPUTED = {
    "macs": {"Figure 2": "a diagram of the training"},
    "discriminative-noise": {
        "Figure 2": "a drawing of the idea",
        "Figure 3": "a diagram of the model",
        "Figure 4": "a drawing of the idea",
        "Figure 5": "a drawing of a proposition",
        "Figure 6": "photographs of roads, which are not public",
        "Figure 7": "photographs of roads, which are not public; `surefoot audit` shows images under perturbations",
    },
    "magnma": {
        "Figure 1": "a diagram of the training",
        "Figure 4": "one photograph under corruptions; `surefoot audit` shows images under every corruption",
    },
    "representation-space": {"Figure 8": "a drawing of the idea"},
}


@cache
def places_of() -> dict[str, dict[str, dict[str, str]]]:
    """For each paper its tables, then its figures, in order, with the studies that have them and the title that each gives."""
    found: dict[str, dict[str, dict[str, str]]]
    found = {paper: {place: {} for place in NOT_COMPUTED[paper]} for paper in FAMILIES}
    for name in study_names():
        given = read_file(name)
        own = found.get(given.get("paper", ""), {})
        figures = {place: figure["title"] for place, figure in (given.get("figures") or {}).items()}
        for place, title in {str(given.get("place")): given["title"], **figures}.items():
            if re.fullmatch(r"(Table|Figure) \d+", place):
                own.setdefault(place, {})[name] = " ".join(title.split())
    order = {"Table": 0, "Figure": 1}
    return {
        paper: dict(sorted(places.items(), key=lambda item: (order[item[0].split()[0]], in_order(item[0])[1])))
        for paper, places in found.items()
    }


def find_figure(name: str) -> tuple[str, str | None]:
    """The study and the figure behind a name such as `macs-figure4`; a study without such a name stands for all its figures."""
    papers = {family: paper for paper, family in FAMILIES.items()}
    match = re.fullmatch(rf"({'|'.join(papers)})-figure(\d+)", name)
    if match is None:
        find_study(name)  # which refuses what is no study
        return name, None
    paper, place = papers[match[1]], f"Figure {match[2]}"
    if reason := NOT_COMPUTED[paper].get(place):
        raise SurefootError(f"{place} of {paper} is not computed: it is {reason}.")
    places = places_of()[paper]
    with_figures = [each for each in places.get(place, {}) if place in (read_file(each).get("figures") or {})]
    if not with_figures:
        known = [f"{match[1]}-{each.lower().replace(' ', '')}" for each in places if each.startswith("Figure")]
        raise UnknownName("figure", name, known)
    return (name if name in with_figures else with_figures[0]), place
