"""A user's machine for tests of downloads: a home folder, and what runs there.

Downloads run in a process of their own with a clean environment: the library reads its variables
when it is imported, and the tester's own proxies, tokens and caches must not matter.
"""

import builtins
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = """
import json, sys, time
import weights
time.sleep = lambda seconds: None  # the library waits between retries
function, arguments = json.load(sys.stdin)
try:
    print(json.dumps(["", str(getattr(weights, function)(**arguments))]))
except Exception as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""


class Machine:
    """A user's home folder and what runs there."""

    def __init__(self, home, endpoint):
        kept = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
        self.env = {key: os.environ[key] for key in kept if key in os.environ}
        self.env |= {
            "HOME": str(home),
            "HF_HOME": str(home / "hf"),
            "HF_ENDPOINT": endpoint,
            "NO_PROXY": "*",
            "PYTHONPATH": str(ROOT),
        }
        self.cache = home / "hf" / "hub"
        self.record = home / "hf" / "minitx" / "models--org--tiny.json"

    def python(self, code, env=None, stdin=""):
        """Run code in its own process; what it printed."""
        command = [sys.executable, "-c", code]
        env = self.env | (env or {})
        process = subprocess.run(
            command, input=stdin, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert process.returncode == 0, process.stderr
        self.stderr = process.stderr
        return process.stdout

    def run(self, function, name="org/tiny", env=None, **arguments):
        """Call weights.<function> in its own process; its result as a path, or its exception."""
        call = json.dumps([function, {"name": name, **arguments}])
        kind, text = json.loads(self.python(RUN, env, call))
        if kind:
            raise getattr(builtins, kind)(text)
        return Path(text)

    def fetch(self, name="org/tiny", **arguments):
        """weights.fetch there."""
        return self.run("fetch", name, **arguments)

    def find(self, name="org/tiny", **arguments):
        """weights.find there."""
        return self.run("find", name, **arguments)
