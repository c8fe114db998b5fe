"""Matrices that stay in their file (machine/mapped.py): the same results bit for bit, less memory.

Order: results, pieces, memory, what is asked of such a matrix, what refuses such a model.
"""

import json
import math
import pickle
import sys

import numpy as np
import pytest
import tiny
from counting import cores
from processes import python

import minitx
from minitx import analysis
from minitx.learning import start
from minitx.learning.parameters import parameters, writable
from minitx.loading.files import read_tensors
from minitx.machine import mapped, threads

STORED = {"BF16": tiny.bf16, "F16": lambda x: x.astype("<f2"), "F32": lambda x: x}
VARIANTS = [
    *("llama-grouped", "llama-tied", "mistral-window", "qwen3-norms", "gpt_neox-parallel"),
    *("falcon-two-norms", "gptj-part", "phi3-shared", "gemma3-window", "olmo2-shared"),
    *("gpt_neo-window", "gemma-shared", "starcoder2-shared", "phi-norms", "smollm3-listed"),
    *("olmo-limited", "granite-shared"),
    *("bloom-three", "modernbert-masked", "gpt2-causal", "bert-masked", "mpnet-masked"),
    "albert-inner",
    *("bart-causal", "t5-gated", "marian-separate"),
]


def copy(folder, variant, stored="BF16"):
    """A golden checkpoint in 16 bits, or in another format."""
    (folder / "config.json").write_text(json.dumps(tiny.config(variant)))
    tensors = read_tensors(tiny.GOLDEN / variant)
    floats = [name for name, tensor in tensors.items() if tensor.stored != "BOOL"]
    tensors = {name: STORED[stored](tensors[name]("f4")) for name in floats}
    (folder / "model.safetensors").write_bytes(tiny.pack(tensors))
    return folder


def both(folder, **options):
    """A model in memory, and the same in its file."""
    return minitx.load(folder, **options), minitx.load(folder, keep_dtype=True, **options)


def assert_same(whole, kept, options=None):
    """Every point of two runs, and what is put out, is the same in every bit."""
    tokens, texts = tiny.texts(whole, side="right" if not whole.config.causal else "left")
    options = texts | (options or {})
    a, b = (minitx.run(model, tokens, **options) for model in (whole, kept))
    assert {*a} == {*b}
    wrong = [key for key in a if a[key].dtype != b[key].dtype or not np.array_equal(a[key], b[key])]
    assert not wrong


# --- results


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_point_is_that_of_a_model_in_memory(tmp_path, variant):
    whole, kept = both(copy(tmp_path, variant))
    matrices = [x for part in (kept.weights, *kept.layers) for x in vars(part).values()]
    assert not any(isinstance(x, np.ndarray) and x.ndim == 2 and x.base for x in matrices)
    assert mapped.stays_in_file(kept) and not mapped.stays_in_file(whole)
    assert_same(whole, kept)


@pytest.mark.parametrize("stored, dtype", [("F16", "f4"), ("F32", "f4"), ("BF16", "f8")])
def test_so_in_every_format(tmp_path, stored, dtype):
    for variant in ("llama-grouped", "gpt_neox-sequential", "gpt2-causal"):
        folder = tmp_path / variant
        folder.mkdir()
        assert_same(*both(copy(folder, variant, stored), dtype=dtype))


def test_so_with_edits_and_masks(tmp_path):
    def shuffled(x):
        return x[..., ::-1]

    edits = {"pos_angle": np.zeros_like, ("z", 0): shuffled, "mlp_out": shuffled}
    options = {"edits": edits, "mask": lambda q, k: abs(q - k) < 3}
    assert_same(*both(copy(tmp_path, "llama-grouped")), options)


@pytest.mark.parametrize("variant", ["llama-grouped", "gpt_neox-parallel", "bart-causal"])
def test_so_token_by_token_over_a_cache(tmp_path, variant):
    """Also with beams, whose few rows have products of their own."""
    whole, kept = both(copy(tmp_path, variant))
    options = {"prompt": tiny.ids(whole, 5)}
    if whole.encoder is not None:
        options = {"source": tiny.ids(whole.encoder, 7)}
    for beams in (1, 3):
        a, b = (minitx.generate(m, n=6, num_beams=beams, **options) for m in (whole, kept))
        assert np.array_equal(a, b)


