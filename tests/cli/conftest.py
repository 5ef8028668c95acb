"""Commands are tested on a quick audit that is quicker still, and train a tiny net where none is named."""

import pytest


@pytest.fixture(autouse=True)
def always_quicker(quicker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command here."""
    monkeypatch.setattr("surefoot.cli.train.MODEL", "tiny-resnet")
