"""The list of breaks itself: long enough, in step with the code, and tried by a procedure that can
tell.
"""

import ast
import queue
import subprocess

import breaks
import mutants
import numpy as np
import pytest
from breaks import BREAKS, NOTHING, Break

FILES = sorted({entry.file for entry in BREAKS})


def test_the_list_is_in_step_with_the_code():
    assert mutants.misplaced() == []


def test_every_break_changes_its_file_into_other_code():
    texts = {file: (mutants.ROOT / file).read_text(encoding="utf-8") for file in FILES}
    trees = {file: ast.parse(text) for file, text in texts.items()}
    for entry in BREAKS:
        changed = ast.parse(texts[entry.file])
        mutants.change(changed, entry)()
        compile(changed, entry.file, "exec")
        assert not mutants.same(changed, trees[entry.file]), entry.what


def test_words_parts_and_changed_files_select_breaks(monkeypatch):
    assert mutants.select() == BREAKS
    (mask,) = mutants.select(["GPT-2's causal mask"])
    assert mask.what == "GPT-2's causal mask is taken for a weight"
    parts = [mutants.select(part=mutants.part(f"{i}/4")) for i in range(1, 5)]
    some = [entry for entry in BREAKS if entry.what != NOTHING]
    assert sorted(entry for part in parts for entry in part) == sorted(some)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    lines = {"minitx/masks.py": {1}, "README.md": {2}, "tests/core/test_kernels.py": {3}}
    monkeypatch.setattr(breaks, "changed_lines", lambda revision: lines)
    files = {"minitx/masks.py", "minitx/kernels.py"}
    assert mutants.select(revision="main") == [entry for entry in some if entry.file in files]
    assert {entry.file for entry in mutants.select(["padding"], "main")} == {"minitx/masks.py"}
    monkeypatch.setattr(mutants, "before", lambda: "")
    assert len({*mutants.select(revision="")}) == mutants.SAMPLE
    assert mutants.select(revision="") == mutants.select(revision="")


def test_a_list_is_read_and_every_room_has_one():
    listed = [
        ("one is two", "a.py", "ONE = 1\n\nx", "ONE = 2", ""),
        ("gone", "b.py", "x", "", "f"),
    ]
    text = """=== a.py
one is two
- ONE = 1
-
- x
+ ONE = 2
=== b.py
gone
@ f
- x
"""
    assert [*breaks.parse(text)] == listed
    rooms = {entry.file.split("/")[0] for entry in BREAKS}
    assert rooms >= {"minitx", "analysis", "weights", "lessons", "docs"}
    names = [entry.what for entry in BREAKS]
    assert len({*names}) == len(names) > 30 and names.count(NOTHING) == 1


OPERATORS = """def first(a, b):
    'A docstring.'
    if a < b:
        return take(a, b)
    a[0] = -b + 1
    done(a)
    return a


def second(a):
    return a + 1
"""


