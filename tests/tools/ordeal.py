"""One damaged folder in a process of its own: it is loaded, run and asked for ids, and then judged.

The process may use twice the bytes of the folder and `SPARE` beside, and `LIMITS` of time. What may
come of it: a model that runs ("sound"), or one line of a ValueError or FileNotFoundError that names
a file, a key or a tensor ("clear"); everything else is a defect.

Order: a case's process and what ends it, what is tried inside, the judgement. Linux only.
"""

import contextlib
import json
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import NamedTuple

import damage_files
import damage_json
import folders
import numpy as np

import minitx

TEXT = "The dog ran, 二 Büros!"
SPARE = 32 << 20  # bytes that a case may use beside twice its folder: parsed JSON, a tokenizer
ADDRESSES = 256 << 20  # more addresses than that are refused at once: stacks, libraries, arenas
LONGEST = 1000  # characters of a clear message
FORMS = {"tokenizer.json", "vocab.txt", "merges.txt", "spiece.model", "source.spm", "target.spm"}
CONTROL = "\x1b", "\n", "\r", "\x00", "\x08", "\u202e"


class Limits(NamedTuple):
    """Seconds that a case may take: of the processor, and by the clock of a busy machine."""

    cpu: int = 5
    clock: float = 10


class Result(NamedTuple):
    """What came of a case."""

    outcome: str  # "sound", "clear", or the kind of defect
    message: str = ""
    stage: str = ""  # what was tried last
    memory: int = 0  # bytes at most beside those of the process before
    size: int = 0  # bytes of the folder
    cpu: float = 0  # seconds of the processor
    clock: float = 0

    @property
    def is_defect(self):
        return self.outcome not in ("sound", "clear")


def tried(folder, path, limits):
    """The Result of a folder {name: file}, written to `path` and tried in a forked process."""
    folders.write(folder, path)
    begin = time.monotonic()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(path, writer, limits)
    os.close(writer)
    data = _until_end(reader, child, begin + limits.clock)
    _, status, used = os.wait4(child, 0)
    clock = time.monotonic() - begin
    measured = {"cpu": used.ru_utime + used.ru_stime, "clock": clock, "size": size(path)}
    if data:
        return _limited(Result(**json.loads(data), **measured), limits)
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number in (signal.SIGKILL, signal.SIGXCPU):
        return Result("hang", f"ended after {limits.cpu} s or {limits.clock} s", **measured)
    return Result("crash", f"ended by signal {number}, status {status}", **measured)


def _until_end(reader, child, deadline):
    """What the child writes until it ends; b"" if it is killed at the deadline."""
    os.set_blocking(reader, False)
    data, wait = b"", 0.001
    with open(reader, "rb", buffering=0) as pipe:
        while time.monotonic() < deadline:
            piece = pipe.read()
            if piece == b"":
                return data
            data += piece or b""
            time.sleep(wait)
            wait = min(wait * 1.3, 0.05)
    os.kill(child, signal.SIGKILL)
    return b""


def size(path):
    """Bytes of the ordinary files of a folder."""
    return sum(file.stat().st_size for file in path.iterdir() if file.is_file())


def _limited(result, limits):
    """The same, or a defect if it took more memory or time than it may."""
    if result.is_defect:
        return result
    if result.memory > 2 * result.size + SPARE:
        text = f"{result.memory:,} bytes for a folder of {result.size:,}; {result.message}"
        return result._replace(outcome="memory", message=text)
    if result.cpu > limits.cpu:
        return result._replace(outcome="hang", message=f"{result.cpu:.1f} s; {result.message}")
    return result


# --- inside the process of a case


def _child(path, writer, limits):
    """Try a folder, write the judgement as JSON, and end without any clean-up."""
    status = 1
    try:
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu + 1, limits.cpu + 2))
        before = _forget_peak()
        room = _status("VmSize") + 2 * size(path) + SPARE + ADDRESSES
        free = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (room, free[1]))
        judgement = judged(path)
        judgement["memory"] = max(0, _status("VmHWM") - before)
        data = json.dumps(judgement).encode()
        resource.setrlimit(resource.RLIMIT_AS, free)
        while data:
            data = data[os.write(writer, data) :]
        status = 0
    finally:
        os._exit(status)


