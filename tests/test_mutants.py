"""The list of mutants itself: long enough, in step with the code, and tried by a procedure that can tell."""
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
    assert module.read_text() == "ONE = 1  # one\n"
    with pytest.raises(RuntimeError, match="one.py: with 'ONE = ' the tests did not run"):
        mutants.outcome(tmp_path, "one.py", "ONE = 1", "ONE = ")


def test_tests_named_after_the_broken_file_come_first():
    order = mutants.order(mutants.ROOT, mutants.CHECKPOINT)
    assert order[0] == "tests/test_checkpoint.py"
    assert set(order[1:3]) == {f"tests/{name}" for name in mutants.QUICK}
    assert "tests/test_mutants.py" not in order and len(order) == len(set(order))
