"""CONTRIBUTING.md is enough: its example of an experiment runs, draws and passes all its tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import mutants
import pytest

from minitx.loading.files import read_json

LIST = "analysis/experiments/__init__.py"
EXAMPLE = "analysis/experiments/first_token.py"
ENTERED = '"slices", "projections",'
GENERIC = (
    *("tests/experiments/test_every_experiment.py", "tests/experiments/test_options.py"),
    *("tests/running/test_budget.py", "tests/pages/test_story.py", "tests/pages/test_report.py"),
)


def in_tree(tree, *arguments):
    """Python in a copy of the project -> its output; fails if the process does."""
    paths = os.pathsep.join([str(tree), str(tree / "tests/tools")])
    env = os.environ | {"PYTHONPATH": paths}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the project in which somebody did what CONTRIBUTING.md says, and no more."""
    tree = mutants.copy_project(tmp_path_factory.mktemp("contributed") / "minitx")
    text = (mutants.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tree / EXAMPLE).write_text(code, encoding="utf-8")
    names = (tree / LIST).read_text(encoding="utf-8")
    assert names.count(ENTERED) == 1
    entered = names.replace(ENTERED, f'{ENTERED} "first_token",')
    (tree / LIST).write_text(entered, encoding="utf-8")
    in_tree(tree, "tests/tools/readme.py")
    return tree


def contents(root):
    """{name of a file: its bytes} of all that a change of the project may touch."""
    kept = {".git", ".venv", "build", "report", "out", "_build", "minitx.egg-info"}
    files = {}
    for folder, inside, names in os.walk(root):
        inside[:] = {*inside} - kept  # thousands of files of other packages
        for path in (Path(folder, name) for name in names):
            if path.suffix in {".py", ".md", ".cfg", ".json"} and path.is_file():
                files[path.relative_to(root).as_posix()] = path.read_bytes()
    return files


def test_an_experiment_takes_three_files(tree):
    before, after = contents(mutants.ROOT), contents(tree)
    changed = {name for name, text in after.items() if before.get(name) != text}
    assert changed == {EXAMPLE, LIST, "analysis/README.md"}


def test_the_example_runs_draws_and_is_listed(tree, tmp_path):
    out = tmp_path / "out"
    small = "--documents", "3", "--tokens", "24", "--out", str(out)
    in_tree(tree, "-m", "minitx", "run", "first-token", "tiny-roberta", *small)
    record = read_json(out / "first-token.json")
    assert list(record["headline"]) == ["mean", "most", "by_layer", "documents"]
    facts = {"documents"}
    assert {name for name, number in record["headline"].items() if "null" not in number} == facts
    assert (out / "first-token.svg").read_text(encoding="utf-8").endswith("</svg>\n")
    assert "first-token" in in_tree(tree, "-m", "minitx", "list")


def test_the_example_passes_the_tests_of_all_experiments(tree):
    words = "first-token or on_the_list or has_a_cost or a_list_names or stand_by_theme"
    options = "-q", "-p", "no:cacheprovider", "-k", words
    shown = in_tree(tree, "-m", "pytest", *options, *GENERIC)
    assert re.search(r"\.{8,}", shown), shown  # eight tests or more ran


def test_the_example_is_laid_out_as_the_rules_say(tree):
    in_tree(tree, "tests/tools/reading.py", EXAMPLE)
    broken = (tree / EXAMPLE).read_text(encoding="utf-8").replace("strongest", "found")
    (tree / EXAMPLE).write_text(broken, encoding="utf-8")
    with pytest.raises(AssertionError, match="found"):
        in_tree(tree, "tests/tools/reading.py", EXAMPLE)
