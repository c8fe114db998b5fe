"""One damaged folder in a process of its own: it is loaded, run and asked for ids, and then judged.

The process may use twice the bytes of the folder, or SPARE if that is more, and only so much time
(Limits). What may come of it: a model that runs ("sound"), or one line of a ValueError or
FileNotFoundError that names a file, a key, a tensor, or the norm before which numbers overflow
("clear"); everything else is a defect. Where weights are NaN or infinite, `minitx.check` names them
and the outputs may be so too. Linux only.
"""

import contextlib
import json
import os
import re
import resource
import signal
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
from minitx.loading.checkpoint import UnreadWarning
from minitx.loading.families import FAMILIES
from minitx.memory import keep_freed_memory
from minitx.words.text import UnknownWarning

TEXT = "A dog, 二 Bü!"
SPARE = 32 << 20  # bytes that a case may always use: parsed JSON, a tokenizer
ADDRESSES = 256 << 20  # more addresses than that are refused at once: stacks, libraries, arenas
LONGEST = 1000  # characters of a clear message
FORMS = {"tokenizer.json", "vocab.txt", "merges.txt", "spiece.model", "source.spm", "target.spm"}
END = "ln_final_w", "ln_final_b", "W_head", "b_head", "ln_head_w", "ln_head_b", "W_U", "b_U"
OVERFLOW = re.compile(r"the stream before ln_?\w+( of layer \d+)? is NaN, infinite, or overflows")
CONTROL = "\x1b", "\n", "\r", "\x00", "\x08", "\u202e"


class Limits(NamedTuple):
    """Seconds that a case may take: of the processor, and by the clock of a busy machine."""

    cpu: int = 5
    clock: float = 10
    beside: int = 0  # bytes beside twice the folder

    def memory(self, size):
        """Bytes that a case may use for a folder of that many."""
        return max(2 * size, SPARE) + self.beside


class Result(NamedTuple):
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
    keep_freed_memory(0)  # what the process has freed would be used again, and not be counted
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
        judgements, memory = json.loads(data)
        return _limited(decided(judgements, path)._replace(memory=memory, **measured), limits)
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
    if result.memory > limits.memory(result.size):
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
        room = _status("VmSize") + limits.memory(size(path)) + ADDRESSES
        free = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (room, free[1]))
        judgements = judged(path)
        memory = max(0, _status("VmHWM") - before)
        data = json.dumps([judgements, memory]).encode()
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
    """What comes of a folder each time that it is loaded: [[outcome, message, stage], ...]."""
    return [_judged(attempted, path) for attempted in (attempt, attempt_heads, attempt_partial)]


def _judged(attempted, path):
    keep_freed_memory(0)  # each loads the folder anew
    stages = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnreadWarning)
        warnings.simplefilter("ignore", UnknownWarning)
        try:
            fault = attempted(path, stages)
        except BaseException as error:
            outcome, message = _of_error(error)
        else:
            outcome, message = ("NaN", fault) if fault else ("sound", "")
    return outcome, message[:4000], stages[-1]


def attempt(path, stages):
    """Load a folder, show it, run it, encode a text -> what is wrong, or ""."""
    stages.append("load")
    model = minitx.load(path)
    stages.append("show")
    repr(model)
    fault = _run(model, stages)
    stages.append("encode")
    reader = model if model.encoder is None else model.encoder
    for own in (model, reader):  # the reader last: its tokens are what `encode` takes
        if _has_tokenizer(own.tokenizer):
            ids = own.tokenizer.encode(TEXT)
            own.tokenizer.decode(ids)
            own.tokenizer.pieces(ids)
    if _has_tokenizer(reader.tokenizer) and len(ids) <= reader.config.n_ctx:
        model.encode([TEXT, "a"])
    return fault


def attempt_partial(path, stages):
    """Load what there is of a folder, show it, look for NaN."""
    stages.append("partial")
    model = minitx.load(path, partial=True)
    repr(model)
    _named(model)
    return ""


