"""The reading rules, on every file: tests/tools/reading.py measures, this file holds the limits."""

import ast

import pytest
import reading
import rooms

ROOT = rooms.ROOT
FOLDERS = "minitx", "analysis", "weights", "lessons", "docs", "benchmarks", "tests"
FILES = {str(path.relative_to(ROOT)): path for path in reading.files(*(ROOT / f for f in FOLDERS))}
LESSON = "model", "positions", "kernels", "config", "trace", "cache", "generate"
LESSON_TOKENS, FILE_TOKENS = 7500, 2500
DENSITY = {"minitx": 11, "elsewhere": 12}  # code tokens a line: of each file, of a room on average


@pytest.mark.parametrize("name", FILES)
def test_no_file_breaks_a_rule(name):
    assert [*reading.problems(reading.parse(FILES[name]))] == []


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("minitx/")])
def test_a_file_of_the_core_is_not_dense(name):
    source = reading.parse(FILES[name])
    assert source.density <= DENSITY["minitx"]
    assert source.total <= FILE_TOKENS


def test_rooms_are_not_dense():
    folders = {}
    for name, path in FILES.items():
        room = "tests" if name.startswith("tests/") else name.rpartition("/")[0]
        folders.setdefault(room, []).append(reading.parse(path))
    for folder, parsed in folders.items():
        tokens = sum(source.total for source in parsed)
        assert tokens <= DENSITY["elsewhere"] * sum(len(x.tokens) for x in parsed), folder


def test_the_lesson_is_read_in_one_sitting():
    lesson = [reading.parse(ROOT / f"minitx/{name}.py") for name in LESSON]
    assert sum(source.total for source in lesson) <= LESSON_TOKENS  # measured 7,103


@pytest.mark.parametrize("name", FILES)
def test_public_functions_and_files_have_a_docstring(name):
    """Tests are named by their claim, and short functions inside others by what they do."""
    tree = reading.parse(FILES[name]).tree
    assert ast.get_docstring(tree), "a file begins with its one concept"
    if name.startswith("tests/"):
        return
    for node in tree.body:
        if isinstance(node, reading.FUNCTION | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"public {node.name} has no docstring"


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


def test_strings_in_braces_count_as_one_token_in_every_python(tmp_path):
    path = tmp_path / "code.py"
    path.write_text('x = f"{a} and {b + c}"\n')
    assert reading.parse(path).total == 3