def test_shards_are_read_where_they_lie():
    """The golden folder itself: shards in bfloat16."""
    folder = tiny.GOLDEN / "llama-grouped"
    assert len([*folder.glob("*.safetensors")]) > 2
    assert_same(*both(folder))


# --- pieces


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_large_matrix_is_read_in_pieces(tmp_path, monkeypatch, n_threads):
    """No more than a piece at once, each number once a pass, the same results bit for bit."""
    cores(n_threads)
    whole, kept = both(copy(tmp_path, "llama-grouped"))
    sizes, of_file = [], mapped.Mapped.__getitem__

    def watched(self, key):
        x = of_file(self, key)
        sizes.append(x.size)
        return x

    monkeypatch.setattr(mapped.Mapped, "__getitem__", watched)
    monkeypatch.setattr(threads, "PIECE", 100)
    tokens = tiny.ids(whole, 1, 5)
    x = minitx.forward(kept, tokens)
    assert np.array_equal(x, minitx.forward(whole, tokens))
    assert np.array_equal(minitx.logits(kept, x), minitx.logits(whole, x))
    widest = max(W.shape[0] for W in (kept.weights.W_U, kept.layers[0].W_out))
    assert max(sizes[1:]) <= 100 + widest  # a piece and a feature; the first are rows of words
    parts = (kept.weights.W_U, *(x for w in kept.layers for x in vars(w).values()))
    matrices = sum(W.size for W in parts if isinstance(W, mapped.Mapped))
    assert sum(sizes) == matrices + tokens.size * kept.config.d_model  # and the rows of the tokens


@pytest.mark.parametrize("size, n_threads", [(1, 1), (10, 1), (10, 2), (35, 2), (41, 2), (40, 4)])
def test_pieces_are_equal_and_keep_all_threads_busy(monkeypatch, size, n_threads):
    monkeypatch.setattr(threads, "PIECE", 10)
    monkeypatch.setattr(threads, "count", lambda: n_threads)
    W, rows = np.zeros((1, size)), np.zeros((1, 1))
    step = threads.product_step(rows, W)
    n = math.ceil(size / step)
    assert step <= 10 and (n == 1 or (n % n_threads == 0 or step * n - size < n))


# --- memory

CHILD = """
import sys
import numpy as np
import minitx
def peak():
    status = dict(line.split(":") for line in open("/proc/self/status"))
    return int(status["VmHWM"].split()[0]) / 1024
tokens = np.arange(16)
minitx.forward(minitx.load(sys.argv[1]), tokens)
before = peak()
model = minitx.load(sys.argv[2], keep_dtype=sys.argv[3] == "kept")
minitx.logits(model, minitx.forward(model, tokens))
print(peak() - before)
"""


def large(folder):
    """A Llama of 37 million weights in bfloat16: 75 MB."""
    sizes = {"hidden_size": 512, "intermediate_size": 2048, "vocab_size": 20000}
    sizes |= {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8}
    drop = ("head_dim", "pad_token_id")
    config = tiny.config("llama-grouped", drop, **sizes, attention_bias=False, mlp_bias=False)
    drawn = start.start(config, 0, "float32").tensors()
    tensors = {name: tiny.bf16(x) for name, x in drawn.items()}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(tiny.pack(tensors))
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted otherwise elsewhere")
def test_the_peak_is_far_below_the_weights(tmp_path):
    """MB beside a small model's: 44 kept, 184 in memory; the file has 74, as float32 148."""
    folder, few = large(tmp_path), tiny.GOLDEN / "llama-grouped"

    def peak(how):
        _, printed = python("-c", CHILD, str(few), str(folder), how)
        return float(printed)

    assert peak("kept") < 60 and peak("whole") > 140


# --- what is asked of such a matrix


