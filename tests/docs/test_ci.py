"""The workflow of the page on CI, which executes it: what it says of a model that was changed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rooms
import yaml
from safetensors.numpy import load_file, save_file

PAGE = (rooms.ROOT / "docs/pages/howto/ci.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"%%writefile (\S+)\n(.*?)```", PAGE, re.S))  # as the page writes them
WORKFLOW = yaml.safe_load(FILES["parity.yml"])
STEPS = [step["run"] for step in WORKFLOW["jobs"]["parity"]["steps"] if "run" in step]
INSTALLED, *TRIED = STEPS


@pytest.fixture
def project(tmp_path):
    """A model, what was recorded of it, and a test."""
    for name in ("make_model.py", "test_parity.py"):
        (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    subprocess.run([sys.executable, "make_model.py"], cwd=tmp_path, check=True)
    recorded = rooms.ROOT / "tests/golden/parity/page-on-ci.safetensors"
    shutil.copy(recorded, tmp_path / "reference.safetensors")
    return tmp_path


def run(step, project):
    """The status of a step, and what it said."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    options = {"cwd": project, "env": os.environ | {"PATH": path}, "timeout": 200}
    done = subprocess.run(step, shell=True, capture_output=True, text=True, check=False, **options)
    return done.returncode, done.stdout + done.stderr


def test_the_packages_are_those_that_the_steps_need():
    assert INSTALLED == "pip install minitx pytest"
    assert [step.split()[0] for step in TRIED] == ["minitx", "pytest"]


def test_a_model_that_agrees_passes(project):
    ended = {step: run(step, project) for step in TRIED}
    assert {status for status, _ in ended.values()} == {0}, ended
    assert "<testsuite" in (project / "parity.xml").read_text(encoding="utf-8")


def test_a_model_that_was_changed_fails_and_the_point_is_named(project):
    file = project / "path/to/model/model.safetensors"
    tensors = load_file(file)
    D = len(tensors["transformer.ln_f.weight"])
    tensors["transformer.h.1.attn.c_attn.weight"][:, D : 2 * D] *= 1.001
    save_file(tensors, file, metadata={"format": "pt"})
    for step in TRIED:
        status, said = run(step, project)
        assert status == 1 and "first difference: k.L1" in said, said
