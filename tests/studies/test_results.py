"""Results of different generators of corruptions, and of a method as it was before, are told apart."""

import pytest
import yaml

from surefoot.corruptions.engine import GENERATOR
from surefoot.errors import SurefootError
from surefoot.measurements.registry import build
from surefoot.studies.cells import cells_of
from surefoot.studies.results import Results
from surefoot.studies.study_files import read_study


def study(path, **options):
    """One cell that measures one corruption."""
    given = {"extends": "_base", "title": "t", "methods": {"cross-entropy": "cross-entropy"}, "seeds": 1}
    path.write_text(yaml.safe_dump({**given, "measure": {"corruptions": {"names": ["frost"], **options}}}))
    return read_study(str(path), "smoke")


def test_results_of_two_generators_are_not_mixed(tmp_path):
    """What the first generator gave is found by a study that asks for it, and missing from one that does not."""
    first, second = (cells_of(study(tmp_path / "study.yaml", generator=number))[0] for number in (1, GENERATOR))
    assert first.name == second.name
    assert first.measure_name("corruptions") != second.measure_name("corruptions")
    results = Results(tmp_path / "results")
    results.begin(first.name, {}, {})
    results.add(first.name, first.measure_name("corruptions"), first.measure["corruptions"], {"accuracy": 0.5}, {})
    assert results.metrics(first, "corruptions") == {"accuracy": 0.5}
    assert results.missing(second) == ["corruptions"]


def test_what_was_done_with_an_option_that_is_gone_does_not_count(tmp_path):
    """A method that was made anew has the name of its old cells where both have their defaults."""
    cell = cells_of(study(tmp_path / "study.yaml"))[0]
    results, today = Results(tmp_path / "results"), {"objective": {"name": "cross-entropy", "class_weights": None}}
    for recorded, found in (
        ({"name": "cross-entropy"}, {"accuracy": 0.5}),
        ({"name": "cross-entropy", "smoothing": 0.05}, None),
    ):
        results.begin(cell.name, {"objective": recorded}, {})
        results.add(cell.name, cell.measure_name("corruptions"), cell.measure["corruptions"], {"accuracy": 0.5}, {})
        assert results.metrics(cell, "corruptions") == found
        results.begin(cell.name, today, {})
        assert results.metrics(cell, "corruptions") == found


def test_an_earlier_generator_cannot_be_asked_to_compute():
    with pytest.raises(SurefootError, match="generator must be 2, the corruptions of this version, got 1"):
        build("corruptions", {"generator": 1})
