"""Loading: every number exactly, names in every spelling, and no second copy in memory.

Broken files say what is wrong.
"""

import gc
import json
import mmap
import re
import weakref

import numpy as np
import pytest
import tiny
from safetensors.numpy import load_file

import minitx
from minitx.loading import files
from minitx.loading.checkpoint import UnreadWarning

E = "embeddings.word_embeddings.weight"


# --- every number exactly

# every 16-bit pattern, as a word embedding [V D]
EVERY = np.arange(65536, dtype="<u2").reshape(4096, 16)
# a one-layer GPT-2 for it
NARROW = dict(n_embd=16, n_head=2, n_layer=1, n_positions=8, n_inner=None, vocab_size=4096)
SHAPES = {
    "ln_1": (16,),
    "ln_2": (16,),
    "attn.c_attn": (16, 48),
    "attn.c_proj": (16, 16),
    "mlp.c_fc": (16, 64),
    "mlp.c_proj": (64, 16),
}


def sixteen_bits(folder, kind):
    """A one-layer GPT-2 of width 16 whose word embedding holds every pattern."""
    rng = np.random.default_rng(0)
    tensors = {"ln_f.weight": np.ones(16), "ln_f.bias": np.zeros(16)}
    tensors["wte.weight"] = (kind, EVERY.shape, EVERY.tobytes())
    tensors["wpe.weight"] = rng.normal(size=(8, 16))
    for name, shape in SHAPES.items():
        tensors[f"h.0.{name}.weight"] = rng.normal(size=shape)
        tensors[f"h.0.{name}.bias"] = np.zeros(shape[-1])
    return tiny.make(folder, "gpt2-causal", lambda _: tensors, **NARROW)


def test_bf16_is_widened_bit_for_bit(tmp_path):
    """All 65,536 patterns, NaN payloads and subnormals among them."""
    widened = EVERY.astype("<u4") << 16
    folder = sixteen_bits(tmp_path, "BF16")
    assert (minitx.load(folder).weights.W_E.view("<u4") == widened).all()
    with np.errstate(invalid="ignore"):  # NaN may lose its payload when it becomes a float64
        exact = minitx.load(folder, dtype=np.float64).weights.W_E
    values = widened.view("<f4")
    finite = np.isfinite(values)
    assert exact.dtype == np.float64
    assert (exact[finite] == values[finite]).all()


@pytest.mark.parametrize("kind", ["F64", "F32", "F16", "BF16"])
def test_a_file_in_the_other_byte_order_than_the_machine_s(tmp_path, monkeypatch, kind):
    """As a big-endian machine meets every file: the numbers are right, in its own byte order."""
    x = np.array([[1.5, -2.0], [0.25, 3e3]])
    if kind == "BF16":
        swapped = (x.astype("<f4").view("<u4") >> 16).astype(">u2")
    else:
        swapped = x.astype(files.DTYPES[kind].replace("<", ">"))
    path = tmp_path / "x.safetensors"
    path.write_bytes(tiny.pack({"x": (kind, x.shape, swapped.tobytes())}))
    turned = {name: text.replace("<", ">") for name, text in files.DTYPES.items()}
    monkeypatch.setattr(files, "DTYPES", turned)
    for dtype in (np.float32, np.float64):
        array = files.map_file(path)["x"](dtype)
        assert array.dtype.isnative and array.dtype == dtype
        assert np.allclose(array, x, rtol=2**-7 if kind == "BF16" else 0)


def test_f16_is_widened_exactly(tmp_path):
    halves = EVERY.view("<f2")
    for dtype in (np.float32, np.float64):
        W_E = minitx.load(sixteen_bits(tmp_path, "F16"), dtype=dtype).weights.W_E
        assert W_E.dtype == dtype
        np.testing.assert_array_equal(W_E, halves.astype(np.float64))  # NaN equals NaN here
        assert (np.signbit(W_E) == np.signbit(halves)).all()


def test_f64_beyond_float32_is_refused_by_name(tmp_path):
    large = tiny.edited(transformer__ln_f__weight=lambda x: x.astype("f8") * 1e300)
    tiny.make(tmp_path, "gpt2-causal", large)
    message = "'transformer.ln_f.weight' has numbers beyond float32; it"
    with pytest.raises(ValueError, match=message):
        minitx.load(tmp_path)
    assert minitx.load(tmp_path, dtype=np.float64).weights.ln_final_w.max() > 1e299


