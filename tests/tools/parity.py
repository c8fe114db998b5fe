"""How far minitx is from the reference library, Hugging Face transformers on PyTorch.

    python tests/tools/parity.py FOLDER [--text TEXT]    both on one text, by layer (needs torch)
    python tests/tools/parity.py --golden                the golden variants as a Markdown table

Distances are max |difference|; `test_parity.py` sets the bounds.
"""

import argparse
import json
import sys
from pathlib import Path

import documents
import numpy as np
from safetensors.numpy import load_file

import minitx
from minitx.inputs import Batch, shifted

GOLDEN = Path(__file__).parents[1] / "golden"
VARIANTS = sorted(path.parent.name for path in GOLDEN.glob("*/reference.safetensors"))
ROWS = json.loads(Path(__file__).with_name("variants.json").read_text())
DECODERS = [name for name, *_ in ROWS["make_golden_decoders"]]
TERMS = [name for name, *_ in ROWS["make_golden_distances"]]
DTYPES = (np.float64, np.float32)
# what a text comes with -> the axes of tokens that it has: T of the model's own, S of a source
INPUTS = {
    "tokens": "T",
    "types": "T",
    "positions": "T",
    "valid": "T",
    "mask": "TT",
    "source": "S",
    "source_valid": "S",
    "enc_mask": "SS",
    "cross_mask": "TS",
}
IDS = {"T": "tokens", "S": "source"}
COLUMNS = "resid_pre q k v pattern z attn_out pre mlp_out".split()
TEXT = "The tide had gone out before the boats came home, and nobody on the quay said a word."


def texts(variant):
    """The golden texts of one variant: dicts of inputs and expected outputs by name."""
    rows = {}
    for name, value in load_file(GOLDEN / variant / "reference.safetensors").items():
        i, key = name.split(".", 1)
        rows.setdefault(int(i), {})[key] = value
    return [rows[i] for i in sorted(rows)]


def our_name(key, config):
    """The library's "hidden.3" or "q.3" -> our ("resid_pre", 3), ("q", 3).

    The last of its hidden states is the residual stream after the last layer, in GPT-2 after the
    final norm. Names of an encoder begin with "enc_".
    """
    name, _, n = key.partition(".")
    part = "enc_" if name.startswith("enc_") else ""
    if name != f"{part}hidden":
        return (name, int(n)) if n else name
    stack = config.encoder if part else config
    if int(n) < stack.n_layers:
        return f"{part}resid_pre", int(n)
    return f"{part}ln_final" if stack.pre_norm else (f"{part}resid_post", stack.n_layers - 1)


def columns(rows, sides):
    """{axis: length of a padded batch}, and for each text {axis: where it lies}.

    sides: {axis: on which side its padding is}.
    """
    ids = {axis: name for axis, name in IDS.items() if name in rows[0]}
    sizes = {axis: max(len(row[name]) for row in rows) for axis, name in ids.items()}
    where = []
    for row in rows:
        lengths = {axis: len(row[name]) for axis, name in ids.items()}
        places = {axis: slice(n) for axis, n in lengths.items()}
        left = [axis for axis in ids if sides[axis] == "left"]
        places |= {axis: slice(sizes[axis] - lengths[axis], sizes[axis]) for axis in left}
        where.append(places)
    return sizes, where


def batch(rows, sides, fill):
    """Texts of different lengths -> arrays for `run`, and where each text lies, as `columns` says.

    The arrays are [B T] or [B S], but masks [B 1 T S].
    """
    sizes, where = columns(rows, sides)
    wanted = ["valid"] + ["source_valid"] * ("source" in rows[0])
    arrays = {}
    for name, axes in INPUTS.items():
        if name in rows[0] or name in wanted:
            shape = [sizes[axis] for axis in axes]
            kind = int if name in ("tokens", "source", "types", "positions") else bool
            padding = fill if name in IDS.values() else 0
            array = arrays[name] = np.full((len(rows), *shape), padding, kind)
            for i, (row, places) in enumerate(zip(rows, where)):
                array[(i, *(places[axis] for axis in axes))] = row.get(name, True)
            if len(axes) == 2:
                arrays[name] = array[:, None]
    return arrays, where


def text_only(x, key, places):
    """One text's part of an array without batch axis: its columns on each axis of tokens."""
    name = key if isinstance(key, str) else key[0]
    axes = minitx.POINTS[name].axes.split()[1:]
    if x.ndim != len(axes):
        return x
    own = "S" if name.startswith("enc_") else "T"
    of_keys = "S" if name.startswith("cross_") else own
    where = {"T": places[own], "S": places.get(of_keys)}
    return x[tuple(where.get(axis, slice(None)) for axis in axes)]