def test_it_is_used_as_an_array_is(tmp_path):
    """Products are those with an equal array: NumPy sums x.T @ x, one array twice, otherwise.

    With AVX2 kernels that order moves x.T @ x by up to 2.4e-7 of 3.2.
    """
    whole, kept = both(copy(tmp_path, "gpt_neox-parallel"))
    for name in ("W_Q", "W_V", "W_in", "W_O"):
        W, x = getattr(kept.layers[1], name), getattr(whole.layers[1], name)
        assert W.shape == x.shape and W.dtype == x.dtype and W.nbytes == x.nbytes
        assert (W.ndim, len(W), W.size) == (x.ndim, len(x), x.size)
        rows = np.array([2, 0, 2])
        for a, b in ((W, x), (W.T, x.T), (W[3], x[3]), (W[:, 2:5], x[:, 2:5]), (W[rows], x[rows])):
            assert np.array_equal(np.asarray(a), b)
        y = np.array(x)
        assert np.array_equal(x.T @ W, x.T @ y) and np.array_equal(W.T @ x, y.T @ x)
        assert np.array_equal(2 * W - x, x) and W.mean() == x.mean()
        assert np.linalg.norm(W) == np.linalg.norm(x)
    assert repr(W) == "Mapped [24 24], read from its file as float32"
    with pytest.raises(AttributeError):
        W.no_such_name  # noqa: B018
    with pytest.raises(TypeError):
        W[0, 0] = 1.0


def test_a_summary_counts_tied_matrices_once_and_reads_none(tmp_path, monkeypatch):
    whole, kept = both(copy(tmp_path, "llama-tied"))
    monkeypatch.delattr(mapped.Mapped, "__getitem__")
    lines, wanted = str(kept).splitlines(), str(whole).splitlines()
    assert lines[:-1] == wanted
    assert lines[-1] == "  matrices stay in the file and are read when they are used"
    assert repr(kept.layers[0]) == repr(whole.layers[0])
    assert minitx.cost(kept, [4, 5, 6]) == minitx.cost(whole, [4, 5, 6])


def test_a_number_that_is_not_finite_is_named(tmp_path):
    def spoilt(tensors):
        tensors = {name: x.astype("<f2") for name, x in tensors.items()}
        tensors["transformer.h.1.mlp.c_fc.weight"][3, 4] = np.nan
        return tensors

    model = minitx.load(tiny.make(tmp_path, "gpt2-causal", spoilt), keep_dtype=True)
    with pytest.raises(ValueError, match=r"NaN or infinity in: layers\[1\].W_in$"):
        minitx.check(model)


# --- errors


NEED_ARRAYS = {
    "gradients": lambda model: minitx.gradients(model, [3, 4], [4, 5]),
    "a dictionary of all arrays": parameters,
    "a copy that learns": writable,
    "rotation": lambda model: analysis.run("rotation", model, documents=2),
}


def test_what_needs_arrays_refuses_by_name():
    model = minitx.load("tiny-gpt2", keep_dtype=True)
    for what, refuses in NEED_ARRAYS.items():
        with pytest.raises(ValueError, match=rf"^{what} needs the weights in memory; its weights "):
            refuses(model)
    with pytest.raises(TypeError, match="cannot be copied or sent: its weights stay in their file"):
        pickle.dumps(model.weights.W_E)


def test_numbers_that_do_not_fit_are_named_when_they_are_read(tmp_path):
    huge = tiny.edited(transformer__wte__weight=lambda x: x.astype("<f8") * 1e60)
    model = minitx.load(tiny.make(tmp_path, "gpt2-causal", huge), keep_dtype=True)
    message = r"tensor 'transformer.wte.weight' has numbers beyond float32; it is stored as F64"
    with pytest.raises(ValueError, match=message):
        minitx.forward(model, [3, 4])


def test_an_unknown_format_is_refused_when_the_model_is_loaded(tmp_path):
    whole_numbers = tiny.edited(transformer__wte__weight=lambda x: x.astype("<i8"))
    folder = tiny.make(tmp_path, "gpt2-causal", whole_numbers)
    with pytest.raises(ValueError, match=r"is stored as I64; wanted one of F64, F32, F16, BF16"):
        minitx.load(folder, keep_dtype=True)