def test_f64_is_kept_whole_in_float64_and_rounded_to_nearest_in_float32(tmp_path):
    def double(tensors):
        """Float64 numbers that float32 cannot hold."""
        rng = np.random.default_rng(1)
        floats = {name: x for name, x in tensors.items() if x.dtype == np.float32}
        return {name: x + rng.normal(size=x.shape) for name, x in floats.items()}

    folder = tiny.make(tmp_path, "bert-masked", double)
    stored = load_file(folder / "model.safetensors")["bert." + E]
    assert (minitx.load(folder, dtype=np.float64).weights.W_E == stored).all()
    assert (minitx.load(folder).weights.W_E == stored.astype(np.float32)).all()
    assert (stored.astype(np.float32) != stored).any()


def test_tensors_that_are_not_aligned_are_the_same_numbers(tmp_path):
    byte = {"a.byte": np.zeros(1, np.uint8)}
    folder = tiny.make(tmp_path, "gpt2-causal", lambda tensors: byte | tensors)
    with pytest.warns(UnreadWarning, match=r"tensors that were not read: a\.byte$"):
        model = minitx.load(folder)
    aligned = minitx.load(tiny.make(tmp_path / "even", "gpt2-causal"))
    assert tiny.same(model, aligned)
    assert all(x.flags.aligned for _, x in tiny.walk(model))
    assert not any(mapped(x) for _, x in tiny.walk(model))
    assert model.unused == ("a.byte",)


def mapped(array):
    """Whether an array is a view of a mapped file."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, (mmap.mmap, memoryview))


@pytest.mark.parametrize(
    "variant",
    ["bert-masked", "roberta-masked", "distilbert-masked", "gpt2-causal", "gpt2-tied-head"],
)
def test_float32_weights_are_views_of_the_file_and_read_only(tmp_path, variant):
    tiny.make(tmp_path, variant)
    for dtype in (np.float32, np.float64):
        for name, x in tiny.walk(minitx.load(tmp_path, dtype=dtype)):
            assert not x.flags.writeable and mapped(x) == (dtype is np.float32), name
            with pytest.raises(ValueError, match="read-only"):
                x[...] = 0


def test_tied_weights_share_their_memory():
    for variant, dtype in (
        ("gpt2-causal", np.float32),
        ("bert-masked", np.float64),
        ("gpt2-causal", np.float64),
    ):
        w = tiny.load(variant, dtype).weights
        assert np.shares_memory(w.W_E, w.W_U) and w.W_U.shape == w.W_E.shape[::-1]
        assert w.W_type is None or variant.startswith("bert") or w.W_type is w.W_E


def test_converted_weights_go_with_their_model(tmp_path):
    """At once, not when Python looks for circles: they are as large as the model."""
    gc.collect()
    gc.disable()
    try:
        model = minitx.load(sixteen_bits(tmp_path, "BF16"))
        arrays = [weakref.ref(x.base) for _, x in tiny.walk(model) if x.base is not None]
        assert len(arrays) > 2 and all(array() is not None for array in arrays)
        del model
        assert [array for array in arrays if array() is not None] == []
    finally:
        gc.enable()


# --- names and heads


@pytest.mark.parametrize(
    "variant,prefix",
    [
        ("bert-masked", "bert."),
        ("gpt2-causal", "transformer."),
        ("roberta-masked", "roberta."),
        ("distilbert-masked", "distilbert."),
    ],
)
def test_any_prefix_or_none_will_do(tmp_path, variant, prefix):
    expected = minitx.load(tiny.GOLDEN / variant)
    for other in ("", "model.", "outer.inner."):
        tiny.make(tmp_path, variant, renamed("^" + re.escape(prefix), other))
        assert tiny.same(minitx.load(tmp_path), expected)


def renamed(pattern, text):
    """A `change` for tiny.make: in the tensors' names a text takes the place of a pattern."""

    def change(tensors):
        return {re.sub(pattern, text, name): x for name, x in tensors.items()}

    return change


