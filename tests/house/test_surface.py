"""What users see: the public names, light imports, the README's code and tables, make's targets."""

import re
import subprocess
import sys

import readme
import rooms

import minitx

ROOT = rooms.ROOT
README = (ROOT / "README.md").read_text(encoding="utf-8")
HEAVY = "scipy", "matplotlib", "huggingface_hub", "torch", "transformers", "tokenizers"
IMPORT = f"""
import sys, time
start = time.process_time()
import minitx
seconds = time.process_time() - start
print(seconds, sorted({{name.split('.')[0] for name in sys.modules}} & set({HEAVY})))
"""


def test_import_is_light():
    command = [sys.executable, "-c", IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True)
    seconds, _, loaded = done.stdout.partition(" ")
    assert loaded.strip() == "[]"
    assert float(seconds) < 0.3  # of a core; measured 0.06, of which NumPy and safetensors 0.04


def test_public_names_are_those_of_the_documentation():
    table = README.partition("<!-- surface -->")[2].partition("<!-- end -->")[0]
    assert sorted(minitx.__all__) == sorted(re.findall(r"^\| `minitx\.(\w+)`", table, re.M))
    assert all(hasattr(minitx, name) for name in minitx.__all__)
    modules = {name.removeprefix("minitx.") for name in rooms.INSIDE} | {"analysis", "weights"}
    public = {name for name in vars(minitx) if not name.startswith("_")}
    assert public - (modules - {*minitx.__all__}) == {*minitx.__all__}


def test_generated_parts_are_the_codes_own():
    assert readme.filled(README) == README, "run: python tests/tools/readme.py"


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", README):
        assert (ROOT / target).exists(), target


def test_the_readmes_python_runs(tmp_path, monkeypatch):
    """The README's Python block, run as it stands."""
    block = re.search(r"```python\n(.*?)```", README, re.S)[1]
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    assert block.count("\n") <= 16


def test_every_make_target_is_used():
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"\.PHONY: (.*)", make)[1].split()
    files = ".ci/run", ".github/workflows/ci.yml", "CONTRIBUTING.md"
    uses = README + "".join((ROOT / file).read_text(encoding="utf-8") for file in files)
    assert not [target for target in targets if f"make {target}" not in uses]
