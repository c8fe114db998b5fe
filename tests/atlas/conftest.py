"""What tests of the atlas share: as few shuffles as a claim needs."""

import pytest

from minitx.analysis.atlas import flags


@pytest.fixture(autouse=True)
def few_shuffles(monkeypatch, request):
    """One model of shuffled weights, where no test asks for what chance gives."""
    if "chance" not in request.fixturenames:
        monkeypatch.setattr(flags, "HEADS", 1)


@pytest.fixture
def chance():
    """As many heads with shuffled weights as chance needs."""
