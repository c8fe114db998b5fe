"""`python -m minitx` is the command line, and `import minitx` does not load it."""

from processes import python

import minitx


def test_the_package_is_run_as_its_command():
    assert python("-m", "minitx", "--version") == (0, f"minitx {minitx.__version__}\n")
    assert python("-m", "minitx", "list") == python("-m", "minitx.analysis", "list")
    code, said = python("-m", "minitx", "trace", "no-such-model", "a text")
    assert code == 2 and said.startswith("minitx: ")


def test_import_loads_no_part_of_the_command_line():
    code = "import sys, minitx; print([n for n in sys.modules if n.startswith('minitx.analysis')])"
    assert python("-c", code) == (0, "[]\n")
