"""Is the suite able to fail? One deliberate break at a time, and it must notice each.

    python tests/tools/mutants.py [WORD ...] [--changed REV] [--part I/N] [--record]

WORD: only breaks whose description has one of the words. --changed: only those of files that differ
from a git revision, and the one that changes nothing. --part 2/5: every fifth, from the second on,
without the one that changes nothing, which takes as long as all tests. --record: keep in
noticed.json which test noticed each break; the next run tries that one first, which takes seconds
where the whole list of tests takes minutes.

Order: the command line, how breaks are selected (the list is in breaks.py), how a break is made in
the syntax tree, how it is tried: on a copy of the project, the likeliest tests first, up to the
first failure. Among the breaks is one that changes nothing, and must pass: the copy's file has lost
its layout and its comments, which no test may notice. Exit code 0 only if all came out as wanted.
A break whose old code does not occur exactly once is an error, so the list cannot rot.
"""

import argparse
import ast
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from operator import setitem
from pathlib import Path

from breaks import BREAKS, NOTHING

ROOT = Path(__file__).parents[2]
NOTICED = Path(__file__).with_name("noticed.json")  # what a break is -> the test that noticed it
COPIES = 2  # of the project, in which breaks are tried side by side
NOT_COPIED = (".git", ".venv*", "__pycache__", "*.egg-info", "report", "out", ".*_cache", "_build")
HOUSE = "house"  # tests of how the code looks, and of this list: neither can stand a broken file
QUICK = {"test_parity.py", "test_forward.py"}  # and they notice most
ROOMS = {"minitx": "core", "analysis": "tests"}  # folder -> folder of its tests; else the same name
# seconds for test files, which take seven minutes together; a single test has fewer, see setup.cfg
LIMIT = 1200
PYTEST = (
    sys.executable,
    "-m",
    "pytest",
    "-x",
    "-q",
    "--tb=short",
    "-rfE",
    "-p",
    "no:cacheprovider",
)
SETTINGS = {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}


