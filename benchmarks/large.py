"""A checkpoint of 1.2 billion weights: memory and seconds, left in its file, in memory, in PyTorch.

    python -m benchmarks.large [--python PYTHON] [--tokens N ...] [--small] [--out FILE]

The shape is that of Llama 3.2 1B, the weights are random, in bfloat16, in shards of a temporary
folder that is deleted afterwards. Every system runs in a process of its own, one after the other:
peak memory is that of the process (VmHWM), seconds are of one pass with the logits of the last
token, on the clock and of the processor. PYTHON: one that has torch and the reference library;
without it, minitx alone is measured.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LLAMA = dict(
    model_type="llama",
    architectures=["LlamaForCausalLM"],
    vocab_size=128256,
    hidden_size=2048,
    num_hidden_layers=16,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=64,
    intermediate_size=8192,
    hidden_act="silu",
    max_position_embeddings=8192,
    rms_norm_eps=1e-5,
    rope_theta=500000.0,
    tie_word_embeddings=True,
    bos_token_id=0,
    eos_token_id=None,
    torch_dtype="bfloat16",
)
SMALL = dict(vocab_size=512, hidden_size=64, num_hidden_layers=2, num_attention_heads=4)
SMALL |= dict(num_key_value_heads=2, head_dim=16, intermediate_size=128)
LAYERS_IN_SHARD = 4
RANDOM = 1_000_003  # numbers that are drawn; the weights are these again and again
SYSTEMS = "minitx, in its file", "minitx, in memory", "torch, bfloat16", "torch, float32"
COLUMNS = "system", "tokens", "peak MB", "seconds", "processor seconds"


# --- the checkpoint


def shapes(config):
    """{shard: {tensor: shape}}: the embedding, then some layers in each."""
    D, M, V = (config[key] for key in ("hidden_size", "intermediate_size", "vocab_size"))
    d, n = config["head_dim"], config["num_hidden_layers"]
    A, K = config["num_attention_heads"] * d, config["num_key_value_heads"] * d
    of_layer = {f"self_attn.{name}_proj": (K, D) for name in "kv"}
    of_layer |= {"self_attn.q_proj": (A, D), "self_attn.o_proj": (D, A), "mlp.down_proj": (D, M)}
    of_layer |= {f"mlp.{name}_proj": (M, D) for name in ("gate", "up")}
    of_layer |= {f"{name}_layernorm": (D,) for name in ("input", "post_attention")}
    shards = {0: {"model.embed_tokens.weight": (V, D), "model.norm.weight": (D,)}}
    for i in range(n):
        shard = shards.setdefault(1 + i // LAYERS_IN_SHARD, {})
        shard |= {f"model.layers.{i}.{name}.weight": shape for name, shape in of_layer.items()}
    return shards


def write_checkpoint(folder, config):
    """Write config.json and shards, a tensor at a time."""
    numbers = np.random.default_rng(0).standard_normal(RANDOM, np.float32)
    matrix, gain = (bfloat16(x) for x in (0.02 * numbers, 1 + 0.02 * numbers))
    shards, where = shapes(config), {}
    for number, tensors in shards.items():
        file = f"model-{number + 1:05}-of-{len(shards):05}.safetensors"
        where |= dict.fromkeys(tensors, file)
        write_shard(folder / file, tensors, matrix, gain)
    index = json.dumps({"metadata": {}, "weight_map": where})
    (folder / "model.safetensors.index.json").write_text(index, encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def bfloat16(x):
    """Float32 numbers -> the bytes of bfloat16, rounded towards zero."""
    return (x.view(np.uint32) >> 16).astype(np.uint16).tobytes()


def write_shard(path, tensors, matrix, gain):
    """Write one safetensors file; matrix, gain: bytes that are repeated."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors.items():
        begin, end = end, end + 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for i, shape in enumerate(tensors.values()):
            numbers = matrix if len(shape) == 2 else gain
            write_repeated(file, numbers, 2 * int(np.prod(shape)), first=2 * 9973 * i)


def write_repeated(file, numbers, n, first):
    """Write n bytes: `numbers` again and again, from the byte `first` on."""
    numbers = numbers[first % len(numbers) :] + numbers[: first % len(numbers)]
    for start in range(0, n, len(numbers)):
        file.write(numbers[: n - start])


# --- one system, in a process of its own


def measure(system, folder, lengths):
    """Print a JSON line for each length: peak MB so far, seconds of a pass, of the processor."""
    library, kind = system.split(", ")
    load = of_torch if library == "torch" else of_minitx
    logits = load(folder, kind)
    for n in lengths:
        tokens = np.random.default_rng(n).integers(0, 500, (1, n))
        wall, processor = time.perf_counter(), time.process_time()
        y = logits(tokens)
        seconds = time.perf_counter() - wall, time.process_time() - processor
        about = {"system": system, "tokens": n, "peak": peak(), "seconds": seconds[0]}
        about |= {"processor": seconds[1], "first": y.ravel()[:4].tolist()}
        print(json.dumps(about), flush=True)


def of_minitx(folder, kind):
    """Function of tokens that gives the logits of the last."""
    import minitx

    model = minitx.load(folder, keep_dtype=kind == "in its file")

    def logits(tokens):
        return minitx.logits(model, minitx.forward(model, tokens)[:, -1:])

    return logits


def of_torch(folder, kind):
    """The same by the reference library."""
    import torch
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM.from_pretrained(folder, dtype=getattr(torch, kind)).eval()

    def logits(tokens):
        with torch.inference_mode():
            y = model(torch.as_tensor(tokens), logits_to_keep=1, use_cache=False).logits
        return y.float().numpy()

    return logits


def peak():
    """MB of memory that this process held at most, the file's pages among them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    held = next(line for line in lines if line.startswith("VmHWM"))
    return int(held.split()[1]) / 1e3


# --- all of them


def measured(python, system, folder, lengths):
    """What one process prints, as dictionaries."""
    arguments = ["--one", system, str(folder), "--tokens", *map(str, lengths)]
    command = [python, "-m", "benchmarks.large", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{system}: {done.stderr[-2000:]}")
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"system"')]
    return [json.loads(line) for line in lines]


def table(rows):
    """The rows in Markdown."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for row in rows:
        numbers = f"{row['peak']:.0f} | {row['seconds']:.1f} | {row['processor']:.1f}"
        lines.append(f"| {row['system']} | {row['tokens']} | {numbers} |")
    return "\n".join(lines)


def parsed(argv):
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.large",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--python", help="a Python with torch and the reference library")
    parser.add_argument("--tokens", nargs="+", type=int, default=[128, 512], metavar="N")
    parser.add_argument("--small", action="store_true", help="a small shape, to try the script")
    parser.add_argument("--out", type=Path, help="a file for the table")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv=None):
    """Write the checkpoint, measure each system, print the table."""
    args = parsed(argv)
    if args.one:
        return measure(*args.one, args.tokens)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        write_checkpoint(Path(name), LLAMA | SMALL if args.small else LLAMA)
        for system in SYSTEMS:
            python = args.python if system.startswith("torch") else sys.executable
            if python:
                rows += measured(python, system, name, args.tokens)
                print(table(rows[-len(args.tokens) :]).splitlines()[-1], flush=True)
    lines = f"{table(rows)}\n\nLoad of the machine at the end: {os.getloadavg()[0]:.1f}"
    print(lines)
    if args.out:
        args.out.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
