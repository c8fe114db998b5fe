"""Pages and pictures of hostile models in a browser: nothing runs, nothing is asked for."""

import contextlib
import io
import shutil

import hostile
import pytest

from minitx.analysis import commands
from minitx.analysis.contract import registry

WRITTEN = "explore", "explore beside", "explore two stacks", "run", "report", "decode"
REPORTED = {name: registry.EXPERIMENTS[name] for name in ("positions", "shapes")}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with hostile models and a text, and the commands on them."""
    path = tmp_path_factory.mktemp("hostile")
    (path / "text.txt").write_text(f"{hostile.TEXT} A dog ran.\n" * 8, encoding="utf-8")
    models = hostile.write_models(path)
    return path, hostile.commands(*models)


@pytest.mark.parametrize("what", WRITTEN)
def test_nothing_runs_and_nothing_is_asked_for(open_page, place, what, monkeypatch):
    """`open_page` fails for a request, a complaint of the console, an error, and a dialog."""
    folder, given = place
    monkeypatch.chdir(folder)
    if what == "report":
        monkeypatch.setattr(registry, "EXPERIMENTS", REPORTED)
    shutil.rmtree("out", ignore_errors=True)
    with contextlib.redirect_stdout(io.StringIO()):
        assert commands.run_command(given[what]) == 0
    paths = [path for path in (folder / "out").rglob("*") if path.suffix in (".html", ".svg")]
    assert paths
    for path in paths:
        page = open_page(path)
        assert page.evaluate("typeof hit") == "undefined"  # so that a call would be an error
        assert page.locator("img[src=x], [onerror], [onload], [onmouseover]").count() == 0
        page.wait_for_timeout(200)
