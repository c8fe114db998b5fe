"""The loop in a folder: its state is saved as it goes, and taken up again to the same bytes."""

import json
import time
from dataclasses import dataclass

from minitx.learning.saved import (
    check_record,
    is_list_of,
    pack_state,
    read_state,
    record_of_training,
)

from ..machine.files import as_json, write
from .training import text_of

STATE = "state.safetensors"
SECONDS = 30  # between two states


@dataclass
class Folder:
    """Where a Training is kept; settings: all that it depends on."""

    path: object
    settings: dict
    tensors: dict  # of the checkpoint
    saved: float = 0.0

    def after(self, training):
        """Called after each step: saves when the time has come."""
        now = time.monotonic()
        if now - self.saved > SECONDS and training.done < training.how.steps:
            self.save(training)
            self.saved = now

    def save(self, training):
        """Replaces the state."""
        record = {"settings": self.settings, "steps": training.done}
        record |= {"losses": training.losses, "curve": training.curve}
        write(self.path / STATE, pack_state(self.arrays(training), as_json(record)))

    def arrays(self, training):
        """{name: array} of all that changes: tensors, running means."""
        arrays = {f"tensor.{name}": x for name, x in self.tensors.items()}
        optimizer = training.optimizer
        for part in ("first", "second"):
            for key, x in getattr(optimizer, part).items():
                arrays[f"{part}.{text_of(key)}"] = x
        return arrays

    def take_up(self, training):
        """Puts the saved state into the Training; False if there is none.

        Raises ValueError where it was saved with other settings.
        """
        path = self.path / STATE
        if not path.is_file():
            return False
        record = record_of_training(path)
        check_record(path, record, {"curve": lambda x: is_list_of(list, x)})
        self.same(record["settings"])
        read_state(path, self.arrays(training))
        training.optimizer.steps = record["steps"]
        training.losses = record["losses"]
        training.curve = [tuple(point) for point in record["curve"]]
        return True

    def same(self, settings):
        """Raises ValueError that names what differs from the settings of a saved state."""
        own = json.loads(as_json(self.settings))
        flat, other = flattened(own), flattened(settings)
        names = [name for name in flat | other if flat.get(name) != other.get(name)]
        if names:
            first = names[0]
            raise ValueError(
                f"--resume: the state in {self.path} was saved with other settings: {first} was "
                f"{other.get(first)!r} and is {flat.get(first)!r} (differing: {', '.join(names)})"
            )


def flattened(settings, prefix=""):
    """{"options.rate": value} of dictionaries in dictionaries."""
    flat = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= flattened(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
