"""What a command works on: nothing is taken for something else."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from surefoot.cli.options import ModelFlags
from surefoot.cli.targets import check_classes, find_target, from_import
from surefoot.errors import SurefootError
from surefoot.models import loading


def test_published_weights_are_not_given_a_new_head(monkeypatch):
    real = loading.build_module
    monkeypatch.setattr(loading, "build_module", lambda n, c, ch, _, **more: real(n, c, ch, False, **more))  # no download
    with pytest.raises(SurefootError, match="The model has 1000 outputs, and the data have 10 classes: .* .--classes"):
        find_target(None, ModelFlags(model="resnet18", pretrained="true", data="digits"), {})


def test_classes_of_a_run_and_of_other_data(caplog):
    def check(ours, theirs):
        model = SimpleNamespace(num_classes=len(theirs))
        check_classes(
            SimpleNamespace(model=model, class_names=ours), SimpleNamespace(class_names=theirs, num_classes=len(theirs))
        )

    check(("cat", "dog"), ("cat", "dog"))
    check((), ("cat", "dog"))
    assert caplog.text == ""
    check(("cat", "dog"), ("0", "1"))
    assert "The run calls its classes cat, dog ..., the data 0, 1" in caplog.text
    with pytest.raises(SurefootError, match="class 'dog' is number 1 of the run and 0 of the data"):
        check(("cat", "dog", "emu"), ("dog", "emu", "fox"))


def needs_size(*, size):
    return nn.Linear(size, 10)


def test_an_import_that_wants_arguments_is_one_line():
    with pytest.raises(SurefootError, match="cannot be called without arguments: .*missing 1 required"):
        from_import(f"{__name__}:needs_size", None, "digits", {}, {})
    assert isinstance(needs_size(size=torch.tensor(3).item()), nn.Linear)
