"""The list of mutants itself: long enough, in step with the code, and tried by a procedure that can tell."""
import shutil

import mutants
import pytest


def test_the_list_is_in_step_with_the_code():
    assert mutants.misplaced() == []


def test_a_line_that_is_no_longer_there_is_an_error(monkeypatch):
    gone = ("a line of last year", mutants.MODEL, "a line of last year", "")
    monkeypatch.setattr(mutants, "MUTANTS", [*mutants.MUTANTS, gone])
    with pytest.raises(SystemExit, match="minitx/model.py: the text of 'a line .*' is there 0 times"):
        mutants.main([])


def test_there_are_at_least_thirty_and_one_that_changes_nothing():
    names = [what for what, *_ in mutants.MUTANTS]
    assert len(set(names)) == len(names) > 30
    assert names.count(mutants.NOTHING) == 1
    assert all(old != new for *_, old, new in mutants.MUTANTS)


def test_a_break_is_noticed_and_the_file_is_whole_again(tmp_path):
    module, test = tmp_path / "one.py", tmp_path / "tests" / "test_one.py"
    module.write_text("ONE = 1  # one\n")
    test.parent.mkdir()
    test.write_text("from one import ONE\ndef test_one():\n    assert ONE == 1\n")
    assert mutants.outcome(tmp_path, "one.py", "ONE = 1", "ONE = 2") == "test_one.py::test_one"
    assert mutants.outcome(tmp_path, "one.py", "# one", "# still one") is None
    with pytest.raises(RuntimeError, match="(?s)hung or did not run.*SyntaxError"):
        mutants.outcome(tmp_path, "one.py", "ONE = 1", "ONE =")
    assert module.read_text() == "ONE = 1  # one\n"


def test_a_test_that_hangs_is_named_and_ended(tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text("ONE = 1\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_one.py").write_text("from one import ONE\ndef test_one():\n    while ONE > 1: pass\n")
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="the tests did not end in 5 s"):
        patch.setattr(mutants, "LIMIT", 5)
        mutants.outcome(tmp_path, "one.py", "ONE = 1", "ONE = 2")
    settings = "[tool:pytest]\nfaulthandler_timeout = 5\nfaulthandler_exit_on_timeout = true\n"
    (tmp_path / "setup.cfg").write_text(settings)
    with pytest.raises(RuntimeError, match=r"(?s)hung or did not run.*test_one\.py\", line 3 in test_one"):
        mutants.outcome(tmp_path, "one.py", "ONE = 1", "ONE = 2")
    assert mutants.outcome(tmp_path, "one.py", "ONE = 1", "ONE = 0") is None


def test_files_of_megabytes_that_differ_are_no_hang_in_ci(tmp_path, monkeypatch):
    """Where CI is set, pytest would look for all their differences: of 9 MB, for more than a minute."""
    (tmp_path / "one.py").write_text("ONE = 1\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_one.py").write_text("from os import urandom\nfrom one import ONE\ndef test_one():\n"
                                                "    assert ONE == 1 or urandom(9_000_000) == urandom(9_000_000)\n")
    shutil.copy(mutants.ROOT / "tests/conftest.py", tmp_path / "tests")
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("BUILD_NUMBER", "1")
    monkeypatch.setattr(mutants, "LIMIT", 60)  # measured 1.5
    assert mutants.outcome(tmp_path, "one.py", "ONE = 1", "ONE = 2") == "test_one.py::test_one"


def test_the_likeliest_tests_come_first_and_all_others_after_them():
    first, rest = mutants.stages(mutants.ROOT, mutants.CHECKPOINT)
    assert set(first) == {"test_checkpoint.py", *mutants.QUICK}
    every = {path.name for path in (mutants.ROOT / "tests").glob("test_*.py")}
    assert {*first, *rest} == every - {"test_mutants.py"} and not {*first} & {*rest}
