"""A Python process that can import the tests' tools, for what must not happen in the tests' own."""

import os
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).parent


def python(*arguments, **environment):
    """Run Python with these arguments -> exit status, and what it wrote to both streams."""
    path = os.pathsep.join([str(TOOLS.parents[1]), str(TOOLS)])
    environment = os.environ | {"PYTHONPATH": path} | environment
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    return done.returncode, done.stdout + done.stderr
