"""Hostile names, texts, labels and pieces in all that a command writes: nothing of it can act.

Every command is run on models whose path, tokenizer and configuration are hostile
(tools/hostile.py), and all that it wrote is read as its program would (tools/inert.py).
checks_hostile.py opens the pages in a browser.
"""

import html
import json
import shlex
from pathlib import Path

import hostile
import inert
import pytest
import tiny

import minitx
from minitx import weights
from minitx.analysis import __main__ as cli
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry
from minitx.analysis.drawing import draw
from minitx.analysis.machine import escapes
from minitx.analysis.pages import published
from minitx.analysis.parity import reference
from minitx.analysis.running import many
from minitx.weights import local

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


def status_of(arguments):
    """How a command ends in this process."""
    try:
        return cli.main(arguments)
    except SystemExit as end:
        return end.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for four hostile models, with a text and the record of a model."""
    path = tmp_path_factory.mktemp("hostile") / "here"
    path.mkdir()
    lines = [f"{hostile.TEXT} {hostile.PIECE} A dog ran on the road."] * 8 + ["NUL \0 here"]
    (path / "text.txt").write_text("\n".join(lines), encoding="utf-8", newline="")
    sound = reference.read_file(tiny.GOLDEN / "parity" / "tiny-roberta.safetensors")
    config = {hostile.MARKUP: hostile.CONTROL, hostile.CONTROL: hostile.MARKUP}
    stated = sound.about | {"texts": [hostile.TEXT], "config": config}
    reference.write(path / "record.safetensors", sound._replace(about=stated))
    return path


@pytest.fixture(scope="module")
def models(folder):
    """The paths of the models, from the folder: two masked ones, a causal one, two stacks."""
    return hostile.write_models(folder)


def files(folder):
    """{path from a folder: bytes} of all files in it."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in paths}


@pytest.mark.parametrize("what", hostile.COMMANDS)
def test_what_a_command_writes_is_only_shown(folder, models, what, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    if what == "report":
        monkeypatch.setattr(registry, "EXPERIMENTS", REPORTED)
        monkeypatch.setattr(many, "n_processes", lambda options: 1)  # no other one has this list
    monkeypatch.setattr(published, "CLAIMS", CLAIMS)
    before = files(folder.parent)
    status, said = status_of(hostile.commands(*models)[what]), capsys.readouterr()
    now = files(folder.parent)
    new = {path: now[path] for path in now if now[path] != before.get(path)}
    assert status == (2 if what.startswith("an error") else 0), said
    assert before.keys() <= now.keys()
    assert {path.parts[:2] for path in new} <= {(folder.name, "out")}
    assert not [path for path in new if path.name == "hit"]
    wrong = {path: inert.READERS[path.suffix](content) for path, content in new.items()}
    assert {path: faults for path, faults in wrong.items() if faults} == {}
    if "JSON" in what:
        assert json.loads(said.out)
    else:
        assert inert.terminal(said.out + said.err) == []
    if what in ("an error of a name", "an error of a point"):
        assert said.err.count("\n") == 1
    if what == "report":
        (page,) = (x.decode() for path, x in new.items() if path.suffix == ".html")
        command = f"minitx run shapes {shlex.quote(models[0])}"
        assert command in html.unescape(page)
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


def test_a_command_to_copy_has_a_name_as_one_word():
    """Else a name could bring commands of its own into a shell."""
    name = "nobody/x;$(touch hit)"
    assert shlex.split(local.command(name)) == ["minitx", "fetch", name]
    with pytest.raises(FileNotFoundError, match="Nor is it a hub id") as caught:
        weights.find(name)
    assert "minitx fetch" not in str(caught.value)


def test_a_name_cannot_turn_the_direction_of_a_picture():
    assert draw.printable("a\u202eb\u2066") == "a\ufffdb\ufffd"


def test_a_stream_that_is_closed_stays_closed():
    assert escapes.for_people(None) is None


def test_a_models_labels_are_not_read(folder, models):
    """They would be shown somewhere else."""
    model = minitx.load(Path(folder, models[0]))
    assert hostile.MARKUP not in repr(model.config)
