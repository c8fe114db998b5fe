"""Deliberate breaks of the code: those of breaks.txt in the folders of tests, and generated ones.

A breaks.txt stands beside the tests that notice its breaks:

    === minitx/config.py                     a file
    the inverse layer index starts at zero   what goes wrong
    @ attn_scale                             the function or class, if the code is elsewhere, too
    - layer + 1                              the code, which occurs once
    + max(layer, 1)                          what takes its place; without this line: nothing
"""

import ast
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
NOTHING = "nothing at all"  # a break that must not be noticed
HOOKS = "minitx/hooks.py"
CODE = ("minitx/", "analysis/", "weights/", "lessons/", "docs/")  # where breaks are generated
A_FUNCTION = 4  # generated breaks of one function, spread over it
OPPOSITES = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
)
COMPARISONS = dict(OPPOSITES) | {b: a for a, b in OPPOSITES}
SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


class Break(NamedTuple):
    """One break: `old`, which occurs once in the file, is replaced by `new`."""

    what: str  # what goes wrong
    file: str
    old: str
    new: str
    where: str = ""  # the function or class that holds `old`, where the file has it more than once


class Generated(NamedTuple):
    """A break that an operator made."""

    what: str
    file: str
    where: str  # the function
    source: str  # the broken file


def parse(text):
    """The breaks that a breaks.txt lists."""
    file, fields = "", None
    for line in text.splitlines():
        mark, rest = line[:2], line[2:]
        if line.startswith("=== "):
            file = line[4:]
        elif mark.strip() in {"-", "+", "@"}:
            fields[mark[0]].append(rest)
        else:
            if fields:
                yield made_of(fields)
            fields = {"what": line, "file": file, "-": [], "+": [], "@": []}
    yield made_of(fields)


def made_of(fields):
    """A break of the lines that list it."""
    old, new, where = ("\n".join(fields[mark]) for mark in "-+@")
    return Break(fields["what"], fields["file"], old, new, where)


BREAKS = [
    Break(NOTHING, HOOKS, "return x", "return x if layer is None else x", where="identity"),
    *(
        entry
        for path in sorted(ROOT.glob("tests/**/breaks.txt"))
        for entry in parse(path.read_text(encoding="utf-8"))
    ),
]


def changed_lines(revision):
    """{file: numbers of the lines that differ from a git revision}; a line of 0 where one went."""
    command = ["git", "diff", "-U0", "--relative", "--no-color", "--no-ext-diff", revision, "--"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"no list of what changed since {revision}: {done.stderr.strip()}")
    lines = {}
    for line in done.stdout.splitlines():
        if line.startswith("+++ "):
            numbers = lines.setdefault(line.removeprefix("+++ b/"), set())
        elif line.startswith("@@ "):
            hunk = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
            first, count = int(hunk[1]), int(hunk[2] or 1)
            numbers.update(range(first, first + max(count, 1)))
    return lines


def generated(lines, root=ROOT):
    """Breaks of the functions that have one of these lines, {file: numbers of lines}."""
    for file, numbers in sorted(lines.items()):
        if file.startswith(CODE) and file.endswith(".py") and (root / file).is_file():
            tree = ast.parse((root / file).read_text(encoding="utf-8"))
            for function in touched(tree, numbers):
                edits = [edit for node in ast.walk(function) for edit in operators(node)]
                for edit in spread(edits, A_FUNCTION):
                    yield applied(tree, file, function, *edit)


def touched(tree, numbers):
    """The innermost functions with one of these lines."""
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    holders = ([f for f in functions if f.lineno <= n <= f.end_lineno] for n in sorted(numbers))
    return {inner[-1].lineno: inner[-1] for inner in holders if inner}.values()


def spread(entries, n):
    """n of a list, from all over it; the list itself where it is shorter."""
    return [entries[i * len(entries) // n] for i in range(n)] if len(entries) > n else entries


def operators(node):
    """(node, field, new value) of each small change that makes sense at a node."""
    match node:
        case ast.Compare(ops=[first, *rest]):
            yield node, "ops", [COMPARISONS[type(first)](), *rest]
        case ast.BinOp(op=op) if type(op) in SIGNS:
            yield node, "op", SIGNS[type(op)]()
        case ast.UnaryOp(op=ast.USub()):
            yield node, "op", ast.UAdd()
        case ast.Constant(value=int(value)) if type(value) is int:
            yield node, "value", value + 1
        case ast.Call(args=[first, second, *rest]) if ast.dump(first) != ast.dump(second):
            yield node, "args", [second, first, *rest]
    for block in ("body", "orelse", "finalbody"):
        if isinstance(getattr(node, block, None), list):
            yield from deletions(node, block)


def deletions(node, block):
    """The block without one of its statements, each in turn."""
    statements = getattr(node, block)
    for i, statement in enumerate(statements):
        if deletable(statement):
            yield node, block, [*statements[:i], ast.Pass(), *statements[i + 1 :]]


def deletable(statement):
    """Whether code may run without this statement: a call, a change of a value, a guard."""
    match statement:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            return True
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            return True
        case ast.If(orelse=[]):
            return True
    return False


def applied(tree, file, function, node, field, value):
    """The file with one small change, which is undone in the tree."""
    before = getattr(node, field)
    line = getattr(node, "lineno", function.lineno)
    old = ast.unparse(function).splitlines()
    setattr(node, field, value)
    try:
        new = ast.unparse(function).splitlines()
        gone = next((line for line in old if line not in new), old[0]).strip()
        come = next((line for line in new if line not in old), new[0]).strip()
        what = f"{file}:{line} {function.name}: {gone} -> {come}"
        return Generated(what, file, function.name, ast.unparse(tree))
    finally:
        setattr(node, field, before)
