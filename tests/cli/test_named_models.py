"""What a command works on: nothing is taken for something else."""

import pytest
import torch
from torch import nn

from surefoot.cli.targets import check_classes, from_import, from_name
from surefoot.errors import SurefootError
from surefoot.models import loading


def test_published_weights_are_not_given_a_new_head(monkeypatch):
    real = loading.build_module
    monkeypatch.setattr(loading, "build_module", lambda n, c, ch, _, **more: real(n, c, ch, False, **more))  # no download
    with pytest.raises(SurefootError, match="'resnet18' are for 1000 classes, and the data have 10: .* --class-map"):
        from_name("resnet18", None, True, "digits", {}, {})


def test_classes_of_a_run_and_of_other_data(caplog):
    check_classes(("cat", "dog"), ("cat", "dog"))
    check_classes((), ("cat", "dog"))
    assert caplog.text == ""
    check_classes(("cat", "dog"), ("0", "1"))
    assert "The run calls its classes cat, dog ..., the data 0, 1" in caplog.text
    with pytest.raises(SurefootError, match="class 'dog' is number 1 of the run and 0 of the data"):
        check_classes(("cat", "dog", "emu"), ("dog", "emu", "fox"))


def needs_size(size):
    return nn.Linear(size, 10)


def test_an_import_that_wants_arguments_is_one_line():
    with pytest.raises(SurefootError, match="cannot be called without arguments: .*missing 1 required"):
        from_import(f"{__name__}:needs_size", "digits", {}, {})
    assert isinstance(needs_size(torch.tensor(3).item()), nn.Linear)
