"""A training in a folder: snapshots that load as any checkpoint, and a state to go on from.

FOLDER/config.json, model.safetensors, tokenizer.json …     the model at the end
FOLDER/steps/000123/                                        the same after 123 steps
FOLDER/train.json                                           settings, and the loss of each step
FOLDER/state.safetensors                                    until the end: where to go on
"""

import hashlib
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ..loading.files import one_line, read_json
from ..weights import local, writing

STATE, RECORD, TENSORS = "state.safetensors", "train.json", "model.safetensors"
FORMAT = 1  # of train.json, also of one that names none
FINAL = "final"  # in train.json, among the steps: the model at the end
SECONDS = 30.0  # between two states


@dataclass
class Folder:
    """Where a Loop is kept; settings: all that it depends on; files: the tokenizer's."""

    path: Path
    settings: dict
    files: dict
    saved: float = 0.0

    def after(self, loop, is_snapshot):
        """Called before the first step and after each."""
        if is_snapshot:
            self.checkpoint(loop.start, self.snapshot(loop.done))
        now = time.monotonic()
        if 0 < loop.done < loop.how.steps and now - self.saved > SECONDS:
            self.save(loop)
            self.saved = now

    def snapshot(self, step):
        """The folder of the snapshot after a number of steps."""
        return self.path / "steps" / f"{step:06}"

    def is_used(self):
        """Whether the folder holds a run, ended or not."""
        return any((self.path / name).exists() for name in (STATE, RECORD, "steps"))

    def checkpoint(self, start, folder):
        """A folder in Hugging Face layout; the tensors come last, so with them it is whole."""
        folder.mkdir(parents=True, exist_ok=True)
        texts = {"config.json": as_json(start.settings), **self.files}
        for name, content in texts.items():
            write(folder / name, content)
        write(folder / TENSORS, save(start.tensors(), metadata={"format": "pt"}))

    def save(self, loop):
        """Replaces the state."""
        record = {"settings": self.settings, "steps": loop.done, "losses": loop.losses}
        self.path.mkdir(parents=True, exist_ok=True)
        write(self.path / STATE, pack_state(state_of(loop), json.dumps(record)))

    def take_up(self, loop):
        """Puts the saved state into the Loop; there may be none.

        Raises ValueError where it was saved with other settings, or is no state.
        """
        path = self.path / STATE
        if not path.is_file():
            return
        record = record_of_training(path)
        self.same(record["settings"])
        loop.place(record["steps"])
        read_state(path, state_of(loop))
        loop.optimizer.steps, loop.losses = record["steps"], record["losses"]

    def same(self, settings):
        """Raises ValueError that names what differs from the settings of a saved run."""
        own = json.loads(json.dumps(self.settings))
        names = [name for name in own | settings if own.get(name) != settings.get(name)]
        if names:
            first = names[0]
            raise ValueError(
                f"resume: the run in {self.path} has other settings: {first} was "
                f"{settings.get(first)!r:.80} and is {own.get(first)!r:.80} (differing: "
                f"{', '.join(names)})"
            )

    def end(self, loop, snapshots):
        """The checkpoint and the record; the state is not needed any more."""
        self.checkpoint(loop.start, self.path)
        record = {"format": FORMAT, "settings": self.settings, "snapshots": snapshots}
        record["sha256"] = {step: digest_in(self.snapshot(step)) for step in snapshots}
        record["sha256"][FINAL] = digest_in(self.path)
        write(self.path / RECORD, as_json(record | {"losses": loop.losses}))
        (self.path / STATE).unlink(missing_ok=True)

    def ended(self):
        """The record of a run that has ended, or None. Raises ValueError for another format."""
        path = self.path / RECORD
        if not path.is_file():
            return None
        record = read_json(path)
        if (format_ := record.get("format", FORMAT)) != FORMAT:
            raise ValueError(f"{path} has format {format_!r:.80}, this minitx reads {FORMAT}")
        record.setdefault("sha256", {})  # an older one has none
        check_record(path, record, RIGHT)
        check_count(path, record["losses"], record["settings"].get("steps"))
        on_disk = {int(x.name) for x in self.path.glob("steps/*") if x.name.isdecimal()}
        if lost := on_disk - {*record["snapshots"]}:
            raise ValueError(f"{path} is damaged: 'snapshots' lacks {min(lost)}, which steps/ has")
        return record


RIGHT = {  # what a record has, and whether it is of the right kind
    "settings": lambda x: isinstance(x, dict) and is_config(x.get("config")),
    "snapshots": lambda x: is_list_of(int, x) and x == sorted({*x}),
    "losses": lambda x: is_list_of(float, x) and x != [] and all(map(math.isfinite, x)),
    "sha256": lambda x: isinstance(x, dict) and is_list_of(str, [*x.values()]),
}

