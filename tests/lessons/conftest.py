"""What tests of a lesson ask: the names that its cells leave, and what they print."""

import pytest
from executed import executed


@pytest.fixture(scope="module")
def ran(request):
    """Names and printed text of the lesson whose number ends the name of the tests' file."""
    return executed(int(request.path.stem[-2:]))


@pytest.fixture
def names(ran):
    """{name: value} after all cells."""
    return ran[0]


@pytest.fixture
def printed(ran):
    """All that the cells printed."""
    return ran[1]
