"""The atlas of a served model: computed once in a process of its own, kept, and its failures said.

The process is a small program in place of `minitx atlas`.
"""

import sys
import time

import pytest
from served import HERE, PORT
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from minitx.analysis import commands
from minitx.analysis.live import atlases, guard

WRITES = """
import sys, time
from pathlib import Path
print("\\r\\x1b[Ksentences 3/<b>9", end="", file=sys.stderr, flush=True)
while not Path("{go}").exists(): time.sleep(0.01)
Path(sys.argv[1], "atlas.html").write_text("the atlas of " + sys.argv[2])
"""
FAILS = "import sys; print('no such text <b>', file=sys.stderr); sys.exit(2)"


@pytest.fixture
def serving():
    """serving(program) -> a client of two models whose atlases this program writes."""
    opened = []

    def serving(program):
        def command(name, text, folder):
            started.append(name)
            return [sys.executable, "-c", program, str(folder), name]

        started = []
        own = atlases.Atlases(["one", "t&wo"], "a text", command)
        opened.append(own)
        app = guard.Guard(Starlette(routes=[Route("/atlas", own.page)]), PORT)
        return TestClient(app, base_url=HERE), started

    yield serving
    for own in opened:
        own.close()


def until(ask, is_enough):
    """The first answer that is enough, within 30 seconds."""
    end = time.monotonic() + 30
    answer = ask()
    while not is_enough(answer):
        assert time.monotonic() < end, answer.text
        time.sleep(0.02)
        answer = ask()
    return answer


def test_an_atlas_is_computed_once_and_kept(serving, tmp_path):
    client, started = serving(WRITES.format(go=tmp_path / "go"))
    waiting = until(lambda: client.get("/atlas"), lambda answer: "sentences" in answer.text)
    assert waiting.status_code == 200 and 'http-equiv="refresh"' in waiting.text
    assert "sentences 3/&lt;b&gt;9" in waiting.text
    (tmp_path / "go").touch()
    page = until(lambda: client.get("/atlas"), lambda answer: "refresh" not in answer.text)
    assert (page.status_code, page.text) == (200, "the atlas of one")
    assert client.get("/atlas").text == "the atlas of one"
    asked = {"model": "t&wo"}
    other = until(lambda: client.get("/atlas", params=asked), lambda x: "refresh" not in x.text)
    assert other.text == "the atlas of t&wo"
    assert started == ["one", "t&wo"]
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_a_failure_is_said_and_can_be_tried_again(serving):
    client, started = serving(FAILS)
    for n in (1, 2):
        answer = until(lambda: client.get("/atlas"), lambda answer: answer.status_code != 200)
        assert answer.status_code == 500
        assert answer.json()["error"] == "minitx atlas failed: no such text <b>"
        assert started == ["one"] * n


def test_a_model_that_is_not_served_is_named(serving):
    client, started = serving(FAILS)
    answer = client.get("/atlas", params={"model": "a third"})
    assert answer.status_code == 404 and not started
    assert answer.json()["error"] == "no model 'a third' here; available: one, t&wo"


def test_closing_ends_what_runs_and_removes_what_was_written(serving, tmp_path):
    client, _ = serving(WRITES.format(go=tmp_path / "never"))
    own = client.app.app.routes[0].endpoint.__self__
    client.get("/atlas")
    process, folder = own.jobs["one"].process, own.jobs["one"].folder
    own.close()
    assert process.returncode is not None
    assert not folder.exists()


def test_a_served_text_is_the_atlass_unless_it_is_a_sentence(tmp_path):
    text = "The dog ran after the cat. " * 20
    arguments = atlases.command("tiny-bert", text, tmp_path)
    assert arguments[-2:] == ["--text", str(tmp_path / "text.txt")]
    assert (tmp_path / "text.txt").read_text() == text
    assert arguments[3:6] == ["atlas", "tiny-bert", "--out"]
    short = atlases.command("tiny-bert", "The dog ran.", tmp_path)
    assert short[-2:] == ["--sentences", "100"]


def test_the_command_is_one_that_there_is(tmp_path):
    """Its options are those of `minitx atlas`."""
    parser = commands.parser(["atlas"])
    for text in ("short", "long " * 99):
        arguments = parser.parse_args(atlases.command("tiny-bert", text, tmp_path)[3:])
        assert arguments.out == str(tmp_path)
