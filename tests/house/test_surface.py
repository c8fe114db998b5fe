"""What users see: public names, light imports, the documents' code and tables, make's targets."""

import re
import subprocess
import sys

import pytest
import readme
import rooms

import minitx

ROOT = rooms.ROOT
README = (ROOT / "README.md").read_text(encoding="utf-8")
SURFACE = (ROOT / "minitx/README.md").read_text(encoding="utf-8")
HEAVY = "scipy", "matplotlib", "huggingface_hub", "torch", "transformers", "tokenizers"
WITH_PYTHON = ROOT.name, "minitx", "analysis"  # folders whose document shows Python
IMPORT = f"""
import sys, time
start = time.process_time()
import minitx
seconds = time.process_time() - start
print(seconds, sorted({{name.split('.')[0] for name in sys.modules}} & set({HEAVY})))
"""


def folder(document):
    """The name of a document's test: its folder."""
    return document.parent.name


def test_import_is_light():
    command = [sys.executable, "-c", IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True)
    seconds, _, loaded = done.stdout.partition(" ")
    assert loaded.strip() == "[]"
    assert float(seconds) < 0.3  # of a core; measured 0.06, of which NumPy and safetensors 0.04


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


def test_the_readme_is_short():
    assert README.count("\n") <= 120


@pytest.mark.parametrize("document", readme.DOCUMENTS, ids=folder)
def test_generated_parts_are_the_codes_own(document):
    text = document.read_text(encoding="utf-8")
    assert readme.filled(text) == text, "run: python tests/tools/readme.py"


def test_each_generated_part_is_in_one_document():
    texts = [document.read_text(encoding="utf-8") for document in readme.DOCUMENTS]
    marks = re.findall(r"<!-- (?!end)(\w+) -->", "".join(texts))
    assert sorted(marks) == sorted(readme.PARTS)


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
