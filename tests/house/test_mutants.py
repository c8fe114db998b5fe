"""The list of breaks itself: long enough, in step with the code, and tried by a procedure that can
tell.
"""

import ast
import json
import os
import queue
import shutil
import subprocess
import sys

import breaks
import mutants
import numpy as np
import pytest
from breaks import BREAKS, NOTHING, Break

FILES = sorted({entry.file for entry in BREAKS})


def test_the_list_is_in_step_with_the_code():
    assert mutants.misplaced() == []


def test_another_layout_leaves_the_list_valid(tmp_path):
    """No comments, long lines, single quotes, fewer parentheses."""
    for file in FILES:
        text = (mutants.ROOT / file).read_text(encoding="utf-8")
        plain = ast.unparse(ast.parse(text))
        assert plain != text
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(plain, encoding="utf-8")
    assert mutants.misplaced(tmp_path) == []


def test_every_break_changes_its_file_into_other_code():
    texts = {file: (mutants.ROOT / file).read_text(encoding="utf-8") for file in FILES}
    trees = {file: ast.parse(text) for file, text in texts.items()}
    for entry in BREAKS:
        changed = ast.parse(texts[entry.file])
        mutants.change(changed, entry)()
        compile(changed, entry.file, "exec")
        assert not mutants.same(changed, trees[entry.file]), entry.what


def test_code_that_is_no_longer_there_is_an_error(monkeypatch):
    gone = Break("a line of last year", "minitx/model.py", "last_year(x)", "x")
    monkeypatch.setattr(mutants, "BREAKS", [*BREAKS[:9], gone])
    with pytest.raises(
        SystemExit, match="minitx/model.py: the code of 'a line of last year' occurs 0 times"
    ):
        mutants.main([])
    moved = gone._replace(file="minitx/gone.py")
    monkeypatch.setattr(mutants, "BREAKS", [moved])
    with pytest.raises(SystemExit, match="minitx/gone.py: .*No such file"):
        mutants.main([])


def test_there_are_at_least_thirty_and_one_that_changes_nothing():
    names = [entry.what for entry in BREAKS]
    assert len(set(names)) == len(names) > 30
    assert names.count(NOTHING) == 1
    assert all(entry.old != entry.new for entry in BREAKS)


CODE = """
TABLE = dict(a=1, b=2)
NUMBERS = {"a": 1, 'b': "two"}

def first(x, y=3):
    '''A docstring.'''
    if x > y:  # why
        total = (x +
                 y)
        return total * 2
    return x

def second(x):
    for i in range(4):
        x = x + i
        print(f'{x}')
    return (x)

class Third:
    size = 5

    def grow(self, x):
        try:
            self.size += x
        finally:
            print("grown")
        return x
"""
PLAIN = ast.unparse(ast.parse(CODE))


@pytest.mark.parametrize(
    "old, new, line, changed",
    [
        # an expression
        ("x > y", "True", "if x > y:", "if True:"),
        ("x+y", "x", "total = x + y", "total = x"),
        ("range( 4 )", "range(5)", "in range(4)", "in range(5)"),
        ("range", "reversed", "in range(4)", "in reversed(4)"),
        ("3", "-3", "y=3", "y=-3"),
        ('"two"', "2", "'b': 'two'", "'b': 2"),
        ("{'a': 1, 'b': 'two'}", "{}", "{'a': 1, 'b': 'two'}", "{}"),
        # a statement
        ("total = (x + y)", "total = y", "total = x + y", "total = y"),
        ("return total * 2", "pass", "return total * 2", "pass"),
        ("self.size += x", "pass", "self.size += x", "pass"),
        ('print("grown")', "pass", "print('grown')", "pass"),
        ("size = 5", "size = 6", "size = 5", "size = 6"),
        # several statements
        ('x = x + i\nprint(f"{x}")', "x = i", "x = x + i\n        print(f'{x}')", "x = i"),
        ('print("grown")', "a()\nb()", "print('grown')", "a()\n            b()"),
        # a keyword argument
        ("a = 1", "a=10", "dict(a=1, b=2)", "dict(a=10, b=2)"),
        ("b=2", "", "dict(a=1, b=2)", "dict(a=1)"),
        ("a=1", "a=1, c=3", "dict(a=1, b=2)", "dict(a=1, c=3, b=2)"),
        ("a=1, b=2", "c=3", "dict(a=1, b=2)", "dict(c=3)"),
        # an item of a dictionary
        ('"a": 1', '"a": 2', "{'a': 1, 'b': 'two'}", "{'a': 2, 'b': 'two'}"),
        ('"a": 1', "", "{'a': 1, 'b': 'two'}", "{'b': 'two'}"),
        ('"b": "two"', '"c": 3, **x', "{'a': 1, 'b': 'two'}", "{'a': 1, 'c': 3, **x}"),
    ],
)
def test_each_kind_of_code_is_matched(old, new, line, changed):
    assert PLAIN.count(line) == 1
    assert mutants.broken(CODE, Break("", "", old, new)) == PLAIN.replace(line, changed)