def attempt_heads(path, stages):
    """Run a model with each other head of its family, or see that head refused; as `attempt`."""
    stages.append("heads")
    cfg = minitx.load(path).config
    fault = ""
    for head in {*FAMILIES[cfg.model_type].heads} - {cfg.task_head}:
        try:
            model = minitx.load(path, head=head)
        except ValueError as error:
            if not str(error).startswith(f"no head {head!r} in this checkpoint"):
                raise
        else:
            fault = fault or _run(model, stages)
            del model  # before the next is loaded
    return fault


def _has_tokenizer(tokenizer):
    """Whether a folder has a tokenizer's main file; without one no text is tried."""
    return not FORMS.isdisjoint(file.name for file in tokenizer.folder.iterdir())


def _named(model):
    """What `check` says of weights: NaN, infinity, numbers that may overflow; "" if nothing."""
    try:
        minitx.check(model)
    except ValueError as error:
        return str(error)
    return ""


def _run(model, stages):
    """Run a model and say a token; says so if numbers are not finite though the weights are."""
    named = _named(model)
    stages.append("run")
    with warnings.catch_warnings():
        if named:  # NumPy's warnings come before the error that names the layer
            warnings.simplefilter("ignore", RuntimeWarning)
        x = _forward(model)
        stages.append("generate")
        _generate(model)
    if np.isfinite(x).all() or named.startswith("NaN") or _of_the_end(model, named):
        return ""
    return f"not finite, though all weights are; {named}"


def _of_the_end(model, named):
    """Whether numbers beyond 1e10 are in what no norm follows: the last norm, the task head."""
    if not named:
        return False
    last = "" if model.config.pre_norm else f"layers[{model.config.n_layers - 1}]."
    end = {*END, f"{last}ln2_w", f"{last}ln2_b"}
    return not end.isdisjoint(re.findall(r"[\w.\[\]]+", named))


def _forward(model):
    """The logits of two texts of two tokens, one of them padded, or the last stream."""
    T = min(2, model.config.n_ctx)
    tokens = np.arange(2 * T).reshape(2, T) % model.config.n_vocab
    valid = np.array([[True] * T, [True] + [False] * (T - 1)])
    source = {}
    if model.encoder is not None:
        source = {"source": tokens % model.encoder.config.n_vocab, "source_valid": valid}
    x = minitx.forward(model, tokens, valid=valid, **source)
    if model.config.task_head:
        x = minitx.logits(model, x, valid=valid)
    return x


def _generate(model):
    """Say a token, where the model has a head for it and room."""
    if model.config.task_head != "causal" or model.config.n_ctx < 3:
        return
    if model.encoder is None:
        minitx.generate(model, [0], 1)
    else:
        minitx.generate(model, n=1, source=[0])


# --- the judgement of an error


def decided(judgements, path):
    """The Result of what `judged` gives: the first defect, or else what came first."""
    results = []
    for given, message, stage in judgements:
        outcome = (_unclear(message, path) or "clear") if given == "said" else given
        results.append(Result(outcome, message, stage))
    return next((result for result in results if result.is_defect), results[0])


def _of_error(error):
    message = str(error)
    if type(error) in (ValueError, FileNotFoundError):
        return "said", message
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
    is_named = OVERFLOW.match(text) or any(name in text for name in known(path))
    return "" if is_named else "names nothing"


def known(path):
    """Names that a clear message may have: of files, keys of config.json, and tensors."""
    names = {file.name for file in path.iterdir()} | {*damage_files.NAMES}
    for file in path.iterdir():
        if file.is_file() and (file.name == "config.json" or file.suffix == ".safetensors"):
            keys = damage_json.tree({file.name: beginning(file)}, file.name)
            names |= (
                {key for key, _ in keys if key} if isinstance(keys, damage_json.Pairs) else set()
            )
    return names | {name.partition(".")[2] for name in names if name.count(".") > 1}


def beginning(path):
    with path.open("rb") as file:
        return file.read(1 << 20)
