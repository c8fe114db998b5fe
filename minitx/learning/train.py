"""`minitx.train`: from a config.json and a text to a model, with snapshots on the way.

Read downward: `train`, what it was given, the loop with its snapshots, what it returns.
"""

import contextlib
import copy
import hashlib
import math
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import weights
from ..arrays import Model
from ..loading.checkpoint import read_model
from ..loading.families import FAMILIES, from_hf
from ..loading.files import listing, read_json
from ..machine import show
from ..memory import all_freed_memory_kept
from ..words.text import Tokenizer
from .batches import NOTHING, Words, check_size
from .loop import How, Loop, snapshot_steps
from .saved import FINAL, Folder, check_digest
from .stages import Stage, Staged
from .start import head_of, joined, start
from .tokens import stream

SHOWN_EVERY = 0.2  # seconds


class History(show.Shown):
    """A finished training: `.model`, `.losses` [steps] in nats, and its snapshots.

    `.snapshots`: the steps after which one was kept; `.model_after(step)`: the model of that step.

    >>> import minitx
    >>> config = {"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 8, "n_positions": 16}
    >>> config |= {"vocab_size": 270, "layer_norm_epsilon": 1e-5, "activation_function": "gelu"}
    >>> history = minitx.train(config, ["the dog and the cat"] * 9, steps=4, snapshots=3, batch=2)
    >>> history.snapshots, history.losses.shape, history.model_after(1).config.n_layers
    ([0, 1, 4], (4,), 1)
    """

    def __init__(self, model: Model, losses: np.ndarray, kept: dict, digests: Mapping = NOTHING):
        self.model, self.losses = model, losses
        self._kept = kept  # {step: its folder, or config and a file's tensors}
        self._digests = digests  # {step as a text, or FINAL: sha256 of the tensors}

    @classmethod
    def from_folder(cls, name: str | PathLike[str], dtype: DTypeLike = "float32") -> "History":
        """The History of a training that has ended: its folder, or a name of weights.histories().

        Raises ValueError for a folder without one, or where it is not as it was written.

        >>> import minitx
        >>> history = minitx.History.from_folder("histories/masked-learned")
        >>> len(history.snapshots), history.model_after(0).config.n_layers
        (24, 2)
        """
        folder = weights.find(name)
        record = Folder(folder, {}, {}).ended()
        if record is None:
            raise ValueError(f"{folder} has no finished training: there is no train.json")
        model_type = record["settings"]["config"]["model_type"]
        return of_record(record, folder, Tokenizer(folder, model_type), dtype)

    @property
    def snapshots(self) -> list[int]:
        """How many steps were done when each snapshot was taken."""
        return list(self._kept)

    def model_after(self, step: int) -> Model:
        """The model as it was after a number of steps.

        Raises ValueError if none was kept, or the file is not the one that was.
        """
        if step not in self._kept:
            raise ValueError(f"no snapshot after {step} steps; available: {self.snapshots}")
        kept, final = self._kept[step], self.model
        dtype = final.weights.W_E.dtype
        if isinstance(kept, Path):
            check_digest(kept, self._digests, str(step))
            model = read_model(kept, dtype)
        else:
            config, tensors = kept
            model = joined(config, tensors, dtype)
        return replace(model, tokenizer=final.tokenizer)

    def _summary(self):
        n = len(self.losses)
        title = f"History of {n} steps: loss {self.losses[0]:.4f} to {self.losses[-1]:.4f} nats"
        rows = [(step, f"{loss_after(self.losses, step):.4f}") for step in self.snapshots]
        return show.Summary(title, [f"snapshots: {self.snapshots}"], ("steps", "loss"), rows)


def loss_after(losses, step):
    """The loss of the batch that follows a number of steps; at the end that of the last."""
    return losses[min(step, len(losses) - 1)]


