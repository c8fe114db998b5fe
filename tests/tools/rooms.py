"""The rooms of the house and which imports from which: `python tests/tools/rooms.py` prints them.

A room is a folder of modules (minitx/ with its families/), or the command line.
"""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
# room -> floor: a room imports from rooms on lower floors only
FLOORS = {
    "minitx.weights": 0,
    "minitx": 1,
    "minitx.analysis.maths": 1,
    "minitx.analysis.texts": 1,
    "minitx.analysis.machine": 1,
    "minitx.analysis.drawing": 2,
    "minitx.analysis.contract": 3,
    "minitx.analysis.running": 4,
    "minitx.analysis.measures": 5,
    "minitx.analysis.toys": 5,
    "minitx.analysis.parity": 5,
    "minitx.analysis.atlas": 6,
    "minitx.analysis.tuning": 6,
    "minitx.analysis.experiments": 7,
    "minitx.analysis.pages": 7,
    "minitx.analysis.live": 8,
    "minitx.analysis.forming": 8,
    "minitx.analysis": 9,  # the command line
    "minitx.weights.training": 10,
    "minitx.__main__": 10,  # python -m minitx
    "minitx.lessons": 10,
    "docs": 12,
    "benchmarks": 11,
}
# (module, a module above it that one of its functions imports when it is called): no part of what
# `import minitx` loads, and so no arrow
ON_CALL = {
    ("minitx", "minitx.analysis.live.server"),  # minitx.serve
    ("minitx", "minitx.analysis.pages.inline"),  # minitx.explore
    ("minitx.analysis.commands.lesson", "minitx.lessons.command"),  # minitx lesson
    ("minitx.circuits.search", "minitx.analysis.pages.circuit"),  # Circuit.figure, Circuit.save
    ("minitx.inputs", "minitx"),  # a model's name is loaded
    ("minitx.inputs", "minitx.arrays"),  # is it a Model?
    ("minitx.points", "minitx.names"),  # another library's name of a point
    ("minitx.research.examples", "minitx.analysis.texts.corpus"),
    ("minitx.research.sae_texts", "minitx.analysis.texts.corpus"),
    ("minitx.research.labelled", "minitx.analysis.maths.logistic"),
    ("minitx.research.labelled", "minitx.analysis.texts.formats"),
    ("minitx.research.passes", "minitx.analysis.measures.document_features"),
    ("minitx.research.probe", "minitx.analysis.maths.logistic"),
    ("minitx.testing", "minitx.analysis.parity.compare"),
    ("minitx.testing", "minitx.analysis.parity.reference"),
}
# floor -> modules of minitx: the same floor is allowed here, as long as there is no circle
MODULES = {
    0: """
        memory activations kernels side_by_side config heads masks cache hooks longer config_parts
        machine.interrupt machine.progress machine.deprecation machine.threads machine.show
        machine.mapped words.japanese words.byte_pieces words.tokenizer_kinds loading.held_heads
        generation.constraints
    """,
    1: """
        head_weights distances positions rotary arrays model inputs images sampling
        words.pieces words.text words.tokenizer_settings learning.derivatives generation.prompts
        loading.joined loading.files loading.families loading.labels loading.stored_shapes
        loading.checkpoint loading.finite loading.in_memory
    """,
    2: """
        points names edits trace cost generate sweep similarity resized circuits research learning
        generation.beams generation.steps
    """,
}
INSIDE = {f"minitx.{name}": floor for floor in MODULES for name in MODULES[floor].split()}
INSIDE |= {"minitx": 3, "minitx.testing": 4}


def sources():
    """{module: file} of everything that is installed, of benchmarks/ and of docs/."""
    folders = {name: f"minitx.{name}" for name in ("analysis", "weights", "lessons")}
    folders |= {name: name for name in ("minitx", "benchmarks", "docs")}
    modules = {}
    for folder, package in folders.items():
        for path in sorted((ROOT / folder).rglob("*.py")):  # does not follow links
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            modules[".".join([package, *parts]).removesuffix(".__init__")] = path
    return modules


def room(module):
    while module not in FLOORS:
        module = module.rpartition(".")[0]
    return module


def floor(module):
    while module not in INSIDE:
        module = module.rpartition(".")[0]
    return INSIDE[module]


def imports(module, path, top_level_only=False):
    """Absolute names of all that a module imports: modules, and names in them."""
    everywhere, at_the_top = _imports(module, path)
    return at_the_top if top_level_only else everywhere


@cache
def _imports(module, path):
    """The imports anywhere in a module, and those at its top level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return tuple(tuple(_imported(nodes, package)) for nodes in (ast.walk(tree), tree.body))


def _imported(nodes, package):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


@cache
def module_arrows():
    """(module, module that it imports) inside the project, without those of ON_CALL."""
    return tuple(_module_arrows(sources()))


def _module_arrows(modules):
    for module, path in modules.items():
        for name in imports(module, path):
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules and target != module and (module, target) not in ON_CALL:
                yield module, target


def arrows():
    """{(room, room that it imports from)}."""
    pairs = ((room(module), room(target)) for module, target in module_arrows())
    return {(a, b) for a, b in pairs if a != b}


def circle(pairs):
    """Names that import each other in a circle, or []."""
    pairs = set(pairs)
    left = {name for pair in pairs for name in pair}
    while left:
        free = {name for name in left if not any(a == name and b in left for a, b in pairs)}
        if not free:
            return sorted(left)
        left -= free
    return []


def main():
    for name, floor in FLOORS.items():
        targets = sorted(b for a, b in arrows() if a == name)
        print(f"{floor}  {name:28} -> {', '.join(targets) or '-'}")
    print(f"{len(FLOORS)} rooms, {len(arrows())} arrows")


if __name__ == "__main__":
    main()
