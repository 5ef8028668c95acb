"""The names that are read from the source are those that the functions and constructors have."""

import inspect

import pytest

from surefoot.errors import UnknownName
from surefoot.objectives.methods import OBJECTIVES
from surefoot.registry import import_target
from surefoot.training.option_names import TAKEN_BY, arguments_of, check_option_names

TARGETS = [target for target, _ in TAKEN_BY.values()] + [OBJECTIVES.target_of(name) for name in OBJECTIVES.ours]


@pytest.mark.parametrize("target", TARGETS)
def test_the_names_of_the_source_are_those_of_the_signature(target):
    assert sorted(arguments_of(target)) == sorted(inspect.signature(import_target("target", target)).parameters)


def test_other_spellings_and_methods_of_ones_own_go_through():
    check_option_names({"objective": {"name": "own.module:Method", "anything": 1}, "data": {"name": "digits", "fraction": 0.5}})
    check_option_names({"objective": {"name": "macs", "margin_weight": 1}, "augmentation": None})
    with pytest.raises(UnknownName, match="Unknown option of objective 'margin_wait'. Did you mean 'margin_weight'"):
        check_option_names({"objective": {"name": "macs", "margin_wait": 1}})