def train(
    config: str | PathLike[str] | dict[str, Any],
    corpus: str | PathLike[str] | list[str] | np.ndarray,
    *,
    steps: int = 2000,
    seed: int = 0,
    snapshots: int = 24,
    out: str | PathLike[str] | None = None,
    resume: bool = False,
    context: int = 0,
    batch: int = 32,
    rate: float = 1e-3,
    warm_up: float = 0.1,
    decay: float = 0.1,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-6,
    clip: float = 1.0,
    masked: float = 0.15,
    span: float = 1.0,
    stages: list[dict[str, Any]] | None = None,
    dtype: DTypeLike = "float32",
) -> History:
    """Train a model from random weights: masked or causal, as its config.json describes.

    config: a config.json or its dictionary, a folder, or a bundled name, of which only the settings
    and the tokenizer are used. Without a tokenizer, one is learned from the text. corpus: a UTF-8
    file, a list of texts, or token ids [n] for a causal model; texts are joined by line breaks.
    steps: of AdamW. seed: of the start, the order of the text and the hidden words. snapshots:
    number of snapshots, after geometrically growing numbers of steps, from 0 to the last. out: a
    folder for them and for the model, which `load` and the reference library read; None: all stay
    in memory. resume: continue an interrupted run, with the same bytes as without the interruption.
    context: tokens per input (0: the model's maximum); batch: inputs per step. rate: the learning
    rate, with linear warm-up over the share `warm_up` of the steps and cosine decay to 0. decay:
    weight decay of matrices. betas, eps: AdamW's. clip: the largest gradient norm (0: none).
    masked: share of the tokens that a masked model predicts; span: mean length of a masked span.
    dtype: float32, or float64 as a check.
    stages: a dictionary for each stage, with its `steps` and, if they differ from the arguments,
    its `context`, `batch`, `rate` (at its end; the rate is linear within a stage, without cosine)
    and `config`: its other settings, the number of layers or the longest input. New layers start as
    copies of old ones; `steps` is then the sum.
    Raises ValueError for settings that cannot be trained, a text that is too short, a folder that
    has another run, and a loss that is NaN: what was saved before stays.
    Source: Loshchilov & Hutter 2019; masks: Devlin et al. 2018; spans: Joshi et al. 2020.

    >>> import minitx, numpy as np
    >>> ids = np.arange(600) % 6  # each id says the next
    >>> config = {"model_type": "gpt2", "n_layer": 1, "n_head": 1, "n_embd": 16, "n_positions": 8}
    >>> config |= {"vocab_size": 6, "layer_norm_epsilon": 1e-5, "activation_function": "gelu"}
    >>> history = minitx.train(config, ids, steps=60, rate=0.01, batch=8)
    >>> bool(history.losses[0] > 1.7 and history.losses[-1] < 0.1)  # log 6 = 1.79
    True
    """
    settings, folder = settings_in(config)
    numbers: dict[str, Any] = dict(
        steps=steps, context=context, batch=batch, snapshots=snapshots, seed=seed
    )
    numbers |= dict(rate=rate, warm_up=warm_up, decay=decay, eps=eps, clip=clip)
    numbers |= dict(masked=masked, span=span, betas=pair_of(betas), dtype=name_of(dtype))
    numbers = {name: plain(value) for name, value in numbers.items()}
    in_order = stages_of(stages, settings, numbers)
    numbers["steps"] = sum(stage.steps for stage in in_order) or numbers["steps"]
    check(numbers)
    begin = start(settings, seed, dtype)
    cfg = begin.model.config
    if cfg.picture is not None:
        raise ValueError(f"a {cfg.model_type} learns from pictures, and corpus is a text or ids")
    if cfg.encoder is not None:
        raise ValueError(f"a {cfg.model_type} learns from pairs of texts, and corpus is a text")
    numbers["context"] = checked_context(numbers["context"], cfg, numbers["batch"])
    text = stream(corpus, folder, cfg, head_of(FAMILIES[cfg.model_type]) == "masked")
    how = How(**numbers)
    loop: Loop
    if stages:
        loop = Staged(in_order, settings, text, how)
    else:
        loop = Loop(begin, Words(text, how.context, how.masked, how.span), how)
    if out is None:
        return in_memory(loop, text)
    stated = {"config": begin.settings, **how._asdict(), **hashes(text)}
    if stages:
        stated["stages"] = [stage._asdict() for stage in in_order]
    return in_folder(loop, text, Folder(Path(out), stated, text.files), resume)


