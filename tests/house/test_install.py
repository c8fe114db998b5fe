"""Installed as a wheel and editable, beside a user's own files; an sdist gives the same wheel.

Both are the same bytes whenever and wherever they are built (tools/dist.py).

Each is installed into a fresh environment outside the checkout (the packages that minitx needs are
taken from the environment of the tests, so that nothing is downloaded).
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from configparser import ConfigParser
from pathlib import Path

import dist
import extras
import pytest
import rooms

SKIPPED = ".git", ".venv*", "__pycache__", "*.egg-info", "report", "out", "build", "dist", "golden"
EPOCH = 1_700_000_000
CALLED = """
import contextlib, io, json
from minitx.analysis.__main__ import main
printed = {{}}
for command in {}:
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        assert main(command.split()) == 0, command
    printed[command] = said.getvalue()
print(json.dumps(printed))
"""
# command -> a word that it prints
COMMANDS = {
    "--version": "minitx",
    "list --lang ja": "同梱モデル",
    "run predict tiny-bert --out out": "predict.svg",
    "trace tiny-gpt2 Hello --keep q": "queries",
    "explore tiny-bert Hello --out out": "explore.html",
    "report --help": "MODEL",
    "published --help": "MODEL",
    "compare --help": "--experiment",
    "fetch --help": "--revision",
    "doctor --help": "--json",
}


def run(*command, cwd):
    """A process's output; the test fails with its errors if it fails."""
    options = {"capture_output": True, "text": True, "timeout": 200}
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=clean, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A copy of the tree in a folder that is called minitx, as git clone makes it."""
    above = tmp_path_factory.mktemp("above")
    skip = shutil.ignore_patterns(*SKIPPED)
    tree = shutil.copytree(rooms.ROOT, above / "minitx", symlinks=True, ignore=skip)
    return changed_in(2005, tree)


def changed_in(year, tree):
    """The same tree, whose files were changed in some year."""
    seconds = (year - 1970) * 365.25 * 24 * 3600
    for path in tree.rglob("*"):
        os.utime(path, (seconds, seconds), follow_symlinks=False)
    return tree


@pytest.fixture(scope="module")
def wheel(clone, tmp_path_factory):
    """The wheel of the clone."""
    [file] = dist.build(clone, tmp_path_factory.mktemp("wheel"), EPOCH, ["wheel"])
    return file


@pytest.fixture(scope="module", params=["wheel", "editable"])
def python(request, clone, wheel, tmp_path_factory):
    """The interpreter of a new environment in which minitx is installed."""
    folder = tmp_path_factory.mktemp(request.param)
    run(sys.executable, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
    python = folder / "env/bin/python"
    purelib = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd="/")
    # names in a .pth of a folder that is not the environment's own are not followed any further
    needed = Path(purelib.strip()) / "needed.pth"
    needed.write_text(sysconfig.get_path("purelib") + "\n")
    source = ["--editable", clone] if request.param == "editable" else [wheel]
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps"]
    options = ["--no-build-isolation", "--no-compile", "--quiet"]
    run(*pip, *options, *source, cwd=folder)
    return python


@pytest.mark.release
def test_an_sdist_gives_the_same_wheel_and_itself(clone, tmp_path):
    """To the byte, elsewhere and years later."""
    (tmp_path / "built").mkdir()
    wheel, archive = dist.build(clone, tmp_path / "built", EPOCH)
    assert wheel.stat().st_size < 40e6  # measured 31.8 MB, of which the bundled models are 29
    with tarfile.open(archive) as file:
        assert {(x.mtime, x.uid, x.uname) for x in file} == {(EPOCH, 0, "")}
        file.extractall(tmp_path, filter="data")
    tree = changed_in(2024, tmp_path / archive.name.removesuffix(".tar.gz"))
    again, archived_again = dist.build(tree, tmp_path, EPOCH)
    assert contents(again) == contents(wheel)
    assert again.read_bytes() == wheel.read_bytes()
    assert archived_again.read_bytes() == archive.read_bytes()


def test_a_release_has_what_was_committed(tmp_path):
    """Not what an earlier build has left, which setuptools would take along."""
    checkout = tmp_path / "checkout"
    for name in ("minitx/model.py", "build/lib/minitx/old.py"):
        (checkout / name).parent.mkdir(parents=True)
        (checkout / name).write_text("committed\n")
    author = "-c", "user.name=a", "-c", "user.email=a@b.c"
    run("git", "init", "--quiet", checkout, cwd=tmp_path)
    run("git", "add", "minitx", cwd=checkout)
    run("git", *author, "commit", "--quiet", "--message", "first", cwd=checkout)
    (checkout / "minitx/model.py").write_text("not yet committed\n")
    dist.export(checkout, tmp_path / "tree")
    files = [path for path in (tmp_path / "tree").rglob("*") if path.is_file()]
    assert [path.read_text() for path in files] == ["committed\n"]


def test_each_extra_is_tried_alone():
    settings = ConfigParser()
    settings.read(rooms.ROOT / "setup.cfg", encoding="utf-8")
    assert {*extras.USES} - {extras.NONE} == {*settings["options.extras_require"]}
    assert {*extras.LARGE, *extras.FOR_ALL, *extras.NOT_MINITX} <= {*extras.USES}


def contents(wheel):
    """{name: bytes} of the files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def beside(tmp_path):
    """A user's folder with files that are called as folders of this project."""
    (tmp_path / "analysis.py").write_text("MINE = 'analysis of the user'\n")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/of-mine.txt").write_text("data\n")
    return tmp_path


