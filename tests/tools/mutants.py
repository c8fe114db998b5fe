"""Is the suite able to fail? One deliberate break at a time, and it must notice each.

    python tests/tools/mutants.py [WORD ...] [--changed [REV]] [--part I/N] [--seconds N]

WORD: only listed breaks whose description has one of the words. --changed: those of the files that
differ from a git revision, or whose test file does, in turn with generated breaks of the functions
that differ. Without REV, what differs is the branch, or on main the last commit; a clone that lacks
the commit before tries a fixed sample. --part 2/5: every fifth, from the second on, without the one
that changes nothing, which takes as long as all tests. --seconds: what is not decided then is said.

A break is tried on a copy of the project, the likeliest tests first, by words and then by files, up
to the first failure. Among the breaks (breaks.py) is one that changes nothing, and must pass: the
copy's file has lost its layout and its comments, which no test may notice. Exit code 1 if a listed
break was not noticed. Of generated ones some change nothing that counts: those that the likeliest
tests pass are named for a reader to judge. A listed break whose old code does not occur exactly
once is an error, so the list cannot rot.
"""

import argparse
import ast
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import zip_longest
from math import inf
from pathlib import Path

import breaks
from breaks import BREAKS, NOTHING, ROOT, Generated, spread

SHORTEST = 2  # seconds, in which tests start
NEAREST = 5  # test files that try a generated break
SAMPLE = 12  # breaks that a clone without history tries
COPIES = 2  # of the project, in which breaks are tried side by side
NOT_COPIED = (".git", ".venv*", "__pycache__", "*.egg-info", "report", "out", ".*_cache", "_build")
HOUSE = "house"  # tests of how the code looks, and of this list: neither can stand a broken file
TESTS = 12  # that are tried first: those that say nearly what a break says
LIKELY = 12  # test files that are tried before all others
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# seconds for test files, which take seven minutes together; a single test has fewer, see setup.cfg
LIMIT = 1200
PYTEST = sys.executable, *"-m pytest -x -q --tb=short -rfE -p no:cacheprovider".split()
SETTINGS = {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}


def main(argv=None):
    line = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    line.add_argument("words", nargs="*", metavar="WORD")
    line.add_argument("--changed", metavar="REV", nargs="?", const="")
    line.add_argument("--part", type=part, default=(1, 1), metavar="I/N")
    line.add_argument("--seconds", type=float, default=inf)
    options = line.parse_args(argv)
    end = time.monotonic() + options.seconds
    if errors := misplaced():
        sys.exit("\n".join(errors))
    entries = select(options.words, options.changed, options.part)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(COPIES) as pool:
        trees = queue.Queue()
        for i in range(min(COPIES, len(entries))):
            trees.put(copy_project(Path(folder) / f"copy{i}"))
        verdicts = list(pool.map(partial(report, trees, end, options.seconds / 3), entries))
    print(f"{verdicts.count('ok')} of {len(verdicts)} came out as expected", end=", ")
    print(f"{verdicts.count('untried')} were untried at the end of the time")
    for entry, verdict in zip(entries, verdicts):
        if verdict in {"BAD", "look"}:
            print(f"{verdict}: {entry.what}")
    sys.exit("BAD" in verdicts)


def part(text):
    """'2/5' -> (2, 5)."""
    i, n = (int(number) for number in text.split("/"))
    if not 1 <= i <= n:
        raise ValueError(f"no part {text}")
    return i, n


def select(words=(), revision=None, part=(1, 1)):
    entries = [entry for entry in BREAKS if not words or any(word in entry.what for word in words)]
    i, n = part
    if n > 1 or revision is not None:
        entries = [entry for entry in entries if entry.what != NOTHING]
    if revision is None:
        return entries[i - 1 :: n]
    if not (revision := revision or before()):
        return spread(entries, SAMPLE)
    lines = breaks.changed_lines(revision)
    listed = [entry for entry in entries if concerns(lines, entry.file)]
    in_turn = zip_longest(listed, [] if words else breaks.generated(lines))
    return [entry for pair in in_turn for entry in pair if entry][i - 1 :: n]


def before(root=ROOT):
    """The commit that a change started from: of a branch, or of the last commit; "" if not here."""
    git = partial(subprocess.run, cwd=root, capture_output=True, text=True, check=False)
    head = git(["git", "rev-parse", "HEAD"]).stdout.strip()
    for main in ("main", "origin/main"):
        base = git(["git", "merge-base", "HEAD", main]).stdout.strip()
        if base and base != head:
            return base
    return git(["git", "rev-parse", "--verify", "--quiet", "HEAD~1"]).stdout.strip()


