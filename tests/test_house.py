"""The house rules that a machine can check: floors, sizes, the public surface, light imports, generated tables."""
import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import readme

ROOT = Path(__file__).parents[1]
CORE = sorted((ROOT / "minitx").glob("*.py"))
PACKAGES = [*CORE, *sorted((ROOT / "analysis").rglob("*.py")), *sorted((ROOT / "weights").glob("*.py"))]

# module -> floor; imports inside the project point to the same or a lower floor, never up
FLOORS = {
    "minitx.threads": 0, "minitx.kernels": 0.2, "minitx.config": 0.5,
    "minitx.model": 1, "minitx.cache": 1, "minitx.checkpoint": 1,
    "minitx.trace": 2, "minitx.text": 2, "minitx.generate": 2, "minitx": 2.5,
    "weights": 3,
    "analysis.registry": 4, "analysis": 4, "analysis.experiments": 5, "analysis.report": 6, "analysis.__main__": 6,
}
ARRAY_MATHS = {"analysis.spectra", "analysis.profiles", "analysis.nulls", "analysis.factors", "analysis.rotation",
               "analysis.joint", "analysis.lags", "analysis.logistic", "analysis.masks", "analysis.residual",
               "analysis.stats", "analysis.words",
               "analysis.waves"}  # numpy and scipy only


def module(path):
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def floor(name):
    while name not in FLOORS:
        name = name.rpartition(".")[0]
    return FLOORS[name]


def imported(path, top_level_only=False):
    """Absolute names of the modules that a file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = module(path) if path.name == "__init__.py" else module(path).rpartition(".")[0]
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[:len(package.split(".")) - node.level + 1] if node.level else []
            name = ".".join([*base, *filter(None, [node.module])])
            is_package = (ROOT / name.replace(".", "/") / "__init__.py").exists()
            yield from ([f"{name}.{alias.name}" for alias in node.names] if is_package and node.level else [name])


@pytest.mark.parametrize("path", PACKAGES, ids=module)
def test_imports_point_down(path):
    ours = [name for name in imported(path) if name.split(".")[0] in ("minitx", "analysis", "weights")]
    if module(path) in ARRAY_MATHS:
        assert not [name for name in ours if name not in ARRAY_MATHS]
    assert not [name for name in ours if floor(name) > floor(module(path))]


@pytest.mark.parametrize("path", PACKAGES, ids=module)
def test_heavy_packages_stay_where_they_belong(path):
    top, anywhere = set(imported(path, top_level_only=True)), set(imported(path))
    assert not {name for name in top if name.split(".")[0] in ("matplotlib", "torch", "transformers")} or \
        module(path) == "weights.train"
    if path in CORE:
        assert not {name for name in top if name.startswith("scipy")}
        assert not {name for name in anywhere if name.split(".")[0] in ("matplotlib", "torch", "huggingface_hub")}
    anywhere.discard("urllib.parse")  # quotes a path, opens nothing
    if module(path) != "weights.fetch":
        assert not {name for name in anywhere
                    if name.split(".")[0] in ("huggingface_hub", "requests", "httpx", "urllib", "socket")}


def test_core_is_read_in_one_sitting():
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in CORE) < 1000


@pytest.mark.parametrize("path", PACKAGES, ids=module)
def test_functions_fit_a_glance(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            doc = (ast.get_docstring(node, clean=False) or "").count("\n") + 1 if ast.get_docstring(node) else 0
            lines = node.end_lineno - node.lineno + 1 - doc
            assert lines <= 26, f"{node.name} has {lines} lines"
            assert doc or lines <= 8 or node.name.startswith("_"), f"public {node.name} has no docstring"


@pytest.mark.parametrize("path", [*PACKAGES, *sorted((ROOT / "tests").glob("*.py"))], ids=lambda path: path.stem)
def test_lines_fit_a_screen(path):
    assert not [n for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if len(line) > 120]


def test_model_knows_no_families():
    assert not re.search("family|bert|gpt", (ROOT / "minitx/model.py").read_text(encoding="utf-8").replace(
        "# GPT-2", "").replace("# BERT, RoBERTa", ""), re.I)


def test_no_pickle_is_loaded():
    for path in PACKAGES:
        assert not re.search(r"\bpickle\.|torch\.load|allow_pickle=True", path.read_text(encoding="utf-8")), path


def test_import_is_light():
    heavy = "scipy", "matplotlib", "huggingface_hub", "torch", "transformers", "tokenizers"
    code = ("import sys, time; start = time.process_time(); import minitx; "
            f"print(time.process_time() - start, sorted({{m.split('.')[0] for m in sys.modules}} & {set(heavy)}))")
    seconds, _, loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT,
                                        timeout=200, check=True).stdout.partition(" ")
    assert loaded.strip() == "[]"
    assert float(seconds) < 0.3  # of a core; measured 0.06, of which NumPy and safetensors 0.04


def test_surface_is_what_the_readme_lists():
    import minitx
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("<!-- surface -->")[2].partition("<!-- end -->")[0]
    assert sorted(minitx.__all__) == sorted(re.findall(r"^\| `minitx\.(\w+)`", table, re.M))
    assert all(hasattr(minitx, name) for name in minitx.__all__)
    assert not [name for name in vars(minitx) if not name.startswith("_") and name not in minitx.__all__
                and f"minitx.{name}" not in map(module, CORE)]


def test_readme_tables_are_the_codes_own():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.filled(text) == text, "run: python tests/readme.py"


def test_readme_python_runs(tmp_path, monkeypatch):
    """The README's Python block, run as it stands."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```python\n(.*?)```", text, re.S)[1]
    code = compile(block, "README.md", "exec")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert block.count("\n") <= 16


def test_every_make_target_is_used():
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"\.PHONY: (.*)", make)[1].split()
    uses = (ROOT / ".ci/run").read_text(encoding="utf-8") + (ROOT / "README.md").read_text(encoding="utf-8")
    assert not [target for target in targets if f"make {target}" not in uses]