def _forget_peak():
    """Let the peak of memory begin anew; the bytes in use now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(name):
    """A size that the kernel states of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    return 0


def judged(path):
    """{"outcome", "message", "stage"} of a folder."""
    stages = ["load"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            fault = attempt(path, stages)
        except BaseException as error:
            outcome, message = _of_error(error, path)
        else:
            outcome, message = ("NaN", fault) if fault else ("sound", "")
    return {"outcome": outcome, "message": message[:4000], "stage": stages[-1]}


def attempt(path, stages):
    """Load a folder, show it, run two tokens, say one, encode a text -> what is wrong, or ""."""
    model = minitx.load(path)
    stages.append("show")
    repr(model)
    fault = ""
    if _is_sound(model):
        stages.append("run")
        fault = _run(model)
        stages.append("generate")
        _generate(model)
    stages.append("encode")
    reader = model if model.encoder is None else model.encoder
    for own in (reader, model):
        if _has_tokenizer(own.tokenizer):
            ids = own.tokenizer.encode(TEXT)
            own.tokenizer.decode(ids)
            own.tokenizer.pieces(ids)
    if _has_tokenizer(reader.tokenizer) and len(ids) <= reader.config.n_ctx:
        model.encode([TEXT])
    return fault


def _has_tokenizer(tokenizer):
    """Whether a folder has a tokenizer's main file; without one no text is tried."""
    return not FORMS.isdisjoint(file.name for file in tokenizer.folder.iterdir())


def _is_sound(model):
    """False where `check` names tensors: NaN, infinity, numbers that overflow."""
    try:
        minitx.check(model)
    except ValueError:
        return False
    return True


def _run(model):
    """Run two tokens; says so if numbers are not finite though the weights are."""
    T = min(2, model.config.n_ctx)
    tokens = np.arange(T) % model.config.n_vocab
    source = {}
    if model.encoder is not None:
        source = {"source": tokens % model.encoder.config.n_vocab}
    x = minitx.forward(model, tokens, **source)
    if model.config.task_head:
        x = minitx.logits(model, x)
    return "" if np.isfinite(x).all() else "not finite, though all weights are"


def _generate(model):
    """Say a token, where the model has a head for it and room."""
    if model.config.task_head != "causal" or model.config.n_ctx < 3:
        return
    if model.encoder is None:
        minitx.generate(model, [0], 1)
    else:
        minitx.generate(model, n=1, source=[0])


# --- the judgement of an error


def _of_error(error, path):
    """The outcome and message of an exception."""
    message = str(error)
    if type(error) in (ValueError, FileNotFoundError):
        fault = _unclear(message, path)
        return (fault or "clear"), message
    if isinstance(error, Warning):
        return "warning", f"{type(error).__name__}: {message} {_place(error)}"
    return type(error).__name__, f"{message[:300]} {_place(error)}"


def _place(error):
    """Where an exception comes from: the last line of minitx's own, and the last of all."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
    own = [place for place, frame in zip(places, frames) if "minitx" in frame.filename]
    return f"({[*places[:1], *own][-1]}; {places[-1]})"


def _unclear(message, path):
    """What is wrong with the text of an error; "" if nothing is."""
    if any(character in message for character in CONTROL):
        return "more than one line"
    if len(message) > LONGEST:
        return "a long message"
    text = message.replace(str(path), "")
    return "" if any(name in text for name in known(path)) else "names nothing"


def known(path):
    """Names that a clear message may have: of files, keys of config.json, and tensors."""
    names = {file.name for file in path.iterdir()} | {*damage_files.NAMES}
    for file in path.iterdir():
        if file.is_file() and (file.name == "config.json" or file.suffix == ".safetensors"):
            keys = damage_json.tree({file.name: file}, file.name)
            names |= (
                {key for key, _ in keys if key} if isinstance(keys, damage_json.Pairs) else set()
            )
    return names | {name.partition(".")[2] for name in names if name.count(".") > 1}


if __name__ == "__main__":
    print(*judged(Path(sys.argv[1])).values(), sep="\n")
