"""Commands are tested on a quick audit that is quicker still."""

import pytest


@pytest.fixture(autouse=True)
def always_quicker(quicker: None) -> None:
    """Every command here."""