def distances(model, rows, side=None, fill=0, source_side=None):
    """{point: (max |difference|, max |reference|)}.

    Each text alone, or all in a batch padded on one side; source_side: by default the same.
    """
    groups = [[row] for row in rows] if side is None else [rows]
    sides = {"T": side, "S": source_side or side}
    farthest = {}
    for group in groups:
        arrays, where = batch(group, sides, fill)
        trace = minitx.run(model, arrays.pop("tokens"), **arrays)
        for i, row in enumerate(group):
            for name in row.keys() - set(INPUTS):
                key = our_name(name, model.config)
                x = trace[key]
                ours = text_only(x[i % len(x)], key, where[i])  # one bias by distance for all
                assert ours.dtype == model.weights.W_E.dtype, f"{key} is {ours.dtype}"
                far, size = distance(ours, row[name], key)
                before = farthest.get(key, (0.0, 0.0))
                farthest[key] = max(before[0], far), max(before[1], size)
    return farthest


def distance(ours, reference, key):
    """(max |difference|, max |reference|) of two arrays, which must have one shape."""
    assert ours.shape == reference.shape, f"{key}: {ours.shape}, reference {reference.shape}"
    return abs(ours - reference).max(), abs(reference).max()


def output(config):
    """The point that a model is for: its logits, or the residual stream of one without a head."""
    return "logits" if config.task_head else our_name(f"hidden.{config.n_layers}", config)


def table():
    """Rows: variant, distance in float64 of all points, in float32 of the output.

    In float64 it is max |difference|, in float32 max |difference| / max |output|.
    """
    for variant in VARIANTS:
        exact, fast = (minitx.load(GOLDEN / variant, dtype=dtype) for dtype in DTYPES)
        far, size = distances(fast, texts(variant))[output(fast.config)]
        yield variant, max(far for far, _ in distances(exact, texts(variant)).values()), far / size


def markdown():
    heads = "variant", "float64: max abs. difference", "float32: of the largest output"
    return documents.table(heads, [[x, f"{f64:.1e}", f"{f32:.1e}"] for x, f64, f32 in table()])


def library(folder, row, dtype):
    """What the reference library computes for one text, by its own names, without a batch axis."""
    try:
        import torch
        import transformers

        if "source" in row:
            from make_golden_pairs import library_model, run, watch
        else:
            from make_golden import library_model, run, watch
    except ImportError as error:
        sys.exit(
            f"parity compares with the reference library, which is not here ({error}); "
            "wanted: pip install '.[torch]'"
        )
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model = library_model(folder, np.dtype(dtype).name)
    seen = {}
    watch(model, True, seen)
    with torch.no_grad():
        return {name: x.numpy() for name, x in run(model, row, seen).items()}


def inputs(model, text):
    """A text as one row of ids and types; random ids where the folder has no tokenizer.

    An encoder-decoder has it as its source, and behind the start token as its target.
    """
    try:
        encoded = model.encode([text])
    except FileNotFoundError:
        print("no tokenizer here: random ids")
        n = min(32, model.config.n_ctx)
        encoded = Batch(
            np.random.default_rng(0).integers(5, model.config.n_vocab, (1, n)), None, None
        )
    row = {name: x[0] for name, x in encoded._asdict().items() if name in INPUTS and x is not None}
    if model.encoder is None:
        return row
    target = shifted(model.config, row["tokens"])[: model.config.n_ctx]
    return {"source": row["tokens"], "tokens": np.array(target)}


def compare(folder, text):
    """Print a table per precision: a line for every layer, a column for every point."""
    for dtype in DTYPES:
        model = minitx.load(folder, dtype=dtype)
        row = inputs(model, text)
        expected = library(folder, row, dtype)
        if model.config.task_head is None:
            expected.pop("logits", None)
        precision = np.dtype(dtype).name
        n = len(row["tokens"])
        print(f"\n{folder}, {n} tokens, both in {precision}: max |difference|")
        print_layers(distances(model, [row | expected]), model.config)


def print_layers(far, config):
    """{point: (distance, size)} as a table; below it the model's output and the farthest point."""
    print("layer ", *(f"{name:>9}" for name in COLUMNS))
    for layer in range(config.n_layers):
        print(f"{layer:<6}", *(f"{far[name, layer][0]:9.1e}" for name in COLUMNS))
    for key in (our_name(f"hidden.{config.n_layers}", config), "logits"):
        if key in far:
            print(f"{key}: {far[key][0]:.1e}, the largest value being {far[key][1]:.3g}")
    key = max(far, key=lambda key: far[key][0])
    print(f"farthest of {len(far)} points compared: {key}, {far[key][0]:.1e}")


def main():
    parser = argparse.ArgumentParser(description="Distance of minitx from the reference library.")
    parser.add_argument(
        "folder", nargs="?", help="a checkpoint folder, a bundled name, or a fetched hub id"
    )
    parser.add_argument("--text", default=TEXT)
    parser.add_argument(
        "--golden", action="store_true", help="print the table of golden variants instead"
    )
    given = parser.parse_args()
    if given.golden == (given.folder is not None):
        parser.error("wanted either a folder or --golden")
    if given.golden:
        print(markdown())
    else:
        from minitx import weights

        compare(weights.find(given.folder), given.text)


if __name__ == "__main__":
    main()