def test_gamma_and_beta_are_weight_and_bias_of_a_layer_norm_only(tmp_path):
    def legacy(tensors):
        gamma = renamed(r"LayerNorm\.weight", "LayerNorm.gamma")
        beta = renamed(r"LayerNorm\.bias", "LayerNorm.beta")
        return beta(gamma(tensors))

    tiny.make(tmp_path, "bert-masked", legacy)
    assert tiny.same(minitx.load(tmp_path), minitx.load(tiny.GOLDEN / "bert-masked"))
    tiny.make(tmp_path, "bert-masked", tiny.edited(bert__pooler__gamma=np.ones(3, np.float32)))
    assert minitx.load(tmp_path).unused == ("pooler.gamma",)


def test_buffers_are_passed_over_and_other_tensors_listed(tmp_path):
    buffers = {"transformer.position_ids": np.arange(12)}
    buffers["transformer.h.0.attn.bias"] = np.ones((1, 1, 12, 12), np.float32)
    buffers["transformer.h.1.attn.masked_bias"] = np.float32(-1e4)
    extra = {"lm_extra.weight": np.ones(2)}
    folder = tiny.make(tmp_path, "gpt2-causal", lambda tensors: tensors | buffers | extra)
    with pytest.warns(UnreadWarning, match=r"tensors that were not read: lm_extra.weight$"):
        model = minitx.load(folder)
    assert model.unused == ("lm_extra.weight",)
    assert tiny.same(model, minitx.load(tiny.GOLDEN / "gpt2-causal"))


def test_what_stands_in_the_layers_must_be_known(tmp_path):
    extra = tiny.edited(transformer__h__0__attn__rotary__weight=np.ones(3, np.float32))
    tiny.make(tmp_path, "gpt2-causal", extra)
    with pytest.raises(ValueError, match="inside the layers .* no use for: transformer.h.0.attn.r"):
        minitx.load(tmp_path)
    for n_layer, message in (
        (1, r"no use for: transformer.h.1.attn.c_attn.bias, .*\(12 in"),
        (3, "no tensor for ln1_w: wanted 'h.2.ln_1.weight'; closest: .*h.1.ln_1"),
    ):
        tiny.make(tmp_path, "gpt2-causal", n_layer=n_layer)
        with pytest.raises(ValueError, match=message):
            minitx.load(tmp_path)


@pytest.mark.parametrize("partial", [False, True])
def test_more_layers_than_any_model_has_are_refused_at_once(tmp_path, partial):
    """A partial checkpoint may lack all of them, and was asked for each."""
    tiny.make(tmp_path, "gpt2-causal", n_layer=2**32)
    with pytest.raises(ValueError, match="config.json: n_layers is 4294967296; wanted at most 1"):
        minitx.load(tmp_path, partial=partial)


def test_two_tensors_of_one_name_are_refused(tmp_path):
    tiny.make(tmp_path, "bert-masked", lambda t: t | {E: t["bert." + E]})
    message = rf"wanted one word embedding '{E}', any prefix; found \[.*, .*\]"
    with pytest.raises(ValueError, match=message):
        minitx.load(tmp_path)
    twice = {"embeddings.LayerNorm.gamma": np.ones(18, np.float32)}
    tiny.make(tmp_path, "bert-masked", lambda t: t | twice)
    message = "two tensors have the name 'embeddings.LayerNorm.weight'"
    with pytest.raises(ValueError, match=message):
        minitx.load(tmp_path)


def test_tied_or_not(tmp_path):
    """The word embedding stands in for an absent output embedding, unless the config forbids it."""
    own = np.random.default_rng(2).normal(size=(61, 18)).astype(np.float32)
    tiny.make(tmp_path, "gpt2-causal", tiny.edited(lm_head__weight=own))
    assert (minitx.load(tmp_path).weights.W_U == own.T).all()
    tiny.make(tmp_path, "bert-masked", tie_word_embeddings=False)
    message = "no tensor for W_U: wanted 'cls.predictions.decoder.weight'"
    with pytest.raises(ValueError, match=message):
        minitx.load(tmp_path)
    # nothing is left that could be a head
    tiny.make(tmp_path, "gpt2-causal", tie_word_embeddings=False)
    assert minitx.load(tmp_path).config.task_head is None


