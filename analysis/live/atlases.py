"""`/atlas`: the atlas of a served model, computed when it is first asked for, and kept.

Each is computed by `minitx atlas` in a process of its own, so that the live page goes on answering.
Until it is there its address shows how far the process is, and asks again by itself.
"""

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from html import escape
from pathlib import Path

from starlette.responses import HTMLResponse

from ..drawing import draw
from .guard import failed

WORDS = 50  # a served text of fewer is a sentence: the bundled sample takes its place
SENTENCES = 100  # of the sample
KEPT = 2000  # bytes of what a process says
CLEAR = "\x1b[K"  # empties the line of a terminal
FILE = "atlas.html"
WAITING = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta http-equiv="refresh" content="2"><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Atlas of {name}</title><style>:root {{ color-scheme: light dark }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 40rem;
  padding: 0 1rem }}
</style></head>
<body><main><h1>Atlas of {name}</h1><p role="status">It is being computed: {said}</p>
<p>This page asks again every two seconds; <a href="/">the live page</a> goes on answering.</p>
</main></body></html>"""


def command(name, text, folder):
    """The command that writes the atlas of a model to a folder."""
    program = [sys.executable, "-m", "minitx.analysis", "atlas", name, "--out", str(folder)]
    if len(text.split()) < WORDS:
        return [*program, "--sentences", str(SENTENCES)]
    path = folder / "text.txt"
    path.write_text(text, encoding="utf-8")
    return [*program, "--text", str(path)]


class Job:
    """A process that writes an atlas, and the last line that it has said."""

    def __init__(self, arguments, folder):
        self.folder, self.said = folder, "it starts"
        # progress is shown to terminals alone
        reader, writer = os.openpty() if hasattr(os, "openpty") else os.pipe()
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": writer}
        self.process = subprocess.Popen(arguments, **options)
        os.close(writer)
        self.listener = threading.Thread(target=self._listen, args=[reader], daemon=True)
        self.listener.start()

    def _listen(self, reader):
        """Keep the last line until the process ends; progress replaces its line."""
        text = b""
        with contextlib.suppress(OSError), open(reader, "rb", buffering=0) as stream:
            while part := stream.read(4096):
                text = (text + part)[-KEPT:]
                lines = text.decode(errors="replace").replace(CLEAR, "").splitlines()
                self.said = next(filter(None, map(str.strip, reversed(lines))), self.said)

    @property
    def is_running(self):
        """Whether the process goes on."""
        return self.process.poll() is None

    @property
    def content(self):
        """The page, or None where the process has not written any."""
        path = self.folder / FILE
        return path.read_text(encoding="utf-8") if path.is_file() else None


class Atlases:
    """The atlases of the served models, those that were asked for."""

    def __init__(self, names, text, command=command):
        self.names, self.text, self.command, self.jobs = names, text, command, {}
        self.lock = threading.Lock()
        self.folders = contextlib.ExitStack()  # removed with what they hold
        atexit.register(self.close)

    def page(self, request):
        """GET /atlas?model=NAME, by default the first model: its atlas, or how far it is."""
        name = request.query_params.get("model", self.names[0])
        if name not in self.names:
            return failed(404, f"no model {name!r:.80} here; available: {', '.join(self.names)}")
        job = self.job(name)
        if job.is_running:
            said = {"name": escape(draw.printable(name)), "said": escape(draw.printable(job.said))}
            return HTMLResponse(WAITING.format(**said), headers={"Cache-Control": "no-store"})
        job.listener.join()
        if job.process.returncode or job.content is None:
            del self.jobs[name]  # to ask again is to try again
            return failed(500, f"minitx atlas failed: {job.said}")
        return HTMLResponse(job.content)

    def job(self, name):
        """The process of a model's atlas, started once."""
        with self.lock:
            if name not in self.jobs:
                temporary = tempfile.TemporaryDirectory(prefix="minitx-atlas-")
                folder = Path(self.folders.enter_context(temporary))
                self.jobs[name] = Job(self.command(name, self.text, folder), folder)
            return self.jobs[name]

    def close(self):
        """End what still runs, and remove what was written."""
        for job in self.jobs.values():
            job.process.kill()
            job.process.wait()
        self.folders.close()
