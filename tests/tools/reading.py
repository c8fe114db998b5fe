"""How easily code reads, measured on its tokens and syntax tree; test_reading.py has the limits.

    python tests/tools/reading.py PATH ...    what breaks a rule in these files and folders

Docstrings, comments, blank lines, line breaks and indentation count as nothing: only what a reader
has to parse does.
"""

import ast
import io
import sys
import tokenize
from pathlib import Path
from typing import NamedTuple

LONGEST = 40  # code tokens of a statement outside tables
LINES = 30  # code lines of a function's body: about 20, and more only where it is a list
DENSEST = 11  # code tokens a line, on average of each file of CORE
CORE = Path(__file__).resolve().parents[2] / "minitx"
RETURNED = 5  # values of a returned tuple; more want names
# words that stood for too many things to tell a reader anything; `at` was the hook, an index, an x
VAGUE = set("found there one at read chosen alike shares told made dealt".split())
# function -> its keyword that users write, as patch(..., at="z"), where it says enough
PUBLIC = {"patch": "at", "fit_probe": "at", "top_examples": "at"}
LAYOUT = "COMMENT NL NEWLINE INDENT DEDENT ENCODING ENDMARKER".split()
ASSIGNMENTS = ast.Assign, ast.AugAssign, ast.AnnAssign
SIMPLE = *ASSIGNMENTS, ast.Return, ast.Expr, ast.Raise, ast.Assert
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
DEFINITIONS = *FUNCTIONS, ast.ClassDef
DISPLAY = ast.Dict | ast.List | ast.Set | ast.Tuple | ast.DictComp | ast.BinOp


class Source(NamedTuple):
    """One file: its syntax tree, its nodes by type, how many code tokens stand on each line."""

    path: Path
    tree: ast.Module
    nodes: dict
    tokens: dict

    def of(self, *types):
        for kind in types:
            yield from self.nodes.get(kind, ())

    @property
    def total(self):
        return sum(self.tokens.values())

    @property
    def density(self):
        return self.total / max(len(self.tokens), 1)

    def size(self, node):
        """Code tokens on the lines of a node."""
        lines = range(node.lineno, node.end_lineno + 1)
        return sum(self.tokens.get(line, 0) for line in lines)

    def length(self, node):
        """Code lines of a function's body."""
        first, last = node.body[0].lineno, node.end_lineno
        return sum(line in self.tokens for line in range(first, last + 1))


def parse(path):
    text = Path(path).read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = {}
    for node in ast.walk(tree):
        nodes.setdefault(type(node), []).append(node)
    source = Source(Path(path), tree, nodes, {})
    return source._replace(tokens=tokens_by_line(text, docstring_lines(source)))


def tokens_by_line(text, skipped):
    """{line: code tokens on it} of a file's text, without the lines that are skipped."""
    counts, inside = {}, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        # an f-string is one token before Python 3.12, and counts as one after it
        counts_here = name not in LAYOUT and token.start[0] not in skipped and not inside
        inside += (name == "FSTRING_START") - (name == "FSTRING_END")
        if counts_here:
            counts[token.start[0]] = counts.get(token.start[0], 0) + 1
    return counts


def docstring_lines(source):
    lines = set()
    for node in source.of(ast.Module, *DEFINITIONS):
        if ast.get_docstring(node, clean=False):
            lines.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def problems(source):
    """What breaks a rule, a line each."""
    for check in CHECKS:
        for node, text in check(source):
            yield f"{source.path}:{node.lineno}: {text}"


def undocumented(source):
    """What has no docstring: a file, a public function or class outside the tests.

    Tests are named by their claim, and short functions inside others by what they do.
    """
    if not ast.get_docstring(source.tree):
        yield f"{source.path}: a file begins with its one concept"
    if "tests" in source.path.parts:
        return
    for node in source.tree.body:
        if isinstance(node, DEFINITIONS) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                yield f"{source.path}:{node.lineno}: public {node.name} has no docstring"