@pytest.mark.parametrize("where", ["first", "second", "grow", "Third"])
def test_a_break_may_say_where(where):
    changed = mutants.broken(CODE, Break("", "", "return x", "return 0", where))
    before, mark, after = PLAIN.partition(f" {'grow' if where == 'Third' else where}(")
    assert changed == before + mark + after.replace("return x", "return 0", 1)


@pytest.mark.parametrize(
    "old, new, where, times",
    [
        ("return x", "return 0", "", "3 times"),
        ("x", "0", "grow", "2 times in grow"),
        ("size = 5", "size = 6", "first", "0 times in first"),
        ("return x", "return 0", "fourth", "0 times in fourth"),
        ("size", "0", "", "0 times"),  # an attribute's name is no expression
        ("a=3", "a=4", "", "0 times"),  # another value
        ("x = x + i\nreturn x", "pass", "", "0 times"),  # not side by side
        ("return total * 2", "", "", "0 times"),  # a block needs a statement
        ("x > y", "if", "", "0 times"),
        ("x >", "x", "", "0 times"),
    ],
)
def test_code_that_does_not_occur_once_is_an_error(old, new, where, times):
    with pytest.raises(ValueError, match=f"'a break' occurs {times}; wanted once"):
        mutants.broken(CODE, Break("a break", "", old, new, where))


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
    assert len({entry.what for entry in BREAKS}) == len(BREAKS)


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


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/2/3"])
def test_a_part_that_does_not_exist_is_refused(text, capsys):
    with pytest.raises(SystemExit):
        mutants.main(["--part", text])
    assert f"invalid part value: '{text}'" in capsys.readouterr().err


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


def test_the_test_that_noticed_a_break_is_tried_first_and_kept(tmp_path, capsys):
    small_project(tmp_path, "def test_one():\n    assert ONE == 1\n")
    (tmp_path / "tests/test_two.py").write_text(
        "from one import ONE\ndef test_two():\n    assert ONE < 2\n"
    )
    for test in ("test_two.py::test_two", "test_one.py::test_one"):
        assert mutants.outcome(tmp_path, ONE_IS_TWO, test) == test
    for gone in ("test_three.py::test_three", "test_one.py::test_gone", "test_one.py", None):
        assert not mutants.exists(tmp_path, gone)
    assert mutants.outcome(tmp_path, ONE_IS_TWO, gone) == "test_one.py::test_one"
    trees = queue.Queue()
    trees.put(tmp_path)
    noticed = {ONE_IS_TWO.what: "test_two.py::test_two"}
    assert (
        mutants.report(trees, noticed, np.inf, np.inf, ONE_IS_TWO._replace(new="ONE = 1.5")) == "ok"
    )
    assert "noticed by test_one.py::test_one" in capsys.readouterr().out
    assert noticed == {ONE_IS_TWO.what: "test_one.py::test_one"}


def test_what_comes_of_a_break_is_a_word(tmp_path, capsys):
    small_project(tmp_path, "def test_one():\n    assert ONE > 0\n")
    trees = queue.Queue()
    trees.put(tmp_path)
    generated = breaks.Generated("generated", "one.py", "", "ONE = 2")
    assert mutants.report(trees, {}, np.inf, np.inf, generated) == "look"
    assert mutants.report(trees, {}, np.inf, np.inf, generated._replace(source="ONE = 0")) == "ok"
    assert mutants.report(trees, {}, np.inf, np.inf, ONE_IS_TWO) == "BAD"
    assert mutants.report(trees, {}, np.inf, np.inf, ONE_IS_TWO._replace(what=NOTHING)) == "ok"
    assert mutants.report(trees, {}, np.inf, 0, ONE_IS_TWO) == "untried"
    (tmp_path / "tests/test_one.py").write_text("import time\ndef test_one(): time.sleep(99)\n")
    assert mutants.report(trees, {}, np.inf, 3, ONE_IS_TWO) == "untried"
    assert "the time ended" in capsys.readouterr().out


def test_the_witnesses_of_breaks_that_are_still_listed_are_kept(tmp_path):
    first, second = BREAKS[1].what, BREAKS[2].what
    path = tmp_path / "new/noticed.json"
    mutants.keep({second: "b.py::b", "gone": "c.py::c", first: "a.py::a"}, path)
    assert list(json.loads(path.read_text(encoding="utf-8")).items()) == [
        (first, "a.py::a"),
        (second, "b.py::b"),
    ]
    assert [file.name for file in path.parent.iterdir()] == ["noticed.json"]


