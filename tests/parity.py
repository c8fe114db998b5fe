"""How far minitx is from the reference library (Hugging Face transformers on PyTorch), point by point.

    python tests/parity.py FOLDER [--text TEXT]    both on one text, layer by layer (needs torch)
    python tests/parity.py --golden                the golden variants as a Markdown table (no torch)

Read downward: the golden files, one comparison, the table over all variants, the comparison with the library
itself. Distances are max |difference|; `test_parity.py` sets the bounds.
"""
import argparse
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

import minitx

GOLDEN = Path(__file__).parent / "golden"
VARIANTS = sorted(path.parent.name for path in GOLDEN.glob("*/reference.safetensors"))
DTYPES = (np.float64, np.float32)
INPUTS = ("tokens", "types", "positions", "valid", "mask")
COLUMNS = "resid_pre q k v pattern z attn_out pre mlp_out".split()
TEXT = "The tide had gone out before the boats came home, and nobody on the quay said a word."


def texts(variant):
    """The golden texts of one variant: dicts of inputs (tokens; types, positions) and expected outputs."""
    found = {}
    for name, value in load_file(GOLDEN / variant / "reference.safetensors").items():
        i, key = name.split(".", 1)
        found.setdefault(int(i), {})[key] = value
    return [found[i] for i in sorted(found)]


def our_name(key, config):
    """The library's "hidden.3" or "q.3" -> our ("resid_pre", 3), ("q", 3).

    The last of its hidden states is the residual stream after the last layer, in GPT-2 after the final norm.
    """
    name, _, n = key.partition(".")
    if name != "hidden":
        return (name, int(n)) if n else name
    if int(n) < config.n_layers:
        return "resid_pre", int(n)
    return "ln_final" if config.pre_norm else ("resid_post", config.n_layers - 1)


def batch(rows, side, fill):
    """Texts of different lengths -> arrays for `run` ([B T], mask [B 1 T T]), and each text's columns."""
    lengths = [len(row["tokens"]) for row in rows]
    B, T = len(rows), max(lengths)
    where = [slice(T - n, T) if side == "left" else slice(n) for n in lengths]
    out = {name: np.zeros((B, T), int) for name in ("types", "positions") if name in rows[0]}
    out |= {"tokens": np.full((B, T), fill), "valid": np.zeros((B, T), bool)}
    if "mask" in rows[0]:
        out["mask"] = np.zeros((B, 1, T, T), bool)
    for i, (row, columns) in enumerate(zip(rows, where)):
        for name, array in out.items():
            array[(i, columns) if name != "mask" else (i, 0, columns, columns)] = row.get(name, True)
    return out, where


def text_only(x, key, columns):
    """One text's part of an array without batch axis: its own columns on every axis that counts tokens."""
    axes = minitx.POINTS[key if isinstance(key, str) else key[0]][0].split()[1:]
    return x[tuple(columns if axis in "TS" else slice(None) for axis in axes)] if x.ndim == len(axes) else x


def distances(model, rows, side=None, fill=0):
    """{point: (max |difference|, max |reference|)}, each text alone, or all in a batch padded on one side."""
    found = {}
    for group in [[row] for row in rows] if side is None else [rows]:
        given, where = batch(group, side, fill)
        trace = minitx.run(model, given.pop("tokens"), **given)
        for i, row in enumerate(group):
            for name in row.keys() - set(INPUTS):
                key = our_name(name, model.config)
                ours = text_only(trace[key][i], key, where[i])
                assert ours.shape == row[name].shape, f"{key}: {ours.shape}, reference {row[name].shape}"
                assert ours.dtype == model.weights.W_E.dtype, f"{key} is {ours.dtype}"
                far, size = found.get(key, (0.0, 0.0))
                found[key] = max(far, abs(ours - row[name]).max()), max(size, abs(row[name]).max())
    return found


def output(config):
    """The point that a model is for: its logits, or the residual stream of one without a head."""
    return "logits" if config.head else our_name(f"hidden.{config.n_layers}", config)


def table():
    """Rows: variant, float64 max |difference| of all points, float32 max |difference| / max |output|."""
    for variant in VARIANTS:
        exact, fast = (minitx.load(GOLDEN / variant, dtype=dtype) for dtype in DTYPES)
        far, size = distances(fast, texts(variant))[output(fast.config)]
        yield variant, max(far for far, _ in distances(exact, texts(variant)).values()), far / size


def markdown():
    """The parity table for the README."""
    lines = ["| variant | float64: max abs. difference | float32: of the largest output |", "|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {f64:.1e} | {f32:.1e} |" for name, f64, f32 in table()])


# --- against the library itself ---------------------------------------------------------------------------

def library(folder, row, dtype):
    """What the reference library computes for one text, under its own names, without a batch axis."""
    try:
        import torch
        import transformers

        from make_golden import library_model, run, watch
    except ImportError as error:
        sys.exit(f"parity compares with the reference library, which is not here ({error}); "
                 "wanted: pip install '.[torch]'")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model, seen = library_model(folder, np.dtype(dtype).name), {}
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
    return {name: x[0] for name, x in vars(encoded).items() if name in INPUTS and x is not None}


def compare(folder, text):
    """Print a table per precision: a line for every layer, a column for every point."""
    for dtype in DTYPES:
        model = minitx.load(folder, dtype=dtype)
        row = inputs(model, text)
        expected = library(folder, row, dtype)
        if model.config.head is None:
            expected.pop("logits", None)
        print(f"\n{folder}, {len(row['tokens'])} tokens, both in {np.dtype(dtype).name}: max |difference|")
        print_layers(distances(model, [row | expected]), model.config)


def print_layers(far, config):
    """{point: (distance, size)} as a table; below it what the model gives out, and the farthest of all."""
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
    parser.add_argument("folder", nargs="?", help="a checkpoint folder, a bundled name, or a fetched hub id")
    parser.add_argument("--text", default=TEXT)
    parser.add_argument("--golden", action="store_true", help="print the table of golden variants instead")
    given = parser.parse_args()
    if given.golden == (given.folder is not None):
        parser.error("wanted either a folder or --golden")
    if given.golden:
        print(markdown())
    else:
        import weights
        compare(weights.find(given.folder), given.text)


if __name__ == "__main__":
    main()
