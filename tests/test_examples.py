"""Examples in docstrings: each runs and gives what it says, and no public name is without one."""

import doctest
import importlib
import importlib.util
import inspect

import pytest
import rooms

import minitx
from minitx import analysis, circuits, names, testing, weights

MATHS = "minitx.analysis.maths"
# function -> the package its example needs, which minitx does not install
OPTIONAL = {f"{MATHS}.factors.ica": "sklearn"}
SOURCES = {name: path.read_text(encoding="utf-8") for name, path in rooms.sources().items()}
WITH_EXAMPLES = [name for name, text in SOURCES.items() if ">>> " in text]


def examples(module):
    """Examples in the docstrings of one module, those left out whose package is missing."""
    imported = importlib.import_module(module)
    for example in doctest.DocTestFinder(exclude_empty=True).find(imported, module):
        package = OPTIONAL.get(example.name)
        if package is None or importlib.util.find_spec(package):
            yield example


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_give_what_they_say(module):
    report = []
    runner = doctest.DocTestRunner(verbose=False)
    for example in examples(module):
        runner.run(example, out=report.append)
    assert not runner.failures, "".join(report)
    assert runner.tries


def without_example(names):
    """Of {name: function, class or data}: those whose docstring has no example.

    Data, as a dictionary, has none of its own: an example elsewhere names it.
    """
    code = "\n".join(
        line for text in SOURCES.values() for line in text.splitlines() if ">>>" in line
    )
    for name, value in names.items():
        if inspect.isroutine(value) or inspect.isclass(value):
            has_example = ">>> " in (value.__doc__ or "")
        else:
            has_example = name.rpartition(".")[2] in code
        if not has_example:
            yield name


def functions(module):
    """{name: function or class} of a module that its file defines without an underscore."""
    imported = importlib.import_module(module)
    return {
        f"{module}.{name}": value
        for name, value in vars(imported).items()
        if getattr(value, "__module__", None) == module and not name.startswith("_")
    }


PACKAGES = minitx, circuits, analysis, names, testing, weights


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)
def test_every_public_name_has_an_example(package):
    public = {f"{package.__name__}.{name}": getattr(package, name) for name in package.__all__}
    assert [*without_example(public)] == []


@pytest.mark.parametrize("module", [name for name in SOURCES if name.startswith(f"{MATHS}.")])
def test_every_function_of_the_maths_has_an_example(module):
    names = functions(module)
    assert len(names) > 0
    assert [*without_example(names)] == []


def test_a_name_without_example_is_noticed():
    def bare():
        """Without an example."""

    def shown():
        """>>> 1 + 1
        2
        """

    assert [*without_example({"bare": bare, "shown": shown, "x.NOT_SHOWN": {}})] == [
        "bare",
        "x.NOT_SHOWN",
    ]
