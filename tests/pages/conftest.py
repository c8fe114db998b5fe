"""What the checks in a browser share: the browser, and a tab that listens for complaints.

SHOTS=folder keeps a screenshot of every state, to look at.
"""

import os
from pathlib import Path

import pytest
from browser import NoBrowser, Tab, find


@pytest.fixture(scope="session")
def program():
    """A browser, or an end at once with the reason: these checks are nothing without one."""
    try:
        return find()
    except NoBrowser as error:
        pytest.exit(f"make test-page: {error}", returncode=3)


@pytest.fixture
def tab(tmp_path, request):
    """A browser of its own: by the end it has no complaint, and asked for nothing but the page."""
    tab = Tab(tmp_path / "browser")
    yield tab
    if "SHOTS" in os.environ:
        folder = Path(os.environ["SHOTS"])
        folder.mkdir(parents=True, exist_ok=True)
        tab.screenshot(folder / f"{request.node.name.replace('/', '-')}.png")
    tab.settle()  # whatever is still to be said
    tab.close()
    assert tab.complaints == []
    assert [url for url in tab.requests if not url.startswith(("file:", "data:"))] == []
    assert sum(url.startswith("file:") for url in tab.requests) == 1
