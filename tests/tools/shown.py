"""Every command that the documents show, and what runs it.

    python tests/tools/shown.py [--all]      a line for each that nothing runs, or for all; counts

A command is a line of a block of code, or what stands between backticks, that begins with one of
PROGRAMS. Those of minitx are run by tests/docs/test_commands.py, but for those that it names with
their reason; targets of make by .ci/run or a workflow; programs of this project by whatever names
their file. Exit code 0 only if each has one of these.

Order: the command line, what runs a command, the commands.
"""

import re
import sys
from pathlib import Path

import documented

ROOT = documented.ROOT
sys.path.append(str(ROOT / "tests/docs"))
PROGRAMS = "make", "minitx", "python", ".venv/bin/python", "pip", "pytest", ".ci/run", "git"
FILES = ".ci/run", ".github/workflows/ci.yml", ".github/workflows/release.yml"
OTHERS = {  # how a command begins -> what runs it, or why nothing does
    ".ci/run": "the hooks of whoever commits, before each push",
    "git config core.symlinks": FILES[1],
    "make test-fast": "make test, of which it is a part",
    "make .venv/ready": "every target of make",
    ".venv/bin/python -m pytest FILE": "make test",
    "pytest test_parity.py": "tests/docs/test_ci.py",
    "python -m pytest -q -p no:cacheprovider test_model.py": "make docs, which executes the page",
    "python tests/tools/random_configs.py": "by hand, where a family is added: it needs torch",
    "python tests/tools/corpora.py": "by hand: it writes gigabytes",
    "python -c": "by hand: it needs transformers and a network",
    "python -m benchmarks": "by hand, at a release; tests/benchmarks try its parts",
    "make golden": "by hand, where a family is added: it needs torch",
    "make parity": "by hand: it needs torch",
    "make bench": "by hand, at a release: it needs torch and twenty minutes",
    "pip install pre-commit": "by hand",
    "pip install torch": "by hand",
    "python -m minitx": "tests/core/test_main.py",
    "python -m docs": "make docs",
}


def main():
    """Print what nothing runs; exit code 0 if there is nothing."""
    runs = {command: what_runs(command) for command in commands()}
    lonely = [command for command, by in runs.items() if not by]
    named = [*runs] if "--all" in sys.argv else lonely
    for command in named:
        print(f"{command:90} {runs[command] or 'NOTHING'}    ({', '.join(commands()[command])})")
    print(f"{len(runs)} commands, {len(lonely)} of which nothing runs")
    return 1 if lonely else 0


def what_runs(command):
    """What runs a command, or why nothing does; "" if neither is known."""
    first, *words = command.split()
    if first == "minitx":
        return of_minitx(command)
    for begin, by in OTHERS.items():
        if command.startswith(begin):
            return by
    if first == "make" and words:
        return next((file for file in FILES if f"make {words[0]}" in text(file)), "")
    if first == "pip":
        return "make extras" if "minitx" in command else "tests/house/test_install.py"
    return next(filter(None, map(of_file, words)), "")


def of_minitx(command):
    """The test that runs a command of minitx, or its reason not to."""
    import test_commands

    line = documented.without_shell(command)
    if test_commands.is_not_run(line):
        keys = test_commands.NOT_RUN.items()
        near = test_commands.stands_for
        return next(f"not run: {why}" for key, why in keys if key == line or near(key, line))
    return "tests/docs/test_commands.py"


def of_file(word):
    """What names the file of a program, a module of ours, or a test."""
    name = Path(word).name
    if word.startswith("tests") and not word.startswith("tests/tools"):
        return "make test"
    if not (ROOT / word).is_file() and not word.startswith("minitx."):
        return ""
    stem = name.removesuffix(".py").rpartition(".")[2]
    paths = ROOT.glob("tests/*/test_*.py"), [ROOT / "Makefile", *(ROOT / file for file in FILES)]
    named = re.compile(rf"\b{stem}\b")
    users = (p for several in paths for p in several if named.search(p.read_text("utf-8")))
    return next((p.relative_to(ROOT).as_posix() for p in users), "")


def text(file):
    """The text of a file of this project."""
    return (ROOT / file).read_text(encoding="utf-8")


def commands():
    """{command: the documents that show it}."""
    shown = {}
    begin = "|".join(map(re.escape, PROGRAMS))
    for name, document in documented.documents().items():
        blocks = re.findall(r"```[^\n]*\n(.*?)```", document, re.S)
        joined = re.sub(r"\\\n\s*", "", "\n".join(blocks))
        lines = re.findall(rf"^ *(?:- run: )?((?:{begin}) .*)", joined, re.M)
        prose = re.sub(r"```.*?```", "", document, flags=re.S)
        lines += re.findall(rf"`((?:{begin}) [^`]+)`", prose)
        for line in lines:
            shown.setdefault(documented.without_shell(" ".join(line.split())), {})[name] = True
    return {line: [*names] for line, names in shown.items()}


if __name__ == "__main__":
    sys.exit(main())
