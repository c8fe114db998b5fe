"""Hostile names, texts, labels and pieces in all that a command writes: nothing of it can act.

Every command is run on models whose path, tokenizer and configuration are hostile
(tools/hostile.py), and all that it wrote is read as its program would (tools/inert.py).
checks_hostile.py opens the pages in a browser.
"""

import contextlib
import io
import json
from collections import namedtuple
from pathlib import Path

import hostile
import inert
import pytest

import minitx
from minitx.analysis import __main__ as cli
from minitx.analysis.commands import published
from minitx.analysis.runner import escapes, registry

Ended = namedtuple("Ended", "status out errors")
REPORTED = {name: registry.EXPERIMENTS[name] for name in ("positions", "shapes", "norms")}
CLAIMS = [claim for claim in published.CLAIMS if claim.experiment in ("positions", "reviews")]
SHOWN = {  # a text is not left out to be safe: what has it, in files of a kind
    "explore": ".html",
    "explore beside": ".html",
    "run": ".svg",
    "compare": ".md",
    "report": ".html",
    "verify": ".xml",
}


def ended(arguments):
    """A command in this process, with what it wrote to both streams."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            status = cli.main(arguments)
        except SystemExit as end:
            status = end.code
    return Ended(status, out.getvalue(), errors.getvalue())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with four hostile models and a text."""
    path = tmp_path_factory.mktemp("hostile") / "here"
    path.mkdir()
    lines = [f"{hostile.TEXT} {hostile.PIECE} A dog ran on the road."] * 8 + ["NUL \0 here"]
    (path / "text.txt").write_text("\n".join(lines), encoding="utf-8", newline="")
    return path


@pytest.fixture(scope="module")
def models(folder):
    """The paths of the models, from the folder: two masked ones, a causal one, two stacks."""
    last = hostile.FOLDERS[-1]
    return [
        hostile.write_model(folder, "tiny-roberta", *hostile.FOLDERS),
        hostile.write_model(folder, "tiny-roberta", "n", hostile.ODD),
        hostile.write_model(folder, "tiny-gpt2", "g", last),
        hostile.write_model(folder, "tiny-bart", "b", last),
    ]


def files(folder):
    """{path from a folder: bytes} of all files in it."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in paths}


COMMANDS = [*hostile.commands("", "", "", "")]


@pytest.mark.parametrize("what", COMMANDS)
def test_what_a_command_writes_is_only_shown(folder, models, what, monkeypatch):
    monkeypatch.chdir(folder)
    if what == "report":
        monkeypatch.setattr(registry, "EXPERIMENTS", REPORTED)
    monkeypatch.setattr(published, "CLAIMS", CLAIMS)
    before = files(folder.parent)
    run = ended(hostile.commands(*models)[what])
    now = files(folder.parent)
    new = {path: now[path] for path in now if now[path] != before.get(path)}
    assert run.status == (2 if what.startswith("an error") else 0), run
    assert before.keys() <= now.keys()
    assert {path.parts[:2] for path in new} <= {(folder.name, "out")}
    assert not [path for path in new if path.name == "hit"]
    wrong = {path: inert.READERS[path.suffix](content) for path, content in new.items()}
    assert {path: faults for path, faults in wrong.items() if faults} == {}
    if "JSON" in what:
        assert json.loads(run.out)
    else:
        assert inert.terminal(run.out + run.errors) == []
    if what in ("an error of a model", "an error of a name", "an error of a point"):
        assert run.errors.count("\n") == 1
    if what in SHOWN:
        assert any("hit()" in x.decode() for path, x in new.items() if path.suffix == SHOWN[what])


@pytest.mark.parametrize(
    "name, shown",
    [
        ("tiny-roberta", "tiny-roberta"),
        ("a|b", r"a\|b"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("[a](javascript:hit())", r"\[a\](javascript:hit())"),
        ("a\n# b", "a # b"),
        ("\x1b[31m", r"\\x1b\[31m"),
    ],
)
def test_a_name_in_markdown_is_its_letters(name, shown):
    assert escapes.in_markdown(name) == shown


def test_a_terminal_shows_other_scripts_as_they_are():
    """Wide spaces, accents, right-to-left letters and tabs are no control characters."""
    text = "二\u3000Büros\t\u05e9\u05dc\u05d5\u05dd 😀\n"
    assert escapes.in_terminal(text) == text
    assert escapes.in_terminal("\x1b[2J\u202e\r") == r"\x1b[2J\u202e\r"


def test_a_stream_that_is_closed_stays_closed():
    assert escapes.for_people(None) is None


def test_a_models_labels_are_not_read(folder, models):
    """They would be shown somewhere else."""
    model = minitx.load(Path(folder, models[0]))
    assert hostile.MARKUP not in repr(model.config)