def test_the_decoder_bias_is_added_once_and_the_alias_gives_way(tmp_path):
    bias = np.arange(61, dtype=np.float32)
    alias = np.ones(61, np.float32)
    for stem, variant in (("cls__predictions__", "bert-masked"), ("lm_head__", "roberta-masked")):
        biases = {f"{stem}bias": alias, f"{stem}decoder__bias": bias}
        tiny.make(tmp_path, variant, tiny.edited(**biases))
        assert (minitx.load(tmp_path).weights.b_U == bias).all()
        tiny.make(tmp_path, variant, tiny.edited(**{f"{stem}bias": alias}))
        assert (minitx.load(tmp_path).weights.b_U == alias).all()


@pytest.mark.parametrize(
    "variant,drop,head",
    [
        ("bert-masked", (), "masked"),
        ("bert-masked", ["architectures"], "masked"),
        ("bert-bare", (), None),
        ("bert-bare", ["architectures"], None),
        ("bert-sequence", (), "sequence"),
        ("bert-sequence", ["architectures"], "sequence"),
        ("roberta-sequence", ["architectures"], "sequence"),
        ("distilbert-sequence", ["architectures"], "sequence"),
        ("gpt2-causal", (), "causal"),
        ("gpt2-causal", ["architectures"], "causal"),
        ("gpt2-bare", (), None),
        ("gpt2-tied-head", ["architectures"], "causal"),
        ("gpt2-sequence", (), "sequence"),
    ],
)
def test_which_head_a_file_holds(tmp_path, variant, drop, head):
    assert minitx.load(tiny.make(tmp_path, variant, drop=drop)).config.task_head == head


def test_logits_without_a_head_name_the_reason():
    model = tiny.load("bert-bare")
    x = minitx.forward(model, [5, 6])
    message = r"\(BertModel\) has no head that gives logits; .* not read: pooler.dense"
    with pytest.raises(ValueError, match=message):
        minitx.logits(model, x)
    message = r"\(GPT2Model\) has no head that gives logits; .* not read: none"
    with pytest.raises(ValueError, match=message):
        minitx.run(tiny.load("gpt2-bare"), [5, 6], keep=["logits"])
    with pytest.raises(KeyError, match=message):
        minitx.run(tiny.load("gpt2-bare"), [5, 6])["logits"]


def test_a_head_that_is_not_read_is_told_on_loading(tmp_path):
    """Part of a head makes no head: its tensors are named once, and the logits say why."""
    folder = tiny.make(
        tmp_path, "bert-masked", renamed(r"cls\.predictions\.transform", "cls.other")
    )
    message = r"not read: cls.other.*; this checkpoint \(BertForMaskedLM\) has no head that gives"
    with pytest.warns(UnreadWarning, match=message) as caught:
        model = minitx.load(folder)
    assert len(caught) == 1 and model.config.task_head is None


# --- broken files


CUT_OFF = "is cut off or not a safetensors file"


