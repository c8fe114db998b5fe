"""The reading rules, on every file: tests/tools/reading.py measures, this file holds the limits."""

from typing import NamedTuple

import pytest
import reading
import rooms

ROOT = rooms.ROOT
FOLDERS = "minitx", "analysis", "weights", "lessons", "docs", "benchmarks", "tests"
FILES = {str(path.relative_to(ROOT)): path for path in reading.files(*(ROOT / f for f in FOLDERS))}
LESSON = "model", "positions", "kernels", "config", "trace", "cache", "generate"
LESSON_TOKENS, FILE_TOKENS = 7500, 2500
DENSITY = 12  # code tokens a line of a room, on average


class Measured(NamedTuple):
    """What the rules say of one file."""

    problems: list
    undocumented: list
    tokens: int
    lines: int


@pytest.fixture(scope="module")
def measured():
    """{name: Measured} of all files, each parsed once."""
    return {name: measure(reading.parse(path)) for name, path in FILES.items()}


def measure(source):
    problems, undocumented = reading.problems(source), reading.undocumented(source)
    return Measured([*problems], [*undocumented], source.total, len(source.tokens))


def test_no_file_breaks_a_rule(measured):
    assert [line for file in measured.values() for line in file.problems] == []


def test_no_file_of_the_core_is_large(measured):
    core = {name: file for name, file in measured.items() if name.startswith("minitx/")}
    assert [name for name, x in core.items() if x.tokens > FILE_TOKENS] == []
    assert len(core) > 40


def test_rooms_are_not_dense(measured):
    rooms = {}
    for name, file in measured.items():
        room = "tests" if name.startswith("tests/") else name.rpartition("/")[0]
        rooms.setdefault(room, []).append(file)
    for room, files in rooms.items():
        tokens, lines = sum(x.tokens for x in files), sum(x.lines for x in files)
        assert tokens <= DENSITY * lines, room


def test_the_lesson_is_read_in_one_sitting(measured):
    tokens = {name: measured[f"minitx/{name}.py"].tokens for name in LESSON}
    assert sum(tokens.values()) <= LESSON_TOKENS, tokens


def test_public_functions_and_files_have_a_docstring(measured):
    assert [line for file in measured.values() for line in file.undocumented] == []


# what a rule finds, and what it lets pass: code -> problems
CASES = {
    "x = [" + "a, " * 20 + "]": [],  # a table at the top level
    "def f():\n    return [" + "a, " * 20 + "]": ["a statement of 43 tokens"],
    "def f(a):\n    return (1 if a else 2) if a else 3": [
        "a conditional expression inside a conditional expression"
    ],
    "for x in a if b else c:\n    pass": ["a conditional expression inside a `for` header"],
    "x = y[1 if a else 2]": ["a conditional expression inside a subscript"],
    "f((y := 1))": ["an assignment inside a call's arguments"],
    "if (y := 1):\n    pass": [],
    "def f(): return 1": ["f is defined on one line"],
    "def f():\n    return 1, 2, 3, 4, 5, 6": ["6 values are returned by position"],
    "def f():\n" + "    g()\n" * 31: ["f has a body of 31 code lines"],
    "def f():\n    '''" + "word\n" * 40 + "'''\n" + "    g()\n" * 30: [],
    "found = 1": ["'found' names nothing"],
    "def read(at):\n    pass": ["'read' names nothing", "'at' names nothing"],
    "def patch(at, one):\n    pass": ["'one' names nothing"],  # a public keyword
    "x.one = 1": ["'one' names nothing"],
    "x = found.read(at)": [],  # another's names
}


@pytest.mark.parametrize("code", CASES)
def test_the_rules_can_tell(code, tmp_path):
    path = tmp_path / "code.py"
    path.write_text(code + "\n")
    problems = [line.split(": ", 1)[1] for line in reading.problems(reading.parse(path))]
    assert sorted(problems) == sorted(CASES[code])


def test_a_dense_file_is_one_of_the_core(tmp_path, monkeypatch):
    path = tmp_path / "code.py"
    path.write_text("x = [" + "a, " * 20 + "]\n")
    assert [*reading.problems(reading.parse(path))] == []
    monkeypatch.setattr(reading, "CORE", tmp_path)
    [line] = reading.problems(reading.parse(path))
    assert "44.0 code tokens a line; wanted 11 at most" in line


def test_javascript_has_100_columns_outside_of_texts():
    """Biome lays out code, and leaves comments and texts as they are."""
    programs = [*(ROOT / "analysis/pages/page").glob("*.js"), *(ROOT / "lessons/page").glob("*.js")]
    own = [path for path in programs if not path.name.endswith(".min.js")]
    lines = [line for path in own for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if len(line) > 100 and not set(line) & set('"`')] == []
    assert len(own) > 40
