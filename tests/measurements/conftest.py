"""What rows of a study are computed from, here and by hand."""

import pytest
from by_hand import COUNT, study_context


@pytest.fixture(scope="module")
def context(run, digits):
    return study_context(run, digits)


@pytest.fixture(scope="module")
def sample(context):
    """The images of a subset, as the measurements choose it."""
    return context.some(COUNT)
