"""The list of breaks itself: in step with the code, and tried by a procedure that can tell."""

import ast

import breaks
import mutants
import pytest
from breaks import BREAKS, NOTHING, Break


def test_the_list_is_in_step_with_the_code():
    assert mutants.misplaced() == []


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


def test_tests_in_the_words_of_a_break_are_tried_first(tmp_path):
    small_project(
        tmp_path, "def test_one_is_never_two():\n    pass\n\ndef test_four():\n    pass\n"
    )
    first = mutants.likely_tests(tmp_path, ONE_IS_TWO.what, [])
    assert first == ["tests/test_one.py::test_one_is_never_two"]


def test_a_break_that_interrupts_the_tests_is_noticed(tmp_path):
    test = "def test_one():\n    if ONE == 2:\n        raise KeyboardInterrupt\n"
    small_project(tmp_path, test)
    assert mutants.outcome(tmp_path, ONE_IS_TWO) == "test_one.py:4"