def long_statements(source):
    tables = {id(node) for node in _top_level(source.tree) if _is_table(node)}
    for node in source.of(*SIMPLE):
        if id(node) not in tables and source.size(node) > LONGEST:
            yield node, f"a statement of {source.size(node)} tokens"


def _top_level(tree):
    for node in tree.body:
        yield node
        if isinstance(node, ast.ClassDef):
            yield from node.body


def _is_table(node):
    """Data written out: an assignment of a display, or a call at the top level."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    value = getattr(node, "value", None)
    return isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(value, DISPLAY | ast.Call)


def conditional_expressions(source):
    parts = []
    for node in source.of(ast.IfExp):
        parts += ((x, "a conditional expression") for x in (node.test, node.body, node.orelse))
    parts += ((node.iter, "a `for` header") for node in source.of(ast.For, ast.comprehension))
    parts += ((node.slice, "a subscript") for node in source.of(ast.Subscript))
    for part, where in parts:
        for inner in _inside(part, ast.IfExp):
            yield inner, f"a conditional expression inside {where}"


def _inside(node, kind):
    """Nodes of a type, a node itself and those that it holds."""
    return (inner for inner in ast.walk(node) if isinstance(inner, kind))


def walrus_in_calls(source):
    if ast.NamedExpr not in source.nodes:
        return
    for node in source.of(ast.Call):
        for part in (*node.args, *(keyword.value for keyword in node.keywords)):
            for inner in _inside(part, ast.NamedExpr):
                yield inner, "an assignment inside a call's arguments"


def one_line_definitions(source):
    for node in source.of(*DEFINITIONS):
        if node.lineno == node.end_lineno:
            yield node, f"{node.name} is defined on one line"


def long_functions(source):
    for node in source.of(*FUNCTIONS):
        if source.length(node) > LINES:
            yield node, f"{node.name} has a body of {source.length(node)} code lines"


def long_returns(source):
    for node in source.of(ast.Return):
        if isinstance(node.value, ast.Tuple) and len(node.value.elts) > RETURNED:
            yield node, f"{len(node.value.elts)} values are returned by position"


def vague_names(source):
    for node, name in _names(source):
        if name.strip("_") in VAGUE:
            yield node, f"{name!r} names nothing"


def _names(source):
    """(node, name) of variables, attributes, definitions and arguments that are not PUBLIC."""
    yield from ((x, x.id) for x in source.of(ast.Name) if isinstance(x.ctx, ast.Store))
    yield from ((x, x.attr) for x in source.of(ast.Attribute) if isinstance(x.ctx, ast.Store))
    yield from ((x, x.name) for x in source.of(*DEFINITIONS))
    public = {id(x) for node in source.of(*FUNCTIONS) for x in _public_arguments(node)}
    yield from ((x, x.arg) for x in source.of(ast.arg) if id(x) not in public)


def _public_arguments(node):
    """Those arguments of a function that PUBLIC names."""
    return (x for x in node.args.args if x.arg == PUBLIC.get(node.name))


def dense_files(source):
    """Files of the core have few tokens a line; their links lead elsewhere."""
    if source.density > DENSEST and source.path.resolve().is_relative_to(CORE):
        text = f"{source.density:.1f} code tokens a line; wanted {DENSEST} at most: break lines"
        yield source.tree.body[0], f"{text}, name what is long"


CHECKS = (
    long_statements,
    conditional_expressions,
    walrus_in_calls,
    one_line_definitions,
    long_functions,
    long_returns,
    vague_names,
    dense_files,
)


def files(*paths):
    """Python files of these files and folders, links left out."""
    for path in map(Path, paths):
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def main(paths):
    """Print a line for each problem; exit code 1 if there is one."""
    sources = map(parse, files(*paths or ["."]))
    lines = [line for x in sources for line in (*problems(x), *undocumented(x))]
    print(*lines, sep="\n")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
