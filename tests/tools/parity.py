"""How far minitx is from the reference library, Hugging Face transformers on PyTorch.

    python tests/tools/parity.py FOLDER [--text TEXT]    both on one text, by layer (needs torch)
    python tests/tools/parity.py --golden                the golden variants as a Markdown table

Read downward: the golden files, one comparison, the table over all variants, the comparison with
the library itself. Distances are max |difference|; `test_parity.py` sets the bounds.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

import minitx

GOLDEN = Path(__file__).parents[1] / "golden"
VARIANTS = sorted(path.parent.name for path in GOLDEN.glob("*/reference.safetensors"))
DTYPES = (np.float64, np.float32)
INPUTS = ("tokens", "types", "positions", "valid", "mask")
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
    final norm.
    """
    name, _, n = key.partition(".")
    if name != "hidden":
        return (name, int(n)) if n else name
    if int(n) < config.n_layers:
        return "resid_pre", int(n)
    return "ln_final" if config.pre_norm else ("resid_post", config.n_layers - 1)


def batch(rows, side, fill):
    """Texts of different lengths -> arrays for `run`, and each text's columns.

    The arrays are [B T], but a mask [B 1 T T].
    """
    lengths = [len(row["tokens"]) for row in rows]
    B, T = len(rows), max(lengths)
    where = [slice(T - n, T) if side == "left" else slice(n) for n in lengths]
    arrays = {name: np.zeros((B, T), int) for name in ("types", "positions") if name in rows[0]}
    arrays |= {"tokens": np.full((B, T), fill), "valid": np.zeros((B, T), bool)}
    if "mask" in rows[0]:
        arrays["mask"] = np.zeros((B, 1, T, T), bool)
    for i, (row, columns) in enumerate(zip(rows, where)):
        for name, array in arrays.items():
            place = (i, 0, columns, columns) if name == "mask" else (i, columns)
            array[place] = row.get(name, True)
    return arrays, where


def text_only(x, key, columns):
    """One text's part of an array without batch axis: its columns on each axis of tokens."""
    name = key if isinstance(key, str) else key[0]
    axes = minitx.POINTS[name][0].split()[1:]
    if x.ndim != len(axes):
        return x
    place = tuple(columns if axis in "TS" else slice(None) for axis in axes)
    return x[place]


def distances(model, rows, side=None, fill=0):
    """{point: (max |difference|, max |reference|)}.

    Each text alone, or all in a batch padded on one side.
    """
    groups = [[row] for row in rows] if side is None else [rows]
    farthest = {}
    for group in groups:
        arrays, where = batch(group, side, fill)
        trace = minitx.run(model, arrays.pop("tokens"), **arrays)
        for i, row in enumerate(group):
            for name in row.keys() - set(INPUTS):
                key = our_name(name, model.config)
                ours = text_only(trace[key][i], key, where[i])
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
    """The parity table for the README."""
    lines = [
        "| variant | float64: max abs. difference | float32: of the largest output |",
        "|---|---|---|",
    ]
    return "\n".join(lines + [f"| {name} | {f64:.1e} | {f32:.1e} |" for name, f64, f32 in table()])


# --- against the library itself


def library(folder, row, dtype):
    """What the reference library computes for one text, by its own names, without a batch axis."""
    try:
        import torch
        import transformers
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
    """A text as one row of ids and types; random ids where the folder has no tokenizer."""
    try:
        encoded = model.encode([text])
    except FileNotFoundError:
        print("no tokenizer here: random ids")
        n = min(32, model.config.n_ctx)
        return {"tokens": np.random.default_rng(0).integers(5, model.config.n_vocab, n)}
    return {name: x[0] for name, x in encoded._asdict().items() if name in INPUTS and x is not None}


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
    """See the module's text."""
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