def test_operators_change_one_thing_of_a_function_that_changed(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/one.py").write_text(OPERATORS)
    monkeypatch.setattr(breaks, "A_FUNCTION", 99)
    changed = {"docs/one.py": {5}, "docs/gone.py": {1}, "README.md": {1}}
    entries = list(breaks.generated(changed, tmp_path))
    plain = ast.unparse(ast.parse(OPERATORS)).splitlines()
    changes = []
    for entry in entries:
        lines = entry.source.splitlines()
        assert "return a + 1" in entry.source
        changes.append([line.strip() for line in lines if line not in plain])
    expected = [["if a <= b:"], ["return take(b, a)"], *[["pass"]] * 3]  # guard, value, call
    expected += [[f"a[0] = {value}"] for value in ("+b + 1", "-b - 1", "-b + 2")]
    assert sorted(changes) == sorted([*expected, ["a[1] = -b + 1"]])
    assert "docs/one.py:3 first: if a < b: -> if a <= b:" in {entry.what for entry in entries}
    monkeypatch.setattr(breaks, "A_FUNCTION", 4)
    assert len(list(breaks.generated({"docs/one.py": {5}}, tmp_path))) == 4


def test_what_changed_is_a_branch_or_the_last_commit(tmp_path):
    def git(*words):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(text):
        (tmp_path / "other.py").write_text(text)
        git("add", ".")
        git("commit", "-m", text.splitlines()[-1])
        return git("rev-parse", "HEAD")

    git("init", "-b", "main")
    (tmp_path / "same.py").write_text("ONE = 1\n")
    first = commit("ONE = 1\nTWO = 2\nTHREE = 3\n")
    assert mutants.before(tmp_path) == ""
    second = commit("ONE = 1\nTWO = 3\nTHREE = 3\nFOUR = 4\n")
    assert breaks.changed_lines(first, tmp_path) == {"other.py": {2, 4}}
    assert mutants.before(tmp_path) == first
    git("checkout", "-b", "branch")
    commit("TWO = 3\nTHREE = 3\nFOUR = 4\n")
    commit("TWO = 3\nFOUR = 4\n")
    assert mutants.before(tmp_path) == second
    git("clone", "--depth", "1", f"file://{tmp_path}", "shallow")
    assert mutants.before(tmp_path / "shallow") == ""
    with pytest.raises(SystemExit, match="no list of what changed since nowhere"):
        breaks.changed_lines("nowhere", tmp_path)


ONE_IS_TWO = Break("one is two", "one.py", "ONE = 1", "ONE = 2")


def small_project(folder, test):
    """A project of one file and one test file."""
    (folder / "one.py").write_text("ONE = 1  # one\n")
    (folder / "tests").mkdir()
    (folder / "tests/test_one.py").write_text(f"from one import ONE\n{test}")


def test_a_break_is_noticed_and_the_file_is_whole_again(tmp_path):
    small_project(tmp_path, "def test_one():\n    assert ONE == 1\n")
    assert mutants.outcome(tmp_path, ONE_IS_TWO) == "test_one.py::test_one"
    equal = ONE_IS_TWO._replace(new="ONE = 3 - 2")
    assert mutants.outcome(tmp_path, equal) is None
    with pytest.raises(RuntimeError, match="(?s)hung or did not run.*SyntaxError"):
        mutants.outcome(tmp_path, ONE_IS_TWO._replace(new="return"))
    assert (tmp_path / "one.py").read_text() == "ONE = 1  # one\n"


def test_what_comes_of_a_break_is_a_word(tmp_path, capsys):
    small_project(tmp_path, "def test_one():\n    assert ONE > 0\n")
    trees = queue.Queue()
    trees.put(tmp_path)
    generated = breaks.Generated("generated", "one.py", "", "ONE = 2")
    assert mutants.report(trees, np.inf, np.inf, generated) == "look"
    assert mutants.report(trees, np.inf, np.inf, generated._replace(source="ONE = 0")) == "ok"
    assert mutants.report(trees, np.inf, np.inf, ONE_IS_TWO) == "BAD"
    assert mutants.report(trees, np.inf, np.inf, ONE_IS_TWO._replace(what=NOTHING)) == "ok"
    assert mutants.report(trees, np.inf, 0, ONE_IS_TWO) == "untried"
    (tmp_path / "tests/test_one.py").write_text("import time\ndef test_one(): time.sleep(99)\n")
    assert mutants.report(trees, np.inf, 3, ONE_IS_TWO) == "untried"
    assert "the time ended" in capsys.readouterr().out


def test_no_test_file_is_left_out_but_those_of_the_house():
    folder = mutants.ROOT / "tests"
    paths = [path for path in folder.rglob("test_*.py") if path.parent.name != "house"]
    for file in ("minitx/model.py", "analysis/maths/lags.py"):
        tests = [name for stage in mutants.stages(mutants.ROOT, file) for name in stage]
        assert sorted(tests) == sorted(f"tests/{path.relative_to(folder)}" for path in paths)
