"""What goes with the code says what the code says: versions, the workflow, the page of an index."""

import configparser
import datetime
import re
import subprocess

import pytest
import rooms
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import minitx

ROOT = rooms.ROOT
MAIN = "https://raw.githubusercontent.com/minitx/minitx/main/"


def text(name):
    """A file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


SETUP = configparser.ConfigParser()
SETUP.read_string(text("setup.cfg"))
TARGETS = re.search(r"\.PHONY: (.*)", text("Makefile"))[1].split()
WORKFLOW = yaml.safe_load(text(".github/workflows/ci.yml"))
STEPS = [(name, step) for name, job in WORKFLOW["jobs"].items() for step in job["steps"]]


def requirements(lines):
    """{name: its one version} of lines as `numpy>=2.1`."""
    parsed = [Requirement(line) for line in lines.splitlines() if line and line[0] != "#"]
    return {r.name: [Version(limit.version) for limit in r.specifier] for r in parsed}


def test_the_lowest_versions_are_those_that_are_tried():
    stated = requirements(SETUP["options"]["install_requires"])
    tried = requirements(text("tests/lowest.txt"))
    assert {name: tried.get(name) for name in stated} == stated


def test_a_release_is_tested_built_twice_and_has_the_version_of_its_tag():
    jobs = yaml.safe_load(text(".github/workflows/release.yml"))["jobs"]
    commands = [step["run"] for step in jobs["build"]["steps"] if "run" in step]
    targets = [re.findall(r"make ([\w-]+)", command) for command in commands[1:4]]
    assert targets == [["test"], ["dist"], ["dist"]]
    for tag, status in (f"v{minitx.__version__}", 0), ("v0.0.1", 1):
        command = commands[0].replace("${{ github.ref_name }}", tag)
        assert subprocess.run(command, shell=True, cwd=ROOT, check=False).returncode == status
    may_write = [name for name, job in jobs.items() if "permissions" in job]
    assert may_write == ["publish"]  # which runs nothing of the project


def test_the_workflow_tries_every_python_that_is_stated():
    classifiers = SETUP["metadata"]["classifiers"]
    stated = re.findall(r"Python :: (3\.\d+)", classifiers)
    assert WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"] == stated
    assert SETUP["options"]["python_requires"] == f">={stated[0]}"
    versions = {
        step["with"]["python-version"] for _, step in STEPS if "python" in str(step.get("uses"))
    }
    assert versions - {"${{ matrix.python }}"} <= {*stated}


@pytest.mark.parametrize("name", [".github/workflows/ci.yml", "CONTRIBUTING.md"])
def test_files_and_targets_that_are_named_exist(name):
    named = text(name)
    paths = re.findall(
        r"(?<![\w/.])(?:tests|analysis|minitx|weights|\.github|\.ci)/[\w./-]*", named
    )
    paths = [path.rstrip(".") for path in paths if "_NAME." not in path]  # test_NAME.py: any test
    assert [path for path in paths if not (ROOT / path).exists()] == []
    targets = re.findall(r"`make ([\w-]+)|run: make ([\w-]+)", named)
    assert {a or b for a, b in targets} <= {*TARGETS}


def test_the_page_of_an_index_leads_out_of_it():
    """An index shows no picture and follows no link that leads into the repository."""
    page = text(SETUP["metadata"]["long_description"].removeprefix("file: "))
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert links and all(link.startswith("https://") for link in links)
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page)
    assert pictures and all((ROOT / link.removeprefix(MAIN)).is_file() for link in pictures)


def test_the_pages_python_runs(tmp_path, monkeypatch):
    block = re.search(r"```python\n(.*?)```", text("PACKAGE.md"), re.S)[1]
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(block, "PACKAGE.md", "exec"), names)
    assert names["result"].says


def test_the_newest_release_is_the_version_of_the_code():
    headings = re.findall(r"^## (.*)", text("CHANGELOG.md"), re.M)
    assert headings[0] == "Unreleased"
    releases = [
        re.fullmatch(r"([\d.]+) \(([\d-]+)\)", heading).groups() for heading in headings[1:]
    ]
    versions = [Version(version) for version, _ in releases]
    assert versions == sorted(versions, reverse=True)
    dates = [datetime.date.fromisoformat(date) for _, date in releases]
    assert dates == sorted(dates, reverse=True)
    citation = yaml.safe_load(text("CITATION.cff"))
    assert releases[0] == (minitx.__version__, citation["date-released"])
    assert citation["version"] == minitx.__version__
