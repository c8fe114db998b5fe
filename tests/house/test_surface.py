"""What users see: public names, light imports, the documents' code and tables, make's targets."""

import json
import re
import subprocess
import sys

import going
import pytest
import readme
import rooms
import surface

import minitx
from minitx import analysis, weights
from minitx.families import FAMILIES

ROOT = rooms.ROOT
README = (ROOT / "README.md").read_text(encoding="utf-8")
SURFACE = (ROOT / "minitx/README.md").read_text(encoding="utf-8")
HEAVY = "scipy", "matplotlib", "huggingface_hub", "torch", "transformers", "tokenizers"
WITH_PYTHON = ROOT.name, "minitx", "analysis"  # folders whose document shows Python
IMPORT = f"""
import sys
import minitx
print(sorted({{name.split('.')[0] for name in sys.modules}} & set({HEAVY})))
"""


def folder(document):
    """The name of a document's test: its folder."""
    return document.parent.name


def test_import_is_light():
    command = [sys.executable, "-c", IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_are_those_of_the_documentation():
    table = SURFACE.partition("<!-- surface -->")[2].partition("<!-- end -->")[0]
    assert sorted(minitx.__all__) == sorted(re.findall(r"^\| `minitx\.(\w+)`", table, re.M))
    assert all(hasattr(minitx, name) for name in minitx.__all__)
    modules = {name.removeprefix("minitx.") for name in rooms.INSIDE} | {
        "analysis",
        "weights",
        "lessons",
    }
    public = {name for name in vars(minitx) if not name.startswith("_")}
    assert public - (modules - {*minitx.__all__}) == {*minitx.__all__}


def test_whoever_calls_the_last_release_is_understood():
    released = json.loads(surface.RELEASED.read_text(encoding="utf-8"))
    assert surface.broken(released, surface.surface()) == []
    assert [
        x for x in surface.MODULES if not any(name.startswith(f"{x}.") for name in released)
    ] == []
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


@pytest.mark.parametrize("document", [*readme.DOCUMENTS, *readme.DOORS], ids=str)
def test_generated_parts_are_the_codes_own(document):
    text = document.read_text(encoding="utf-8")
    assert readme.filled(text) == text, "run: python tests/tools/readme.py"


def test_each_generated_part_is_in_one_document():
    texts = [document.read_text(encoding="utf-8") for document in readme.DOCUMENTS]
    marks = re.findall(r"<!-- (?!end)(\w+) -->", "".join(texts))
    assert sorted(marks) == sorted({*readme.PARTS} - {"families"})
    for door in readme.DOORS:
        assert re.findall(r"<!-- (?!end)(\w+) -->", door.read_text(encoding="utf-8")) == [
            "families"
        ]


FRONT = "README.md", "PACKAGE.md", "setup.cfg", "docs/pages/index.md", "docs/pages/start.md"
LISTED = {  # what is listed -> its names
    "families": [*FAMILIES],
    "experiments": [*analysis.EXPERIMENTS],
    "bundled models": weights.bundled(),
}
MOST = 4  # names in one sentence: more is a list, which goes stale
COUNTED = re.compile(
    r"\b(two|three|four|five|six|seven|eight|nine|ten|\w+teen|\w+ty|\d+) (small |bundled )?"
    r"(families|model types|experiments|commands|bundled models|models that come along)\b"
)


def hand_written(text):
    """Lists and counts in a text, outside of its generated parts, that the code has itself."""
    text = re.sub(r"<!-- (?!end)\w+ -->.*?<!-- end -->|```.*?```", "", text, flags=re.DOTALL)
    yield from (match[0] for match in COUNTED.finditer(text.lower()))
    for sentence in re.split(r"[.:!?]\s|\n\n", text):
        words = {re.sub("[-_ ]", "", word) for word in re.findall(r"[\w-]+", sentence.lower())}
        for kind, names in LISTED.items():
            if len(words & {re.sub("[-_]", "", name) for name in names}) > MOST:
                yield f"{kind}: {' '.join(sentence.split())}"


@pytest.mark.parametrize("name", FRONT)
def test_lists_that_the_code_has_are_not_written_by_hand(name):
    assert [*hand_written((ROOT / name).read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "text, kind",
    [
        ("It reads BERT, RoBERTa, GPT-2, BART and T5.", "families: It reads"),
        ("Run `profiles`, `lags`, `cca`,\n`dial` or `chain`.", "experiments: Run"),
        (
            "Take tiny-bert, tiny-gpt2, tiny-bart, tiny-roberta, deep-roberta.",
            "bundled models: Take",
        ),
        ("There are eighteen model types.", "eighteen model types"),
        ("It reads BERT, GPT-2, BART and T5: those of the lessons.", ""),
        ("<!-- loads -->\n`bert`, `gpt2`, `bart`, `t5`, `llama`\n<!-- end -->", ""),
    ],
)
def test_a_list_that_is_written_by_hand_is_noticed(text, kind):
    lists = [*hand_written(text)]
    assert len(lists) == bool(kind) and (not kind or lists[0].startswith(kind))


@pytest.mark.parametrize("document", readme.DOCUMENTS, ids=folder)
def test_links_lead_somewhere(document):
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", text):
        assert (document.parent / target).exists(), target


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


def test_every_make_target_is_used():
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"\.PHONY: (.*)", make)[1].split()
    texts = [path.read_text(encoding="utf-8") for path in readme.DOCUMENTS]
    files = ".ci/run", ".github/workflows/ci.yml", "CONTRIBUTING.md"
    uses = "".join(texts + [(ROOT / file).read_text(encoding="utf-8") for file in files])
    assert not [target for target in targets if f"make {target}" not in uses]