def test_a_test_that_hangs_is_named_and_ended(tmp_path, monkeypatch):
    small_project(tmp_path, "def test_one():\n    while ONE > 1: pass\n")
    with (
        monkeypatch.context() as patch,
        pytest.raises(RuntimeError, match="the tests did not end in 2 s"),
    ):
        patch.setattr(mutants, "LIMIT", 2)
        mutants.outcome(tmp_path, ONE_IS_TWO)
    settings = "[tool:pytest]\nfaulthandler_timeout = 2\nfaulthandler_exit_on_timeout = true\n"
    (tmp_path / "setup.cfg").write_text(settings)
    with pytest.raises(
        RuntimeError, match=r"(?s)hung or did not run.*test_one\.py\", line 3 in test_one"
    ):
        mutants.outcome(tmp_path, ONE_IS_TWO)
    assert mutants.outcome(tmp_path, ONE_IS_TWO._replace(new="ONE = 0")) is None


def test_files_of_megabytes_that_differ_are_no_hang_in_ci(tmp_path, monkeypatch):
    """Where CI is set, pytest would show all their differences: of 9 MB, for over a minute."""
    small_project(
        tmp_path,
        "from os import urandom\ndef test_one():\n"
        "    assert ONE == 1 or urandom(9_000_000) == urandom(9_000_000)\n",
    )
    shutil.copy(mutants.ROOT / "tests/conftest.py", tmp_path / "tests")
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("BUILD_NUMBER", "1")
    monkeypatch.setattr(mutants, "LIMIT", 60)  # measured 1.5
    assert mutants.outcome(tmp_path, ONE_IS_TWO) == "test_one.py::test_one"


TESTS = {
    "core/test_forward.py": "import minitx",
    "core/test_parity.py": "import minitx",
    "core/test_text.py": "from minitx.model import Model",
    "core/test_trace.py": "import minitx",
    "experiments/test_joint.py": "import minitx",
    "experiments/test_lags.py": "from minitx.analysis.maths import factors, lags as maths",
    "house/test_house.py": "import minitx.analysis.maths.lags",
    "maths/test_angles_lags.py": "import minitx",
    "maths/test_joint.py": "import minitx",
    "maths/test_waves.py": "from minitx.analysis.maths.lags import (\n    peak,\n)",
    "pages/test_report.py": "def test():\n    from minitx.analysis import __main__ as cli",
    "test_cli.py": "import minitx",
}


@pytest.mark.parametrize(
    "file, order",
    [
        ("minitx/trace.py", "core/trace core/forward core/parity core/text"),
        ("minitx/circuits/trace.py", "core/trace core/forward core/parity core/text"),
        ("analysis/maths/lags.py", "maths/angles_lags maths/waves experiments/lags maths/joint"),
        ("analysis/__main__.py", "pages/report cli core/forward"),
        ("analysis/machine/doctor.py", "core/forward"),
    ],
)
def test_the_likeliest_tests_come_first_and_all_others_after_them(
    file, order, tmp_path, monkeypatch
):
    for name, text in TESTS.items():
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / name).write_text(text)
    monkeypatch.setattr(mutants, "LIKELY", len(order.split()))
    likely, others = mutants.stages(tmp_path, file)
    names = [name.removeprefix("tests/").removesuffix(".py") for name in likely]
    assert [name.replace("test_", "") for name in names] == order.split()
    every = [f"tests/{name}" for name in TESTS if not name.startswith("house/")]
    assert sorted(likely + others) == every


def test_a_break_is_tried_by_what_names_its_function():
    tests, _ = mutants.stages(mutants.ROOT, "minitx/kernels.py", "softmax")
    assert tests[0] == "tests/core/test_kernels.py"
    scale = next(entry for entry in BREAKS if entry.what == "GPT-2's second norm is left out")
    source = (mutants.ROOT / scale.file).read_text(encoding="utf-8")
    assert mutants.holder(source, scale) == "block"
    assert mutants.holder(source, breaks.Generated("", scale.file, "named", "")) == "named"


def test_no_test_file_is_left_out_but_those_of_the_house():
    folder = mutants.ROOT / "tests"
    paths = [path for path in folder.rglob("test_*.py") if path.parent.name != "house"]
    for file in ("minitx/model.py", "analysis/maths/lags.py"):
        tests = [name for stage in mutants.stages(mutants.ROOT, file) for name in stage]
        assert sorted(tests) == sorted(f"tests/{path.relative_to(folder)}" for path in paths)


def test_a_copy_of_the_project_has_its_links_and_imports_itself(tmp_path):
    tree = mutants.copy_project(tmp_path / "copy")
    assert all((tree / "minitx" / name).is_symlink() for name in ("analysis", "weights"))
    code = "import minitx.analysis.maths, minitx.weights; print(minitx.analysis.maths.__file__)"
    command = [sys.executable, "-c", code]
    env = os.environ | {"PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tree))