def concerns(changed, file):
    """Whether one of the changed files is this one, or the test file of its name."""
    tests = [ROOT / name for name in changed if re.search(r"(^|/)test_\w+\.py$", name)]
    return file in changed or any(mirrors(test, file) for test in tests)


def misplaced():
    """Lines of an error: the breaks that cannot be made."""
    errors = []
    trees = {}
    for entry in BREAKS:
        try:
            if entry.file not in trees:
                trees[entry.file] = ast.parse((ROOT / entry.file).read_text(encoding="utf-8"))
            change(trees[entry.file], entry)
        except (ValueError, OSError) as error:
            errors.append(f"{entry.file}: {error}")
    return errors


def broken(source, entry):
    """The source of a file with one break; ValueError unless its old code occurs exactly once."""
    if isinstance(entry, Generated):
        return entry.source
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
    if not name:
        return [tree]
    return [node for node in ast.walk(tree) if isinstance(node, DEFINITIONS) and node.name == name]


def edits(scope, entry):
    """Functions without arguments; each makes the break at one place where its old code stands.

    Old and new code are read by the first of PARSERS that can, and by which the old one occurs.
    """
    for parse in PARSERS:
        try:
            old, new = parse(entry.old), parse(entry.new)
        except SyntaxError:
            continue
        if changes := [*places(scope, old, new)]:
            return changes
    return []


PARSERS = (  # of code as a list of nodes; none is no statement, since a block needs one: `pass`
    lambda text: [ast.parse(text, mode="eval").body],
    lambda text: ast.parse(text or ")").body,
    lambda text: ast.parse(f"call({text})", mode="eval").body.keywords,
    lambda text: items(ast.parse(f"dict({{{text}}})", mode="eval").body.args[0]),
)


def items(node):
    if not isinstance(node, ast.Dict):
        raise SyntaxError("no items of a dictionary")
    return [*zip(node.keys, node.values)]


def places(scope, old, new):
    """Edits of a run of nodes, or of items of a dictionary, wherever it stands."""
    for node in ast.walk(scope):
        for nodes, put in lists(node):
            for i in range(len(nodes) - len(old) + 1):
                if old and same(nodes[i : i + len(old)], old):
                    yield partial(put, [*nodes[:i], *new, *nodes[i + len(old) :]])


def lists(node):
    """(nodes, what puts others in their place) of each field, and of a dictionary's items."""
    for field, value in vars(node).items():
        is_list = isinstance(value, list)
        yield value if is_list else [value], partial(put_in, node, field, is_list)
    if isinstance(node, ast.Dict):
        yield items(node), partial(put_items, node)


def put_in(node, field, is_list, nodes):
    setattr(node, field, nodes if is_list else nodes[0])


def put_items(node, pairs):
    node.keys, node.values = [key for key, _ in pairs], [value for _, value in pairs]


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


def report(trees, end, limit, entry):
    """Try one break in a free copy, print a line and return how it came out: the line's first word.

    end: of the time, of which a break has `limit` seconds; "untried" is what was not decided then.
    """
    if end - time.monotonic() < SHORTEST:
        return "untried"
    tree = trees.get()
    start = time.perf_counter()
    try:
        end = min(end, time.monotonic() + limit)
        test = outcome(tree, entry, end)
        text = f"noticed by {test}" if test else "unnoticed"
        word = "ok" if bool(test) != (entry.what == NOTHING) else "BAD"
        if not test and isinstance(entry, Generated):
            word = "look"
    except TimeoutError as error:
        word, text = "untried", error
    except RuntimeError as error:
        word, text = "look" if isinstance(entry, Generated) else "BAD", error
    finally:
        trees.put(tree)
    print(f"{word:7} {time.perf_counter() - start:5.1f} s  {entry.what}: {text}", flush=True)
    return word


def outcome(tree, entry, end=inf):
    """Break one file in a copy of the project and run the tests: the first that fails, or None."""
    path = tree / entry.file
    sound = path.read_text(encoding="utf-8")
    path.write_text(broken(sound, entry), encoding="utf-8")
    try:
        lists = stages(tree, entry.file, holder(sound, entry))
        if isinstance(entry, Generated):
            lists = [lists[0][:NEAREST]]
        elif entry.what != NOTHING:
            lists = [likely_tests(tree, entry.what, lists[0]), *lists]
        for tests in lists:
            if failure := first_failure(tree, tests, end):
                return failure
        return None
    finally:
        path.write_text(sound, encoding="utf-8")