def test_the_users_own_module_stays_the_users(python, beside):
    printed = run(python, "-c", "import analysis; print(analysis.MINE)", cwd=beside)
    assert printed == "analysis of the user\n"


def test_all_parts_are_imported_beside_the_users_files(python, beside):
    code = (
        "import minitx; from minitx import analysis, weights; "
        "from minitx.analysis.measures import losses; print(minitx.load('tiny-bert').config.n_ctx)"
    )
    assert run(python, "-c", code, cwd=beside).strip().isdecimal()


def test_commands_work_beside_the_users_files(python, beside):
    """The program itself, and what it calls with each of the others."""
    shell = python.with_name("minitx")
    assert "tiny-roberta" in run(shell, "list", cwd=beside)
    printed = json.loads(run(python, "-c", CALLED.format([*COMMANDS]), cwd=beside))
    assert [command for command, word in COMMANDS.items() if word not in printed[command]] == []


def test_from_the_folder_above_a_clone(python, clone):
    """There `minitx` is a folder without __init__.py, which no import may take for a package."""
    code = "import minitx; print(minitx.__version__, len(minitx.__all__))"
    version, names = run(python, "-c", code, cwd=clone.parent).split()
    assert version[0].isdecimal() and int(names) > 5
    assert "tiny-roberta" in run(python, "-m", "minitx.analysis", "list", cwd=clone.parent)


def test_an_installation_has_all_files(python, beside):
    """Modules, the sample text, the page, the bundled checkpoints; no tests, no benchmarks.

    A wheel has no training programs either; an editable installation is the checkout.
    """
    code = "import minitx; print(minitx.__path__[0])"
    folder = Path(run(python, "-c", code, cwd=beside).strip())
    assert (folder / "analysis/texts/sample.txt").is_file()
    assert (folder / "analysis/pages/page/explore.js").is_file()
    assert (folder / "weights/tiny-bert/model.safetensors").is_file()
    assert (folder / "weights/recurrent-toy/model.safetensors").is_file()
    lessons = {path.relative_to(rooms.ROOT) for path in (rooms.ROOT / "lessons").rglob("*.md")}
    assert {name for name in lessons if not (folder / name).is_file()} == set()
    assert (folder / "lessons/page/page.css").is_file()
    modules = {module for module in rooms.sources() if module.startswith("minitx")}
    paths = [module.replace(".", "/").removeprefix("minitx").lstrip("/") for module in modules]
    missing = [p for p in paths if not (folder / f"{p}.py").is_file() and not (folder / p).is_dir()]
    in_checkout = folder.parent.name == "minitx"  # the clone, not site-packages
    training = [p for p in paths if p.startswith("weights/training")]
    assert missing == ([] if in_checkout else training) and len(training) > 5
    assert not (folder / "tests").exists() and not (folder / "benchmarks").exists()
