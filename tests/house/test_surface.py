"""What users see: public names, light imports, the documents' code and tables, make's targets."""

import re

import going
import processes
import pytest
import readme
import rooms
import surface

import minitx
from minitx.loading.files import read_json

ROOT = rooms.ROOT
README = (ROOT / "README.md").read_text(encoding="utf-8")
SURFACE = (ROOT / "minitx/README.md").read_text(encoding="utf-8")
HEAVY = "scipy matplotlib huggingface_hub torch transformers tokenizers"
LIGHT = {  # what is imported -> packages that it does not load
    "minitx": f"{HEAVY} concurrent",
    "minitx.analysis": HEAVY,
    "minitx.analysis.commands": "dask distributed",
    "minitx.analysis.experiments": "matplotlib",  # takes longer than all of them
}
WITH_PYTHON = ROOT.name, "minitx", "analysis"  # folders whose document shows Python


def folder(document):
    """The name of a document's test: its folder."""
    return document.parent.name


@pytest.mark.parametrize("module", LIGHT)
def test_import_is_light(module):
    code = f"import sys, {module}; print(*{{*'{LIGHT[module]}'.split()}} & {{*sys.modules}})"
    assert processes.python("-c", code) == (0, "\n")


def test_public_names_are_those_of_the_documentation():
    table = SURFACE.partition("<!-- surface -->")[2].partition("<!-- end -->")[0]
    assert sorted(minitx.__all__) == sorted(re.findall(r"^\| `minitx\.(\w+)`", table, re.M))
    assert all(hasattr(minitx, name) for name in minitx.__all__)
    modules = {name.split(".")[1] for name in rooms.INSIDE if "." in name}
    modules |= {"analysis", "weights", "lessons"}
    public = {name for name in vars(minitx) if not name.startswith("_")}
    assert public - (modules - {*minitx.__all__}) == {*minitx.__all__}


def test_whoever_calls_the_last_release_is_understood():
    released = read_json(surface.RELEASED)
    assert surface.broken(released, surface.surface()) == []
    for module in surface.MODULES:
        assert any(name.startswith(f"{module}.") for name in released), module
    assert surface.surface()["minitx.run"][:4] == ["model", "text", "keep=", "edits="]


BEFORE = {"f": ["a", "b=", "*", "c="]}
NOW = {
    "f is gone": {},
    "f has no parameter 'c'": {"f": ["a", "b=", "d="]},
    "f needs 'd' now": {"f": ["a", "b=", "*", "c=", "d"]},
    "f needs 'b' now": {"f": ["a", "b", "*", "c="]},
    "f takes ['b', 'a'] by place; it took ['a', 'b']": {"f": ["b=", "a", "*", "c="]},
    "": {"f": ["a", "b=", "d=", "*", "c=", "e="], "g": []},
}


@pytest.mark.parametrize("noticed", NOW)
def test_what_breaks_a_caller_is_noticed(noticed):
    lines = surface.broken(BEFORE, NOW[noticed])
    assert lines == [*filter(None, [noticed])]


def test_what_goes_away_may_go_after_a_release_that_says_so():
    """A name, and a parameter's name."""
    before = {"f": ["a", "b="], "g": ["a"]}
    marked = surface.of("f", going.renamed) | surface.of("g", going.deprecated)
    after = {"f": ["a", "second="]}
    assert marked == {"f": ["a", "second|b="], "g": ["deprecated", "a"]}
    assert surface.broken(before, marked) == surface.broken(marked, after) == []
    at_once = surface.broken(before, after)
    assert at_once[0] == "f has no parameter 'b'" and at_once[-1] == "g is gone"


def test_the_readme_is_short():
    assert README.count("\n") <= 100


@pytest.mark.parametrize("document", [*readme.DOCUMENTS, *readme.PAGES], ids=str)
def test_generated_parts_are_the_codes_own(document):
    text = document.read_text(encoding="utf-8")
    assert readme.filled(text) == text, "run: python tests/tools/readme.py"


@pytest.mark.parametrize("document", readme.DOCUMENTS, ids=folder)
def test_links_lead_somewhere(document):
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", text):
        assert (document.parent / target).exists(), target


@pytest.mark.usefixtures("empty_figures")
@pytest.mark.parametrize("document", readme.DOCUMENTS, ids=folder)
def test_python_in_documents_runs(document, tmp_path, monkeypatch):
    """Each document's Python blocks, one after another, as they stand."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.S)
    assert bool(blocks) == (folder(document) in WITH_PYTHON)
    names = {}
    for block in blocks:
        exec(compile(block, str(document), "exec"), names)
    assert not blocks or isinstance(names["model"], minitx.Model)