def stages(tree, file, function=""):
    """Lists of test files: those that are likely to notice a break of a function, then all others.

    The more speaks for a file, the earlier: its name, what it imports, its folder, its words.
    """
    order = []
    for path in files_of_tests(tree):
        text = path.read_text(encoding="utf-8")
        imports = bool(module_names(file) & imported(text))
        words = [function in words_of(text), Path(file).stem in words_of(text)]
        near = (path.parent.name == room(file)) + 3 * (Path(file).stem in path.stem.split("_"))
        reasons = 2 * imports + 2 * words[0] + words[1] + near
        order.append((not mirrors(path, file), -reasons, path.relative_to(tree).as_posix()))
    tests = [name for *_, name in sorted(order)]
    return [tests for tests in (tests[:LIKELY], tests[LIKELY:]) if tests]


def likely_tests(tree, what, files):
    """The tests whose names and docstrings share most words with a break's, rare words most.

    Both tell of the same fault. Those of likely files count twice.
    """
    sentences = sentences_of(tree)
    uses = Counter(word for words in sentences.values() for word in words)
    scores = {}
    for test, words in sentences.items():
        score = sum(uses[word] ** -0.5 for word in words & plain_words(what))
        scores[test] = score * (1 + (test.partition("::")[0] in files))
    best = sorted(scores, key=scores.get, reverse=True)[:TESTS]
    return [test for test in best if scores[test]]


@cache
def sentences_of(tree):
    """{test function: words of its name and docstring}."""
    sentences = {}
    for path in files_of_tests(tree):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                name = f"{path.relative_to(tree).as_posix()}::{node.name}"
                sentences[name] = plain_words(f"{node.name} {ast.get_docstring(node)}")
    return sentences


def files_of_tests(tree):
    """All test files but those of how the code looks."""
    paths = sorted((tree / "tests").rglob("test_*.py"))
    return [path for path in paths if path.parent.name != HOUSE]


def plain_words(text):
    """The words of a sentence, or of a name, of three letters or more."""
    return {*re.findall("[a-z]{3,}", text.lower())} - {"test"}


def room(file):
    """The folder of tests that mirrors the one of a file of the code, or else `tests` itself."""
    match Path(file).parts[:-1]:
        case ["minitx", *_]:
            return "core"
        case ["analysis", folder, *_] | [folder, *_] if (ROOT / "tests" / folder).is_dir():
            return folder
    return "tests"


def mirrors(path, file):
    """Whether a test file has the name and the folder of a file of the code."""
    return path.parent.name == room(file) and Path(file).stem in path.stem.split("_")


def module_names(file):
    """Names under which a file may be imported."""
    module = Path(file).with_suffix("").parts
    return {".".join(module), ".".join(["minitx", *module])}


@cache
def words_of(text):
    return {*re.findall(r"\w+", text)}


def holder(source, entry):
    """The name of the innermost function or class that a break changes; "" outside of any."""
    if isinstance(entry, Generated):
        return entry.where
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, DEFINITIONS)]
    return next((node.name for node in reversed(nodes) if [*edits(node, entry)]), "")


@cache
def imported(text):
    """Names of the modules that a file may import: of `from a import b`, a and a.b."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def first_failure(tree, tests, end=inf):
    """The first of these tests that fails, or None.

    TimeoutError at the end of the time; RuntimeError if they do not run, or hang (see setup.cfg).
    """
    env = os.environ | SETTINGS | {"PYTHONPATH": str(tree)}
    how = {"cwd": tree, "env": env, "text": True, "start_new_session": True}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if (left := end - time.monotonic()) < SHORTEST:
        raise TimeoutError("no time was left")
    with subprocess.Popen([*PYTEST, *tests], **how, **pipes) as process:
        try:
            output, errors = process.communicate(timeout=min(LIMIT, left))
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            if left < LIMIT:
                raise TimeoutError("the time ended") from None
            text = (error.stdout or b"")[-2000:].decode()
            raise RuntimeError(f"the tests did not end in {LIMIT} s:\n{text}") from None
    if process.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (?:tests/)?([\w./:-]+)", output, re.M)
    if process.returncode == 1 and failed:
        return failed[1]
    if interrupted := re.search(r"^\S*/tests/(\S+): KeyboardInterrupt$", output, re.M):
        return interrupted[1]
    lines = errors.splitlines()
    ours = [line for line in lines if "/_pytest/" not in line and "/pluggy/" not in line]
    message = ["the tests hung or did not run:", output[-2000:], *ours[-50:]]
    raise RuntimeError("\n".join(message))


if __name__ == "__main__":
    main()