RIGHT_STATE = {  # the same of a state
    "settings": lambda x: isinstance(x, dict),
    "steps": lambda x: type(x) is int,
    "losses": RIGHT["losses"],
}


def check_record(path, record, right):
    """Raises ValueError for a value that is not of the right kind."""
    for name, is_right in right.items():
        if not is_right(record.get(name)):
            raise ValueError(f"{path} is damaged: {name!r} is {record.get(name)!r:.80}")


def check_count(path, losses, steps):
    """Raises ValueError unless each step has its loss."""
    if len(losses) != steps:
        text = f"'losses' has {len(losses)} numbers, of {steps!r:.80} steps"
        raise ValueError(f"{path} is damaged: {text}")


def is_config(x):
    """Whether x is the content of a config.json, whose family is named."""
    return isinstance(x, dict) and isinstance(x.get("model_type"), str)


def is_list_of(kind, x):
    """Whether x is a list of one kind of values."""
    return isinstance(x, list) and all(type(value) is kind for value in x)


def digest_in(folder):
    """sha256 of a snapshot's tensors."""
    return local.measure(folder / TENSORS)["sha256"]


def check_digest(folder, digests, name):
    """Raises ValueError where a folder's tensors are not those of a record, if it has the name."""
    if name in digests and digest_in(folder) != digests[name]:
        raise ValueError(f"{folder / TENSORS} is not the file that was written there")


# --- the state


def state_of(loop):
    """{name: array} of all that changes from step to step."""
    optimizer = loop.optimizer
    means = {"first": optimizer.first, "second": optimizer.second}
    state = {"flat": loop.start.flat}
    for part, arrays in means.items():
        state |= {f"{part}.{name}": x for name, x in arrays.items()}
    return state


def pack_state(arrays, text):
    """The bytes of a safetensors file with a record, as JSON, and the sha256 of all it holds."""
    whole = {name: np.ascontiguousarray(x) for name, x in arrays.items()}
    digest = digest_of(text, whole, whole.get)
    return save(whole, metadata={"state": text, "sha256": digest})


def record_of_state(path, what="a saved training state"):
    """The record in a file of `pack_state`. Raises ValueError unless all of it is as it was."""
    if not Path(path).is_file():  # a folder, or a pipe, which would be waited for
        raise FileNotFoundError(f"no file {path}; wanted {what}")
    try:
        with safe_open(path, "np") as file:
            given = file.metadata() or {}
            is_whole = given["sha256"] == digest_of(given["state"], file.keys(), file.get_tensor)
            record = {**json.loads(given["state"])}
    except (SafetensorError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is not {what}: {one_line(error)}") from None
    if not is_whole:
        raise ValueError(f"{path} is not {what} any more: its sha256 differs")
    return record


def record_of_training(path):
    """The record in a training's state. Raises ValueError where it lacks what goes on."""
    record = record_of_state(path)
    check_record(path, record, RIGHT_STATE)
    check_count(path, record["losses"], record["steps"])
    return record


def digest_of(text, names, array_of):
    """sha256 of a text and of arrays with their names; array_of: one array at a time."""
    sha256 = hashlib.sha256(text.encode())
    for name in sorted(names):
        x = array_of(name)
        sha256.update(f"{name} {x.dtype.str} {x.shape}\n".encode())
        sha256.update(np.ascontiguousarray(x))
    return sha256.hexdigest()


def read_state(path, arrays):
    """Puts what a file holds into arrays {name: array}. Raises ValueError for other arrays."""
    with safe_open(path, "np") as file:
        names = {*file.keys()}
        for name, x in arrays.items():
            held = file.get_tensor(name) if name in names else None
            wanted = kind_of(np.atleast_1d(x))  # safetensors writes a number as a row
            if held is None or kind_of(held) != wanted:
                given = "missing" if held is None else kind_of(held)
                raise ValueError(f"{path} is damaged: {name} is {given}; wanted {wanted}")
            x[...] = held


def kind_of(x):
    """An array's dtype and shape as a text."""
    return f"{x.dtype} {[*x.shape]}"


# --- files


def write(path, content):
    """Replace a file by a text or bytes in one step: it is never half written."""
    content = content.encode() if isinstance(content, str) else content
    try:
        writing.write(path, content)
    except OSError as error:
        text = f"{error.strerror} ({len(content):,} bytes wanted)"
        raise OSError(error.errno, text, str(path)) from None


def as_json(value):
    """A value as JSON text that ends its line."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