def settings_in(config):
    """The dictionary of a config.json, and the folder that it lies in, or None."""
    if isinstance(config, dict):
        return config, None
    if not isinstance(config, str | PathLike):
        wanted = "a config.json or its dictionary, a folder, or a bundled name"
        raise ValueError(f"config is {config!r:.80}; wanted {wanted}")
    path = Path(config)
    if path.is_file():
        return read_json(path), path.parent
    folder = path if path.is_dir() else weights.find(str(config))
    return read_json(Path(folder) / "config.json"), Path(folder)


LEAST = {"steps": 1, "batch": 1, "snapshots": 0, "context": 0, "seed": 0, "span": 1}
WHOLE = "steps", "batch", "snapshots", "context", "seed"
MOST = {"rate": 1, "warm_up": 1, "decay": 1, "masked": 0.9}  # at least 0


def check(numbers):
    """Raises ValueError for what is no number, or one that is out of range."""
    for name in [name for name in numbers if name not in ("betas", "dtype", "config")]:
        value = numbers[name]
        least, most = LEAST.get(name, 0), MOST.get(name, math.inf)
        if not isinstance(value, Integral if name in WHOLE else Real):
            wanted = "a whole number" if name in WHOLE else "a number"
            raise ValueError(f"{name} is {value!r:.80}; wanted {wanted} of {least} to {most}")
        if not least <= value <= most:
            raise ValueError(f"{name} is {value}; wanted {least} to {most}")
    betas = numbers["betas"]
    if len(betas) != 2 or not all(isinstance(x, Real) and 0 <= x < 1 for x in betas):
        raise ValueError(f"betas is {betas!r:.80}; wanted two numbers from 0 to less than 1")
    if numbers["masked"] == 0:
        raise ValueError("masked is 0: nothing is predicted; wanted a share of the words")
    if numbers["dtype"] not in ("float32", "float64"):
        raise ValueError(f"dtype is {numbers['dtype']}; wanted float32 or float64")


def pair_of(betas):
    """The values of a pair as a tuple; what is no sequence, as one of one."""
    return tuple(map(plain, betas)) if np.iterable(betas) else (betas,)


def name_of(dtype):
    """The name of a dtype; what is none, as it is written."""
    try:
        return np.dtype(dtype).name
    except TypeError:
        return f"{dtype!r:.80}"


def plain(value):
    """A number of NumPy's as one of Python's, which JSON has."""
    return value.item() if isinstance(value, np.generic) else value


def stages_of(given, settings, numbers):
    """The Stages of dictionaries. Raises ValueError for one that cannot be trained."""
    names, stages = [*Stage._fields], []
    if not isinstance(given, list | tuple | None):
        raise ValueError(f"stages is {given!r:.80}; wanted a list of dictionaries")
    for i, own in enumerate(given or (), 1):
        if not isinstance(own, dict) or not isinstance(own.get("config", {}), dict):
            raise ValueError(f"stage {i} is {own!r:.80}; wanted a dictionary, as is its config")
        unknown = [name for name in own if name not in names]
        if unknown or "steps" not in own:
            raise ValueError(f"stage {i} has {listing(own)}; wanted steps, and of {listing(names)}")
        stage = Stage(**{name: numbers.get(name, {}) for name in names} | own)
        stage = Stage(*map(plain, stage))
        check(numbers | stage._asdict())
        config = from_hf(copy.deepcopy(settings | stage.config))
        own_context = checked_context(stage.context, config, stage.batch)
        stages.append(stage._replace(context=own_context))
    return stages