def main(argv=None):
    """Try the selected breaks, two at a time; exit code 0 if every one came out as wanted."""
    options = parser().parse_args(argv)
    if errors := misplaced():
        sys.exit("\n".join(errors))
    breaks = select(options.words, options.changed, options.part)
    noticed = json.loads(NOTICED.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(COPIES) as pool:
        trees = queue.Queue()
        for i in range(COPIES):
            trees.put(copy_project(Path(folder) / f"copy{i}"))
        results = list(pool.map(partial(report, trees, noticed), breaks))
    if options.record:
        record(noticed)
    failures = [entry.what for entry, as_wanted in zip(breaks, results) if not as_wanted]
    print(f"{sum(results)} of {len(results)} came out as wanted")
    for what in failures:
        print(f"not: {what}")
    sys.exit(bool(failures))


def parser():
    """The command line."""
    line = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    line.add_argument("words", nargs="*", metavar="WORD")
    line.add_argument("--changed", metavar="REV")
    line.add_argument("--part", type=part, default=(1, 1), metavar="I/N")
    line.add_argument("--record", action="store_true")
    return line


def record(noticed, path=NOTICED):
    """Keep which test noticed which break, in the order of the list, for those still in it."""
    kept = {entry.what: noticed[entry.what] for entry in BREAKS if entry.what in noticed}
    text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def part(text):
    """'2/5' -> (2, 5)."""
    i, n = (int(number) for number in text.split("/"))
    if not 1 <= i <= n:
        raise ValueError(f"no part {text}")
    return i, n


def select(words=(), revision=None, part=(1, 1)):
    """The breaks that the command line asks for."""
    breaks = [entry for entry in BREAKS if not words or any(word in entry.what for word in words)]
    if revision is not None:
        files = changed_files(revision)
        in_files = [entry for entry in breaks if entry.file in files]
        breaks = [entry for entry in BREAKS if entry.what == NOTHING or entry in in_files]
    i, n = part
    if n > 1:
        breaks = [entry for entry in breaks if entry.what != NOTHING]
    return breaks[i - 1 :: n]


def changed_files(revision, root=ROOT):
    """Names of the files that differ from a git revision."""
    command = ["git", "diff", "--name-only", "--relative", revision, "--"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"no list of the files that changed since {revision}: {done.stderr.strip()}")
    return set(done.stdout.splitlines())


def misplaced(root=ROOT):
    """Lines of an error: the breaks that cannot be made in the files under `root`."""
    errors = []
    trees = {}
    for entry in BREAKS:
        try:
            if entry.file not in trees:
                trees[entry.file] = ast.parse((root / entry.file).read_text(encoding="utf-8"))
            change(trees[entry.file], entry)
        except (ValueError, OSError) as error:
            errors.append(f"{entry.file}: {error}")
    return errors


def broken(source, entry):
    """The source of a file with one break; ValueError unless its old code occurs exactly once."""
    tree = ast.parse(source)
    change(tree, entry)()
    return ast.unparse(tree)


def change(tree, entry):
    """A function that makes a break in a tree; ValueError unless its old code occurs once."""
    changes = [edit for scope in scopes(tree, entry.where) for edit in edits(scope, entry)]
    if len(changes) != 1:
        place = f" in {entry.where}" if entry.where else ""
        text = f"the code of {entry.what!r} occurs {len(changes)} times{place}; wanted once"
        raise ValueError(f"{text}: {entry.old!r}")
    return changes[0]


def scopes(tree, name):
    """The parts of a file in which a break is looked for."""
    if not name:
        return [tree]
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return [node for node in ast.walk(tree) if isinstance(node, definitions) and node.name == name]


def edits(scope, entry):
    """Functions without arguments; each makes the break at one place where its old code stands.

    Old and new code are read as the first of KINDS as which both parse and the old one occurs.
    """
    for parse, occurrences in KINDS:
        try:
            old, new = parse(entry.old), parse(entry.new)
        except SyntaxError:
            continue
        if changes := list(occurrences(scope, old, new)):
            return changes
    return []


def parse_expression(text):
    """`a + b`."""
    return ast.parse(text, mode="eval").body


def expressions(scope, old, new):
    """Edits of an expression, wherever it stands."""
    kind = type(old)
    for node in ast.walk(scope):
        for field, value in vars(node).items():  # a field, or its line and column
            if type(value) is kind and same(value, old):
                yield partial(setitem, vars(node), field, new)
            elif type(value) is list:
                for i, item in enumerate(value):
                    if type(item) is kind and same(item, old):
                        yield partial(setitem, value, i, new)


def parse_statements(text):
    """`a = b`, one or several; none is no code, since a block needs a statement: `pass`."""
    if not (statements := ast.parse(text).body):
        raise SyntaxError("no statement")
    return statements


def statements(scope, old, new):
    """Edits of statements that follow each other in one block."""
    for node in ast.walk(scope):
        for block in ("body", "orelse", "finalbody"):
            lines = getattr(node, block, None)
            if isinstance(lines, list):
                for place in runs(lines, old):
                    yield partial(setitem, lines, place, new)


def parse_keywords(text):
    """`a=b` in a call, one or several or none."""
    return ast.parse(f"call({text})", mode="eval").body.keywords


def keywords(scope, old, new):
    """Edits of keyword arguments."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Call):
            for place in runs(node.keywords, old):
                yield partial(setitem, node.keywords, place, new)


def parse_items(text):
    """`"a": b` in a dictionary, one or several or none, as pairs of key and value."""
    node = ast.parse(f"{{{text}}}", mode="eval").body
    if not isinstance(node, ast.Dict):
        raise SyntaxError("no items of a dictionary")
    return pairs(node)


def items(scope, old, new):
    """Edits of items of a dictionary."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Dict):
            for place in runs(pairs(node), old):
                changed = pairs(node)
                changed[place] = new
                keys, values = ([pair[i] for pair in changed] for i in (0, 1))
                yield partial(vars(node).update, keys=keys, values=values)


def pairs(node):
    """Keys and values of a dictionary."""
    return list(zip(node.keys, node.values))


KINDS = (
    (parse_expression, expressions),
    (parse_statements, statements),
    (parse_keywords, keywords),
    (parse_items, items),
)


def runs(nodes, old):
    """Slices of a list that are the same code as `old`."""
    for i in range(len(nodes) - len(old) + 1):
        place = slice(i, i + len(old))
        if old and same(nodes[place], old):
            yield place


def same(a, b):
    """Whether two syntax trees, or lists or tuples of them, are the same code."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, ast.AST):
        return all(same(getattr(a, name), getattr(b, name)) for name in a._fields)
    return a == b


def copy_project(folder):
    """A copy of the project; minitx/analysis and minitx/weights stay links."""
    skip = shutil.ignore_patterns(*NOT_COPIED)
    return shutil.copytree(ROOT, folder, symlinks=True, ignore=skip)


def report(trees, noticed, entry):
    """Try one break in a free copy and print a line: whether it came out as wanted.

    noticed: what a break is -> the test that noticed it the last time; gets the one of this time.
    """
    tree = trees.get()
    start = time.perf_counter()
    try:
        test = outcome(tree, entry, noticed.get(entry.what))
        if test:
            noticed[entry.what] = test
        as_wanted = (test is None) == (entry.what == NOTHING)
        verdict = f"noticed by {test}" if test else "unnoticed" + " as it should be" * as_wanted
    except RuntimeError as error:
        as_wanted = False
        verdict = error
    finally:
        trees.put(tree)
    seconds = time.perf_counter() - start
    print(f"{'ok ' if as_wanted else 'BAD'} {seconds:5.1f} s  {entry.what}: {verdict}", flush=True)
    return as_wanted


def outcome(tree, entry, likeliest=None):
    """Break one file in a copy of the project and run the tests: the first that fails, or None.

    likeliest: the test to try before all others, `core/test_model.py::test_name`.
    """
    path = tree / entry.file
    sound = path.read_text(encoding="utf-8")
    path.write_text(broken(sound, entry), encoding="utf-8")
    try:
        first = [[f"tests/{likeliest}"]] if exists(tree, likeliest) else []
        for tests in first + stages(tree, entry.file):
            if failure := first_failure(tree, tests):
                return failure
        return None
    finally:
        path.write_text(sound, encoding="utf-8")


def exists(tree, test):
    """Whether `core/test_model.py::test_name` is a test of this copy."""
    file, _, name = (test or "").partition("::")
    path = tree / "tests" / file
    return bool(name) and path.is_file() and f"def {name}(" in path.read_text(encoding="utf-8")


def stages(tree, file):
    """Lists of test files: those that are likely to notice a break of a file, then all others.

    Likely are those in the folder that mirrors its own, those that import it, and the quick ones.
    """
    likely = []
    others = []
    for path in sorted((tree / "tests").rglob("test_*.py")):
        if path.parent.name == HOUSE:
            continue
        name = path.relative_to(tree).as_posix()
        rank = first_reason(path, file)
        if rank is None:
            others.append(name)
        else:
            likely.append((rank, name))
    first = [name for _, name in sorted(likely)]
    return [tests for tests in (first, others) if tests]


def first_reason(path, file):
    """Number of the first reason why this test file may notice a break of `file`; None: none."""
    module = Path(file).with_suffix("")
    names = {".".join(module.parts), ".".join(["minitx", *module.parts])}
    imports = bool(names & imported(path))
    in_room = path.parent.name == ROOMS.get(module.parent.name, module.parent.name)
    quick = path.name in QUICK
    reasons = (
        in_room and module.name in path.stem.split("_"),
        in_room and quick,
        in_room and imports,
        imports,
        in_room or quick,
    )
    return reasons.index(True) if any(reasons) else None


@cache
def imported(path):
    """Names of the modules that a file may import: of `from a import b`, a and a.b."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def first_failure(tree, tests):
    """The first of these tests that fails, or None.

    RuntimeError if they do not run, or hang (see setup.cfg).
    """
    env = os.environ | SETTINGS | {"PYTHONPATH": str(tree)}
    how = {"capture_output": True, "text": True, "timeout": LIMIT}
    try:
        done = subprocess.run([*PYTEST, *tests], cwd=tree, env=env, check=False, **how)
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"")[-2000:].decode()
        raise RuntimeError(f"the tests did not end in {LIMIT} s:\n{output}") from None
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (?:tests/)?([\w./:-]+)", done.stdout, re.M)
    if done.returncode == 1 and failed:
        return failed[1]
    lines = done.stderr.splitlines()
    ours = [line for line in lines if "/_pytest/" not in line and "/pluggy/" not in line]
    message = ["the tests hung or did not run:", done.stdout[-2000:], *ours[-50:]]
    raise RuntimeError("\n".join(message))


if __name__ == "__main__":
    main()
