"""minitx record: the reference library's numbers for a few texts, in a file that needs no torch.

Read downward: `make`, texts as ids, batches, the points of one batch.
"""

import importlib.metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np

import minitx
from minitx import points
from minitx.loading.files import read_json

from ..contract import options, sides
from ..machine.files import writable_file
from ..running import settings
from ..texts import formats
from . import batches, library, reference, sampled


class How(NamedTuple):
    """What is recorded; HELPS says what each value is."""

    text: str = "sample"
    texts: int = 8
    tokens: int = 64
    sample: int = 256
    seed: int = 0
    points: list[str] | None = None


HELPS = {
    "text": options.WAYS,
    "texts": "documents of it",
    "tokens": "to which each is cut, after a word",
    "sample": "values that are kept of each array; 0: all",
    "seed": "by which these are drawn",
    "points": "only these activations, separated by commas (all that the library returns)",
}


def make(folder, path, how=How()):  # noqa: B008  (a tuple)
    """Record what the library computes for a folder's model; returns (Reference, bytes written).

    Each text alone, and all of them padded in one batch, in float64. Raises ValueError if the
    library is not installed, or shows none of the points.
    """
    path, folder = writable_file(path), Path(folder)
    ours = minitx.load(folder)
    wanted = set(points.expand(how.points, points.points(ours), ours))
    model = library.load(folder)
    words, inputs_of_all = inputs_of(folder, ours, how)
    rng = np.random.default_rng(how.seed)
    seen, arrays, samples = {}, [], []
    library.watch(model, seen)
    for inputs in inputs_of_all:
        computed = library.run(model, inputs, seen)
        kept = {point: x for point, x in computed.items() if point in wanted}
        values, places = draw(kept, inputs, how.sample, rng)
        arrays.append(values)
        samples.append(places)
    if not any(arrays):
        raise ValueError(f"the reference library has none of {', '.join(how.points)}")
    recorded = reference.Reference(inputs_of_all, arrays, samples, about(folder, words, how))
    return recorded, reference.write(path, recorded)


def about(folder, words, how):
    """What the file says of itself."""
    stated = {"texts": words, "dtype": "float64", "seed": how.seed, "sample": how.sample}
    stated["config"] = read_json(folder / "config.json")
    stated["versions"] = versions()
    return stated | settings.model_files(folder)


def versions():
    """Of all that computed the reference."""
    packages = ("torch", "transformers", "tokenizers")
    return settings.versions(()) | {name: importlib.metadata.version(name) for name in packages}


# --- texts


def inputs_of(folder, ours, how):
    """The texts [N], None where ids were drawn at random, and the batches of their ids [Inputs]."""
    cfg = sides.reader(ours).config
    most = min(how.tokens, cfg.n_ctx)
    tokenizer = library_tokenizer(folder, ours)
    if tokenizer is None:
        rows = batches.random_rows(cfg, how.texts, most, how.seed)
        return None, batches.of_rows(rows, ours)
    words = shortened(how.text, how.texts, most, tokenizer)
    rows = [np.array(tokenizer(own)["input_ids"]) for own in words]
    return words, batches.of_rows(rows, ours)


def library_tokenizer(folder, ours):
    """The library's own tokenizer of a folder; None if the folder has none.

    The library would make an empty one up.
    """
    import transformers

    try:
        sides.reader(ours).tokenizer.encode("a")
    except FileNotFoundError:
        return None
    except ValueError:
        pass  # there is one, which minitx refuses
    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def shortened(text, n, most, tokenizer):
    """The first n documents of a text, each cut after the word at which it has `most` tokens."""
    formats.filled(text)
    documents = []
    for record in formats.records(text):
        words = record.text.split()
        while words and len(tokenizer(" ".join(words))["input_ids"]) > most:
            words = words[: max(1, len(words) * 3 // 4)] if len(words) > 1 else []
        if words:
            documents.append(" ".join(words))
        if len(documents) == n:
            break
    if not documents:
        raise ValueError(f"{formats.shown(text)} has no document of {most} tokens or less")
    return documents


# --- points


def draw(computed, inputs, sample, rng):
    """{point: values [N]} of one batch, and the places of the values by the size of an array."""
    values, places = {}, {}
    for point, x in computed.items():
        row = reference.flat(point, x, inputs)
        if row.size not in places:
            places[row.size] = sampled.draw(row.size, sample, rng)
        values[point] = row[places[row.size]]
    return values, places