def checked_context(context, config, batch):
    """Tokens of an input. Raises ValueError for more than a model reads, or a step can hold."""
    if context > config.n_ctx:
        raise ValueError(f"context is {context}; this model reads at most {config.n_ctx} tokens")
    check_size(batch, context or config.n_ctx)
    return context or config.n_ctx


def hashes(text):
    """What the stream and its tokenizer are, and what else the bytes depend on."""
    ids = hashlib.sha256(text.ids.astype("<i8").tobytes()).hexdigest()
    files = hashlib.sha256(b"".join(text.files.values())).hexdigest()
    return {"ids_sha256": ids, "tokenizer_sha256": files, "numpy": np.__version__}


def in_memory(loop, text):
    """The History of a Loop whose snapshots stay in memory."""
    kept = {}

    def after(loop, is_snapshot):
        if is_snapshot:
            kept[loop.done] = loop.start.model.config, loop.start.tensors()

    go_on(loop, after)
    return history_of(loop, text, kept)


def in_folder(loop, text, place, resume):
    """The same with snapshots in a folder. Raises ValueError where it holds another run."""
    if resume and (record := place.ended()) is not None:
        place.same(record["settings"])
        return of_record(record, place.path, text.tokenizer, loop.how.dtype)
    is_used = place.is_used()
    if (place.path / "config.json").exists() and not is_used:
        text = f"{place.path} holds a checkpoint that is no training's; name another folder"
        raise ValueError(text)
    if resume:
        place.take_up(loop)
    elif is_used:
        text = f"{place.path} holds a training; resume goes on with it, or name another folder"
        raise ValueError(text)
    go_on(loop, place.after)
    kept = folders(loop, place)
    place.end(loop, list(kept))
    return history_of(loop, text, kept)


def of_record(record, folder, tokenizer, dtype):
    """The History of a training that has ended in a folder."""
    place = Folder(folder, {}, {})
    kept = {step: place.snapshot(step) for step in record["snapshots"]}
    check_digest(folder, record["sha256"], FINAL)
    model = replace(read_model(folder, dtype), tokenizer=tokenizer)
    return History(model, np.array(record["losses"]), kept, record["sha256"])


def folders(loop, place):
    """{step: folder} of the snapshots."""
    return {step: place.snapshot(step) for step in snapshots_of(loop)}


def snapshots_of(loop):
    """The steps after which a Loop is kept."""
    return snapshot_steps(loop.how.steps, loop.how.snapshots)


def go_on(loop, after):
    """All steps that are left; after(loop, is_snapshot) is called before them and after each."""
    steps = loop.how.steps
    kept = {*snapshots_of(loop)}
    if loop.done == 0:
        after(loop, 0 in kept)
    with all_freed_memory_kept(), contextlib.closing(Line(loop)) as line:
        while loop.done < steps:
            loop.step()
            after(loop, loop.done in kept)
            line.update()


class Line:
    """'step 12/100, loss 3.210, 11 s left', rewritten in place; nothing where stderr is a file."""

    def __init__(self, loop):
        self.loop, self.before = loop, loop.done
        self.begin = self.shown = time.monotonic()

    def update(self):
        """Shows how far the Loop is, every SHOWN_EVERY seconds."""
        now = time.monotonic()
        if now - self.shown < SHOWN_EVERY:
            return
        self.shown = now
        done, steps = self.loop.done, self.loop.how.steps
        seconds = (now - self.begin) / (done - self.before) * (steps - done)
        show_line(f"step {done}/{steps}, loss {self.loop.losses[-1]:.3f}, {seconds:.0f} s left")

    def close(self):
        """The line is gone before a message comes."""
        show_line("")


def show_line(text):
    """Replace the current line of a terminal; nothing where stderr is none."""
    if sys.stderr.isatty():
        stream = getattr(sys.stderr, "stream", sys.stderr)  # what the command line wraps
        print(f"\r\x1b[K{text}", end="", file=stream, flush=True)


def history_of(loop, text, kept):
    """The History of a Loop that has ended."""
    model = replace(loop.start.model, tokenizer=text.tokenizer)
    return History(model, np.array(loop.losses), kept)