@pytest.mark.parametrize(
    "damage,message",
    [
        (lambda raw: raw[:-1], f"bytes.* {CUT_OFF}"),
        (lambda raw: raw[: len(raw) // 2], CUT_OFF),
        (lambda raw: raw[:40], CUT_OFF),
        (lambda raw: raw[:5], rf"\(5 bytes\) {CUT_OFF}"),
        (lambda raw: b"", "is empty: get the file again"),
        (lambda raw: raw + b"\0" * 8, CUT_OFF),
        (lambda raw: (10**6).to_bytes(8, "little") + raw[8:], CUT_OFF),  # length > file
        (lambda raw: (2**63).to_bytes(8, "little") + raw[8:], CUT_OFF),
        (lambda raw: raw[:8] + b"[" + raw[9:], CUT_OFF),
        (lambda raw: b"PK\3\4" + raw[4:], "is a zip archive, as torch.save writes"),
    ],
    ids=range(10),
)
def test_a_damaged_file(tmp_path, damage, message):
    path = tiny.make(tmp_path, "bert-masked") / "model.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=f"model.safetensors .*{message}"):
        minitx.load(tmp_path)


@pytest.mark.parametrize(
    "fields",
    [
        dict(data_offsets=[0, 72]),
        dict(data_offsets=[10**9, 10**9 + 72]),
        dict(data_offsets=[72, 0]),
        dict(data_offsets=[-4, 68]),
        dict(dtype="F31"),
        dict(shape=[10**6]),
        dict(shape=[2**62, 2**62]),
        dict(shape=[-18]),
    ],
)
def test_a_header_that_lies(tmp_path, fields):
    """Offsets that overlap, leave the file, run backwards or contradict the shape; no dtype."""

    def lies(header):
        header["bert.encoder.layer.1.output.dense.bias"].update(fields)

    tiny.make(tmp_path, "bert-masked", header=lies)
    with pytest.raises(ValueError, match=f"{CUT_OFF}: "):
        minitx.load(tmp_path)


def shards(folder, extra=None):
    """The tensors of gpt2-causal in two files with an index, in which `extra` tensors stand too."""
    tiny.make(folder, "gpt2-causal")
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    files = {name: f"part-{i % 2}.safetensors" for i, name in enumerate(tensors)}
    for file in set(files.values()):
        part = {name: x for name, x in tensors.items() if files[name] == file}
        (folder / file).write_bytes(tiny.pack(part))
    write_index(folder, {"metadata": {}, "weight_map": files | (extra or {})})
    return folder


def write_index(folder, index):
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_shards_are_one_model_and_a_lost_one_is_named(tmp_path):
    assert tiny.same(minitx.load(shards(tmp_path)), minitx.load(tiny.GOLDEN / "gpt2-causal"))
    (tmp_path / "part-1.safetensors").unlink()
    message = "index.json lists shards that are not in .*: part-1.safetensors"
    with pytest.raises(FileNotFoundError, match=message):
        minitx.load(tmp_path)


def test_an_index_reads_no_file_outside_of_its_folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (shards(folder) / "part-1.safetensors").rename(tmp_path / "part-1.safetensors")
    path = folder / "model.safetensors.index.json"
    for outside in ("../part-1.safetensors", str(tmp_path / "part-1.safetensors")):
        path.write_text(path.read_text().replace("part-1.safetensors", outside))
        with pytest.raises(ValueError, match=f"shards that lead out of .*: {outside}"):
            minitx.load(folder)
        path.write_text(path.read_text().replace(outside, "part-1.safetensors"))


def test_an_index_that_promises_too_much(tmp_path):
    shards(tmp_path, extra={"transformer.extra": "part-0.safetensors"})
    message = "lists tensors that their shards lack: transformer.extra"
    with pytest.raises(ValueError, match=message):
        minitx.load(tmp_path)


@pytest.mark.parametrize(
    "index,message",
    [
        ({}, "index.json has no weight_map from tensor names to file names"),
        ({"weight_map": []}, "has no weight_map"),
        ({"weight_map": {"a": 3}}, "has no weight_map"),
        ({"weight_map": {"a": ["x"]}}, "has no weight_map"),
        ({"weight_map": {}}, "wanted one word embedding 'wte.weight'"),
        ({"weight_map": {"a": "x"}}, "lists shards that are not in .*: x"),
        ([], "index.json|wanted one tensor"),
    ],
    ids=range(7),
)
def test_an_index_that_is_none(tmp_path, index, message):
    write_index(shards(tmp_path), index)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        minitx.load(tmp_path)


def test_a_folder_without_safetensors(tmp_path):
    path = tiny.make(tmp_path, "bert-masked") / "model.safetensors"
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"no model.safetensors.* in .*there: config.json"):
        minitx.load(tmp_path)
    for name in ("pytorch_model.bin", "model.pt", "weights.pkl"):
        (tmp_path / name).write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
        message = f"weights only as {name}, pickles, which minitx never opens.* convert it"
        with pytest.raises(ValueError, match=message):
            minitx.load(tmp_path)
        (tmp_path / name).unlink()


def test_only_two_precisions(tmp_path):
    for dtype in ("float16", "int32"):
        with pytest.raises(ValueError, match=f"dtype is {dtype}; a model runs in float32 or fl"):
            minitx.load(tiny.GOLDEN / "bert-bare", dtype=dtype)


def test_nan_is_loaded_without_a_look_and_named_on_request(tmp_path):
    def spoil(value):
        return lambda x: np.where(np.arange(x.size).reshape(x.shape) == 7, np.float32(value), x)

    change = tiny.edited(
        transformer__h__1__attn__c_attn__bias=spoil(np.nan),
        transformer__wte__weight=spoil(-np.inf),
    )
    model = minitx.load(tiny.make(tmp_path, "gpt2-causal", change))
    with pytest.raises(ValueError, match="^NaN or infinity in: ") as error:
        minitx.check(model)
    names = str(error.value).split(": ")[1].split(", ")
    assert set(names) == {"W_E", "W_type", "W_U", "layers[1].b_Q"}
    assert minitx.check(tiny.load("gpt2-causal")) is None


# --- random damage


def runs(folder):
    """Whether a model loads and runs; False where it is refused, and any other error is raised."""
    try:
        with np.errstate(all="ignore"):
            minitx.forward(minitx.load(folder), [4, 5, 6])
        return True
    except (ValueError, FileNotFoundError):
        return False


def test_random_damage_loads_or_is_refused(tmp_path):
    """200 files with flipped bits, random bytes, cut or repeated stretches, most in the header."""
    rng = np.random.default_rng(5)
    path = tiny.make(tmp_path, "gpt2-causal") / "model.safetensors"
    good = np.frombuffer(path.read_bytes(), np.uint8)
    header = 8 + int.from_bytes(good[:8].tobytes(), "little")
    loaded = 0
    for case in range(200):
        end = len(good) if case % 4 == 0 else header
        i = int(rng.integers(0, end))
        path.write_bytes(damaged(good, i, case % 5, rng).tobytes())
        loaded += runs(tmp_path)
    assert 5 < loaded < 150  # some flips hit a number or a metadata string; most must be noticed


def damaged(good, i, kind, rng):
    """A copy of a file's bytes, damaged at byte i in the way of a kind from 0 to 4."""
    bad = good.copy()
    if kind < 2:
        bad[i] ^= 1 << rng.integers(8)
    elif kind == 2:
        bad[i : i + 8] = rng.integers(0, 256, len(bad[i : i + 8]))
    elif kind == 3:
        bad = np.delete(bad, slice(i, i + int(rng.integers(1, 9))))
    else:
        bad = np.insert(bad, i, good[i : i + 4])
    return bad


# --- partial checkpoints


@pytest.mark.parametrize("variant", ["gpt2-causal", "bert-masked"])
def test_a_partial_checkpoint_shows_what_it_has_and_runs_nothing(tmp_path, variant):
    """Without word embeddings and a layer's MLP the rest loads as it is, and no run begins."""
    removed = ("wte.", "word_embeddings.", ".0.mlp.", ".0.intermediate.", ".0.output.dense")

    def without(tensors):
        return {n: x for n, x in tensors.items() if not any(part in n for part in removed)}

    folder = tiny.make(tmp_path, variant, without)
    with pytest.raises(ValueError, match="wanted one word embedding"):
        minitx.load(folder)
    whole = minitx.load(tiny.GOLDEN / variant)
    part = minitx.load(folder, partial=True)
    assert part.weights.W_E is None and part.layers[0].W_in is None
    assert np.array_equal(part.weights.W_pos, whole.weights.W_pos)
    assert np.array_equal(part.layers[1].W_Q, whole.layers[1].W_Q)
    assert not whole.missing and len(part.missing) == len(set(part.missing)) >= 3
    assert any("word_embeddings" in name or "wte" in name for name in part.missing)
    for attempt in (
        lambda: minitx.forward(part, [1, 2]),
        lambda: minitx.run(part, [1, 2], keep=["q"]),
    ):
        message = f"partial checkpoint cannot run; missing: {part.missing[0]}"
        with pytest.raises(ValueError, match=message):
            attempt()


def test_a_whole_checkpoint_is_the_same_when_parts_may_be_missing(tmp_path):
    for variant in tiny.ONE_EACH:
        folder = tiny.GOLDEN / variant
        assert tiny.same(minitx.load(folder), minitx.load(folder, partial=True))
