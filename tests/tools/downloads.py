"""A user's machine for tests of downloads: a home folder, and what runs there.

Downloads run in a process of their own with a clean environment: the library reads its variables
when it is imported, and the tester's own proxies, tokens and caches must not matter. On Linux it is
the fork of a process that has imported what the library needs: this takes a quarter of a start.
"""

import atexit
import builtins
import functools
import json
import os
import subprocess
import sys
import tempfile
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
FORKS = """
import json, os, signal, sys, traceback
import weights
from huggingface_hub import HfApi, constants, file_download, utils
for name in [*sys.modules]:
    if name.partition(".")[0] in ("huggingface_hub", "tqdm"):
        del sys.modules[name]

def run(code, env, folder, streams):
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    for fd, path in enumerate(streams):
        os.dup2(os.open(path, os.O_RDWR), fd)
    sys.stdin, sys.stdout, sys.stderr = (open(fd, mode) for fd, mode in enumerate("rww"))
    signal.alarm(60)
    exec(code, {"__name__": "__main__"})
    sys.stdout.flush()

for line in sys.stdin:
    child = os.fork()
    if not child:
        status = 1
        try:
            run(*json.loads(line))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def clean():
    """The environment that every program needs."""
    kept = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
    own = {key: os.environ[key] for key in kept if key in os.environ}
    return own | {"PYTHONPATH": str(ROOT)}


@functools.cache
def forks():
    """The process that is forked, until the tests end."""
    command = [sys.executable, "-c", FORKS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=clean(), **pipes)
    atexit.register(process.communicate)  # which closes what it reads: it ends
    return process


def forked(code, env, stdin):
    """Run code in a fork -> exit status, and what it wrote to both streams."""
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("in", "out", "err")]
        for path, text in zip(streams, (stdin, "", "")):
            path.write_text(text)
        process = forks()
        print(json.dumps([code, env, os.getcwd(), [*map(str, streams)]]), file=process.stdin)
        process.stdin.flush()
        status = int(process.stdout.readline())
        return status, *(path.read_text() for path in streams[1:])


class Machine:
    def __init__(self, home, endpoint):
        self.env = clean() | {"HOME": str(home), "HF_HOME": str(home / "hf")}
        self.env |= {"HF_ENDPOINT": endpoint, "NO_PROXY": "*"}
        self.cache = home / "hf" / "hub"
        self.record = home / "hf" / "minitx" / "models--org--tiny.json"

    def python(self, code, env=None, stdin=""):
        """Run code in its own process; what it printed."""
        command = [sys.executable, "-c", code]
        env = self.env | (env or {})
        process = subprocess.run(
            command, input=stdin, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        return self._said(process.returncode, process.stdout, process.stderr)

    def _said(self, status, out, errors):
        assert status == 0, errors
        self.stderr = errors
        return out

    def run(self, function, name="org/tiny", env=None, **arguments):
        """Call weights.<function> in its own process; its result as a path, or its exception."""
        call = json.dumps([function, {"name": name, **arguments}])
        if sys.platform == "linux":
            said = self._said(*forked(RUN, self.env | (env or {}), call))
        else:
            said = self.python(RUN, env, call)
        kind, text = json.loads(said)
        if kind:
            raise getattr(builtins, kind)(text)
        return Path(text)

    def fetch(self, name="org/tiny", **arguments):
        return self.run("fetch", name, **arguments)

    def find(self, name="org/tiny", **arguments):
        return self.run("find", name, **arguments)
