"""Pages and pictures of hostile models in a browser: nothing runs, nothing is asked for."""

import contextlib
import io

import hostile
import pytest

from minitx.analysis import commands
from minitx.analysis.runner import registry

WRITTEN = ("explore", "explore beside", "explore two stacks", "run", "report", "decode", "verify")
REPORTED = {name: registry.EXPERIMENTS[name] for name in ("positions", "shapes")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What hostile models and texts gave: pages and pictures in out/."""
    path = tmp_path_factory.mktemp("hostile")
    (path / "text.txt").write_text(f"{hostile.TEXT} A dog ran.\n" * 8, encoding="utf-8")
    last = hostile.FOLDERS[-1]
    models = [
        hostile.write_model(path, "tiny-roberta", *hostile.FOLDERS),
        hostile.write_model(path, "tiny-roberta", "n", hostile.ODD),
        hostile.write_model(path, "tiny-gpt2", "g", last),
        hostile.write_model(path, "tiny-bart", "b", last),
    ]
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.chdir(path)
        given = hostile.commands(*models)
        for what in WRITTEN:
            with patch.context() as inner:
                if what == "report":
                    inner.setattr(registry, "EXPERIMENTS", REPORTED)
                assert commands.run_command(given[what]) == 0
    return path / "out"


def test_nothing_runs_and_nothing_is_asked_for(open_page, folder):
    """`open_page` fails for a request, a complaint of the console, and an error."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in (".html", ".svg", ".xml"))
    assert len(paths) >= 8
    for path in paths:
        dialogs = []
        page = open_page(path)
        page.on("dialog", lambda dialog, dialogs=dialogs: dialogs.append(dialog.message))
        assert page.evaluate("typeof hit") == "undefined"  # so that a call would be an error
        assert page.locator("img[src=x], [onerror], [onload], [onmouseover]").count() == 0
        page.wait_for_timeout(200)
        assert dialogs == [] and "hit" not in page.evaluate("Object.keys(window)")
