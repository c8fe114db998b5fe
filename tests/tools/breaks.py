"""Deliberate breaks that the test suite must notice: a piece of Python, and what takes its place.

How pieces are matched: see mutants.py. Layout, comments and quotes do not matter, so what stands
here stays valid when a file is formatted another way; when its names or steps change, follow them.
"""

from typing import NamedTuple

NOTHING = "nothing at all"

INIT = "minitx/__init__.py"
CONFIG = "minitx/config.py"
POSITIONS = "minitx/positions.py"
DISTANCES = "minitx/distances.py"
FILES = "minitx/files.py"
FAMILIES = "minitx/families/__init__.py"
BERT = "minitx/families/bert.py"
ROBERTA = "minitx/families/roberta.py"
DISTILBERT = "minitx/families/distilbert.py"
GPT2 = "minitx/families/gpt2.py"
KERNELS = "minitx/kernels.py"
THREADS = "minitx/threads.py"
MEMORY = "minitx/memory.py"
MAPPED = "minitx/mapped.py"
MODEL = "minitx/model.py"
CACHE = "minitx/cache.py"
CHECKPOINT = "minitx/checkpoint.py"
HELD_HEADS = "minitx/held_heads.py"
TEXT = "minitx/text.py"
TRACE = "minitx/trace.py"
GENERATE = "minitx/generate.py"
NEXT_TOKEN = "minitx/sampling.py"
CONSTRAINTS = "minitx/constraints.py"

COMMANDS = "analysis/__main__.py"
ADVICE = "analysis/machine/advice.py"
DOCTOR = "analysis/machine/doctor.py"
FACTORS = "analysis/maths/factors.py"
INPUTS = "analysis/measures/inputs.py"
INLINE = "analysis/pages/inline.py"
INTERRUPT = "minitx/interrupt.py"
JOINT = "analysis/maths/joint.py"
LAGS = "analysis/maths/lags.py"
LOGISTIC = "analysis/maths/logistic.py"
LOSSES = "analysis/measures/losses.py"
MASKS = "analysis/maths/masks.py"
MASK_TAP = "analysis/measures/mask_tap.py"
PROFILES = "analysis/maths/profiles.py"
PUBLISHED = "analysis/pages/published.py"
RESIDUAL = "analysis/maths/residual.py"
ROTATION = "analysis/maths/rotation.py"
STATS = "analysis/maths/stats.py"
REGISTRY = "analysis/contract/registry.py"
STREAM = "analysis/running/stream.py"
RESULTS = "analysis/contract/results.py"
SINGLE = "analysis/running/single.py"
BLAS = "analysis/running/blas.py"
FETCH = "weights/fetch.py"
TRUST = "weights/trust.py"
GAUGE = "analysis/maths/gauge.py"
ROTATIONS = "analysis/experiments/rotation.py"
HEADS = "analysis/measures/heads.py"
LAGS_EXPERIMENT = "analysis/experiments/lags.py"
PROFILES_EXPERIMENT = "analysis/experiments/profiles.py"
CLAIMS = "analysis/pages/claims.py"
MODELS = "analysis/experiments/models.py"
NULLS = "analysis/maths/nulls.py"
QUERIES_KEYS = "analysis/experiments/queries_keys.py"
SPECTRA = "analysis/maths/spectra.py"
WAVES = "analysis/maths/waves.py"
PERPLEXITIES = "analysis/measures/perplexities.py"
MASK_POSITIONS = "analysis/experiments/mask_positions.py"
REMOVE_POSITIONS = "analysis/experiments/remove_positions.py"
PROBE = "analysis/experiments/probe.py"
GLOSSARY = "analysis/pages/glossary.py"
OVERVIEW = "analysis/pages/overview.py"
REPORT = "analysis/pages/report.py"
REPORT_SECTION = "analysis/pages/section.py"
VERDICTS = "analysis/pages/verdicts.py"
SHOW = "minitx/show.py"
SWEEP = "minitx/sweep.py"
MAIN = "minitx/__main__.py"
SHELL = "analysis/commands/__init__.py"
FLAGS = "analysis/commands/flags.py"
ON_COMMAND_LINE = "analysis/commands/inputs.py"
COMPARE = "analysis/pages/compare.py"
JAPANESE = "minitx/japanese.py"
IDS = "analysis/texts/ids.py"
CORPUS = "analysis/texts/corpus.py"
FONTS = "analysis/drawing/fonts.py"
DRAW = "analysis/drawing/draw.py"
NORM_TAP = "analysis/experiments/_probe_norm.py"
BASES = "analysis/maths/bases.py"
JOINT_NOTE = "analysis/maths/joint_note.py"
FORMATS = "analysis/texts/formats.py"
STORAGE = "analysis/texts/storage.py"
SAMPLING = "analysis/texts/sampling.py"
COMPRESSION = "analysis/texts/compression.py"
REMOTE = "analysis/texts/remote.py"
SPOOL = "analysis/texts/spool.py"
PREDICT = "analysis/experiments/predict.py"
OPTIONS = "analysis/contract/options.py"
SOURCES = "analysis/maths/sources.py"
SCORE_SOURCES = "analysis/experiments/_sources_split.py"
SOURCES_EXPERIMENT = "analysis/experiments/sources.py"
CCA = "analysis/maths/cca.py"
CCA_EXPERIMENT = "analysis/experiments/cca.py"
CONDITIONS = "analysis/measures/conditions.py"
CONDITIONS_EXPERIMENT = "analysis/experiments/conditions.py"
RUN_SETTINGS = "analysis/running/settings.py"
MOVES = "analysis/maths/moves.py"
BANDS = "analysis/maths/bands.py"
LAYOUT = "analysis/maths/layout.py"
CHAIN = "analysis/experiments/chain.py"
NOTCH = "analysis/measures/notch_arrays.py"
LATER_LAYERS = "analysis/measures/later_layers.py"
POSITION_PARTS = "analysis/measures/position_parts.py"
JOINT_FIT = "analysis/measures/joint_fit.py"
EXTRACTION = "analysis/experiments/extraction.py"
DATES = "weights/dates.py"
GRU = "analysis/toys/gru.py"
TOY = "analysis/toys/recurrent.py"
PIECES = "minitx/pieces.py"
ARRAYS = "minitx/arrays.py"
LOCAL = "weights/local.py"
PARTS = "analysis/experiments/parts.py"
SHAPES_EXPERIMENT = "analysis/experiments/shapes.py"
MIXING = "analysis/experiments/mixing.py"
EFFECTIVE = "analysis/maths/effective.py"
SLICES = "analysis/experiments/slices.py"
PROJECTIONS = "analysis/experiments/projections.py"
POINTS = "minitx/points.py"
VISIBLE = "minitx/masks.py"
GIVEN = "minitx/inputs.py"
BART = "minitx/families/bart.py"
MARIAN = "minitx/families/marian.py"
T5 = "minitx/families/t5.py"
BEAMS = "minitx/beams.py"
CONSTRAINTS = "minitx/constraints.py"
GENERATION = "minitx/families/generation.py"
DECODING = "analysis/measures/decoding.py"
SIDES = "analysis/contract/sides.py"
RUN_SETTINGS = "analysis/running/settings.py"
DECODER_TEXTS = "analysis/measures/decoder_texts.py"
PAGE_ATTENTION = "analysis/pages/attention.py"
ALIGNMENT = "analysis/experiments/alignment.py"
ALIGNMENT_MATHS = "analysis/maths/alignment.py"
ATTENTION_MAPS = "analysis/experiments/attention.py"
WORDS = "analysis/texts/words.py"
PARITY_COMPARE = "analysis/parity/compare.py"
PARITY_MODELS = "analysis/parity/models.py"
PARITY_REFERENCE = "analysis/parity/reference.py"
PARITY_SAMPLED = "analysis/parity/sampled.py"
LESSON_05 = "lessons/checks/lesson_05.py"
LESSON_06 = "lessons/checks/lesson_06.py"
LESSON_07 = "lessons/checks/lesson_07.py"
LESSON_08 = "lessons/checks/lesson_08.py"
LESSON_09 = "lessons/checks/lesson_09.py"
LESSON_10 = "lessons/checks/lesson_10.py"
LESSON_12 = "lessons/checks/lesson_12.py"
OUTPUTS = "analysis/measures/outputs.py"
JOINT_COSINE = "analysis/maths/joint_cosine.py"
EXPLORE = "analysis/pages/explore.py"
PACKING = "analysis/pages/packing.py"
LESSON_01 = "lessons/checks/lesson_01.py"
LESSON_02 = "lessons/checks/lesson_02.py"
LESSON_03 = "lessons/checks/lesson_03.py"
LESSON_04 = "lessons/checks/lesson_04.py"
LESSON_17 = "lessons/checks/lesson_17.py"
LESSON_ARRAYS = "lessons/checks/arrays.py"
GUARD = "analysis/live/guard.py"
LIVE_SERVER = "analysis/live/server.py"
TURNS = "analysis/live/turns.py"
LIVE_REQUESTS = "analysis/live/requests.py"
LIVE_RUNS = "analysis/live/runs.py"
INTERVENTIONS = "analysis/live/interventions.py"
CHANGES = "analysis/live/changes.py"
LIVE_DIAL = "analysis/live/dial.py"
LIVE_OFF = "analysis/live/off.py"
AS_PYTHON = "analysis/live/as_python.py"
TASK_HEADS = "minitx/heads.py"
ELECTRA = "minitx/families/electra.py"
MPNET = "minitx/families/mpnet.py"
REFUSED = "minitx/families/refused.py"
LAYER_INPUTS = "analysis/measures/inputs.py"
TOKENIZER_SETTINGS = "minitx/tokenizer_settings.py"
ACTIVATIONS = "minitx/activations.py"
COST = "minitx/cost.py"
ROTARY = "minitx/rotary.py"
LLAMA = "minitx/families/llama.py"
WORKERS = "analysis/running/cluster.py"
MANY = "analysis/running/many.py"
SENT = "analysis/running/shipping.py"
WRITTEN = "analysis/machine/files.py"
FAMILY_RECORDS = "minitx/families/family.py"
FAMILIES_CHECK = "minitx/families/check.py"
MODERN = "minitx/families/modernbert.py"
NEOX = "minitx/families/gpt_neox.py"
FAMILY_MISTRAL = "minitx/families/mistral.py"
DEBERTA, DISTANCES = "minitx/families/deberta.py", "minitx/distances.py"


class Break(NamedTuple):
    """One break: `old`, which occurs once in the file, is replaced by `new`."""

    what: str  # what goes wrong
    file: str
    old: str
    new: str
    where: str = ""  # the function or class that holds `old`, where the file has it more than once


BREAKS = [
    Break(NOTHING, MODEL, "return x", "return x if layer is None else x", where="identity"),
    # positions
    Break("RoBERTa's first token reads row 0", ROBERTA, '"offset": first', '"offset": 0'),
    Break(
        "RoBERTa's first token reads row 2, whatever its pad id",
        ROBERTA,
        '"offset": first',
        '"offset": 2',
    ),
    Break(
        "a pad id inside a RoBERTa text takes a position",
        POSITIONS,
        "batch.valid & ~is_padding_id",
        "batch.valid",
    ),
    Break(
        "padding on the left takes positions",
        POSITIONS,
        "cached + np.cumsum(takes_position(cfg, batch), axis=1) - 1",
        "cached + np.arange(batch.tokens.shape[1]) + 0 * takes_position(cfg, batch)",
    ),
    Break(
        "RoBERTa reads as many tokens as its table has rows",
        ROBERTA,
        'values["n_pos"] - first',
        'values["n_pos"]',
    ),
    Break(
        "one token too many is let through",
        POSITIONS,
        "n_tokens > cfg.n_ctx",
        "n_tokens > cfg.n_ctx + 1",
    ),
    Break(
        "explicit positions forget the offset",
        POSITIONS,
        "check_positions(positions, numbers.shape, cfg.n_ctx) + cfg.offset",
        "check_positions(positions, numbers.shape, cfg.n_ctx)",
    ),
    # token types
    Break(
        "no token type is added where none is given",
        BERT,
        'fixed={"default_type": 0}',
        'fixed={"default_type": None}',
    ),
    Break(
        "GPT-2 adds a word embedding for token type 0",
        GPT2,
        '{"pre_norm": True, "causal": True}',
        '{"pre_norm": True, "causal": True, "default_type": 0}',
    ),
    Break(
        "the tokenizer's zeros reach GPT-2 as token types",
        TEXT,
        "config.default_type is None",
        "False",
    ),
    # activations
    Break("exact gelu becomes the tanh form", ACTIVATIONS, '"gelu": gelu_', '"gelu": gelu_tanh_'),
    Break(
        "GPT-2's gelu becomes the exact one",
        ACTIVATIONS,
        '"gelu_new": gelu_tanh_',
        '"gelu_new": gelu_',
    ),
    Break("float64 gelu takes the float32 fit", ACTIVATIONS, "x.dtype == np.float64", "False"),
    Break(
        "the float32 fit of gelu is off in the third digit",
        ACTIVATIONS,
        "0.7978860305",
        "0.7988860305",
    ),
    Break(
        "RoBERTa's head uses the MLP's activation",
        ROBERTA,
        '{"default_type": 0, "head_act": "gelu"}',
        '{"default_type": 0}',
    ),
    Break(
        "relu lets negative values through",
        ACTIVATIONS,
        "np.maximum(x, 0.0, out=x)",
        "np.maximum(x, -0.01, out=x)",
    ),
    # norms
    Break(
        "GPT-2's epsilon is BERT's",
        GPT2,
        '"eps": Key("layer_norm_epsilon")',
        '"eps": Key("layer_norm_eps", 1e-12)',
    ),
    Break("DistilBERT's epsilon is GPT-2's", DISTILBERT, '"eps": 1e-12', '"eps": 1e-5'),
    Break(
        "a missing epsilon is guessed",
        BERT,
        'Key("layer_norm_eps")',
        'Key("layer_norm_eps", 1e-12)',
    ),
    Break(
        "sample variance instead of population variance",
        KERNELS,
        'np.einsum("...d,...d->...", centred, centred) / D',
        'np.einsum("...d,...d->...", centred, centred) / (D - 1)',
    ),
    Break(
        "epsilon is added to the deviation",
        KERNELS,
        "np.sqrt(variance + eps)",
        "(np.sqrt(variance) + eps)",
    ),
    Break(
        "BERT's norm comes before the addition",
        MODEL,
        "norm(ln, x + write(x), arrays, cfg, hook)",
        "x + norm(ln, write(x), arrays, cfg, hook)",
    ),
    Break(
        "GPT-2's second norm is left out",
        MODEL,
        "write(normed)",
        'write(normed if ln != "ln2" else x)',
    ),
    Break(
        "GPT-2 without its final norm",
        MODEL,
        "x = final_norm(model, x, hook=hook)",
        "pass",
    ),
    Break(
        "the two norms of a BERT layer are swapped",
        BERT,
        'norm("ln1", "attention.output.LayerNorm")',
        'norm("ln1", "output.LayerNorm")',
    ),
    # attention
    Break(
        "GPT-2's square output matrix is transposed",
        GPT2,
        'dense("O", "attn.c_proj", transposed=False)',
        'dense("O", "attn.c_proj")',
    ),
    Break(
        "BERT's square output matrix is not transposed",
        BERT,
        'dense("O", "attention.output.dense")',
        'dense("O", "attention.output.dense", transposed=False)',
    ),
    Break(
        "keys and values of the fused matrix are swapped",
        GPT2,
        'third("K", "attn.c_attn", 1)',
        'third("K", "attn.c_attn", 2)',
    ),
    Break(
        "the fused matrix is read interleaved",
        FAMILY_RECORDS,
        "of_units[:, first : first + widths[self.part]].ravel()",
        "np.arange(self.part, array.shape[-1], sum(widths))",
    ),
    Break(
        "scores are not scaled",
        CONFIG,
        "(self.d_scale or self.d_head) ** -0.5 if self.scale_attn else 1.0",
        "1.0",
    ),
    Break(
        "scores are scaled by the whole width",
        CONFIG,
        "self.d_scale or self.d_head",
        "self.d_model",
    ),
    Break(
        "scale_attn_weights is not read",
        GPT2,
        '"scale_attn": Key("scale_attn_weights", True)',
        '"scale_attn": Key("no_such_key", True)',
    ),
    Break(
        "the inverse layer index starts at zero twice",
        CONFIG,
        "layer + 1",
        "max(layer, 1)",
        where="attn_scale",
    ),
    Break(
        "heads are cut the wrong way",
        KERNELS,
        "x.reshape(B, T, -1, cfg.d_head).swapaxes(1, 2)",
        "x.reshape(B, T, cfg.d_head, -1).swapaxes(1, 3)",
    ),
    Break(
        "heads are joined in the wrong order",
        KERNELS,
        "z.swapaxes(1, 2).reshape(B, T, H * d)",
        "z.reshape(B, T, H * d)",
    ),
    Break(
        "a token sees the one to its right",
        VISIBLE,
        "np.arange(S - T, S)",
        "1 + np.arange(S - T, S)",
    ),
    Break(
        "BERT looks to the left only",
        POSITIONS,
        "attention_bias(cfg, numbers, keys, mask, cfg.causal, window=window)",
        "attention_bias(cfg, numbers, keys, mask, True, window=window)",
    ),
    Break(
        "padding is attended to",
        VISIBLE,
        "keys.valid[:, None, None, :]",
        "keys.valid[:, None, None, :] | True",
    ),
    Break(
        "the user's mask is not applied",
        VISIBLE,
        "visible & user_mask(cfg, numbers, keys, mask, name)",
        "visible",
    ),
    Break(
        "a row whose keys are all hidden gives NaN",
        KERNELS,
        "largest[np.isneginf(largest)] = 0.0",
        "pass",
    ),
    Break(
        "a row whose keys are all hidden divides by zero",
        KERNELS,
        "total[total == 0] = 1.0",
        "pass",
    ),
    Break(
        "in batches the softmax works on a copy that is lost",
        KERNELS,
        "x.reshape(-1, S, copy=False)",
        "x.reshape(-1, S).copy()",
    ),
    Break(
        "softmax trusts sums at the lower end of float32",
        KERNELS,
        "np.minimum.reduce(total) > 1e-20",
        "np.minimum.reduce(total) > 0",
    ),
    Break(
        "softmax trusts sums that are infinite", KERNELS, "np.maximum.reduce(total) < 1e30", "True"
    ),
    Break(
        "scores become float64 in a float32 model",
        MODEL,
        "cfg.attn_scale(w.index)",
        "np.float64(cfg.attn_scale(w.index))",
    ),
    # heads
    Break(
        "an output embedding in the file is passed over for the word embedding",
        CHECKPOINT,
        'stored.find(table["W_U"])',
        "False",
    ),
    Break(
        "a tied head is missing its matrix",
        CHECKPOINT,
        '{"W_U": W_E.T, **stored.take(own, config)}',
        '{"W_U": None, **stored.take(own, config)}',
    ),
    Break(
        "BERT's unused output bias is added",
        BERT,
        'tensor("cls.predictions.decoder.bias", "cls.predictions.bias")',
        'tensor("cls.predictions.bias", "cls.predictions.decoder.bias")',
    ),
    Break(
        "RoBERTa's output bias is not known under its other name",
        ROBERTA,
        'tensor("lm_head.decoder.bias", "lm_head.bias")',
        'tensor("lm_head.bias")',
    ),
    Break(
        "the output bias is left out",
        MODEL,
        "linear(x * cfg.unembed_scale, w.W_U, w.b_U)",
        "linear(x * cfg.unembed_scale, w.W_U)",
    ),
    Break("BERT classifies without tanh", BERT, 'sequence_act="tanh"', 'sequence_act="relu"'),
    Break(
        "DistilBERT classifies without relu",
        DISTILBERT,
        'sequence_act="relu"',
        'sequence_act="tanh"',
    ),
    Break(
        "GPT-2 classifies by its first token",
        TASK_HEADS,
        "T - 1 - valid[:, ::-1].argmax(axis=1)",
        "valid.argmax(axis=1)",
    ),
    Break(
        "GPT-2 classifies by the last column, padding or not",
        TASK_HEADS,
        "T - 1 - valid[:, ::-1].argmax(axis=1)",
        "T - 1 - 0 * valid[:, 0]",
    ),
    Break(
        "a GPT-2 body without a head gives logits",
        HELD_HEADS,
        "not saved_from or bool(WITH_HEAD.search(saved_from))",
        "True",
    ),
    # names and files
    Break(
        "prefixes of names are not taken off",
        CHECKPOINT,
        "full.removeprefix(prefix)",
        'full.removeprefix("bert.")',
    ),
    Break("gamma and beta are unknown", CHECKPOINT, '"LayerNorm." in name', "False"),
    Break(
        "GPT-2's causal mask is taken for a weight",
        CHECKPOINT,
        "BUFFERS.search(n)",
        'BUFFERS.search(n.replace("attn.bias", ""))',
    ),
    Break(
        "BF16 is widened into the lower half",
        FILES,
        "np.left_shift(x, 16, out=out, dtype=out.dtype)",
        "np.copyto(out, x)",
    ),
    Break("F16 is read as BF16", FILES, '"F16": "<f2"', '"F16": "<u2"'),
    Break(
        "a missing shard is no error of its own", FILES, "not (folder / file).is_file()", "False"
    ),
    Break(
        "all tensors come from the last shard",
        FILES,
        "{name: shards[file][name] for name, file in index.items()}",
        "{name: shards[max(shards)].get(name) for name, file in index.items()}",
    ),
    Break(
        "header and offsets are not checked",
        FILES,
        'with safe_open(path, "np"), open(path, "rb") as file:\n    buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)',
        'with open(path, "rb") as file:\n    buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)',
    ),
    Break("shapes are not checked", CHECKPOINT, "array.shape != wanted", "False"),
    Break("loaded arrays can be written to", FILES, "array.flags.writeable = False", "pass"),
    Break(
        "a folder with nothing but pickles is called empty",
        FILES,
        "file.suffix in PICKLES",
        "file.stem in PICKLES",
    ),
    Break("NaN in weights passes the check", "minitx/finite.py", "not np.isfinite(size)", "False"),
    # config
    Break(
        "n_inner null means three widths", GPT2, '4 * values["d_model"]', '3 * values["d_model"]'
    ),
    Break(
        "n_inner is not read",
        GPT2,
        'values["d_mlp"] or 4 * values["d_model"]',
        '4 * values["d_model"]',
    ),
    Break("relative positions are ignored", FAMILIES, '"position_embedding_type": "absolute"', ""),
    Break("a decoder is run as an encoder", FAMILIES, '"is_decoder": False', ""),
    # text
    Break(
        "truncation stored in tokenizer.json stays on",
        TEXT,
        "tokenizer.no_truncation()",
        "pass",
        where="Tokenizer",
    ),
    Break(
        "padding stored in tokenizer.json stays on",
        TEXT,
        "tokenizer.no_padding()",
        "pass",
        where="Tokenizer",
    ),
    Break("a text that is too long is let through", TEXT, "T > config.n_ctx", "False"),
    Break(
        "<mask> keeps the space on its left",
        TEXT,
        "tokenizers.AddedToken(mask, lstrip=swallows)",
        "tokenizers.AddedToken(mask)",
    ),
    Break(
        "vocab.txt folders are never lower-cased",
        TEXT,
        "not _has_capitals(folder / form)",
        "False",
    ),
    Break("padding on the left is put on the right", TEXT, "direction=pad", 'direction="right"'),
    Break(
        "the final norm is left out of a lens",
        MODEL,
        "return norm('ln_final', x, model.weights, model.config, hook)",
        "return x if hook is identity else norm('ln_final', x, model.weights, model.config, hook)",
    ),
    Break(
        "a stream that is normed on the way is normed again",
        MODEL,
        "if not model.config.pre_norm:\n    return x",
        "if model.weights.ln_final_w is None:\n    return x - x.mean(-1, keepdims=True)",
    ),
    Break("python -m minitx forgets the exit code", MAIN, "sys.exit(main())", "main()"),
    Break("a sweep patches the whole layer", SWEEP, "x[:, i] = values[:, i]", "x[:, :] = values"),
    Break(
        "a sweep patches one layer alone",
        SWEEP,
        "(point, layer): _patch(values[layer], i)",
        "(point, 0): _patch(values[layer], i)",
    ),
    # what objects show of themselves
    Break(
        "a table shows what a file says unescaped", SHOW, "html.escape(str(value))", "str(value)"
    ),
    Break(
        "a tied embedding is counted twice",
        SHOW,
        "{(place_of(x), x.size): x for x in arrays}.values()",
        "list(arrays)",
    ),
    Break("a trace does not say which layers it has", SHOW, "0 < len(own) < most", "False"),
    # seeing and changing
    Break(
        "a kept array is overwritten later",
        TRACE,
        'x.copy(order="K") if name in OVERWRITTEN else x',
        "x",
    ),
    Break(
        "an edit is not applied",
        TRACE,
        "x = _edited(key, x, self._edits[key])",
        "_edited(key, x, self._edits[key])",
    ),
    Break(
        "an edit of one layer loses against one of all layers",
        TRACE,
        "sorted(edits, key=lambda key: isinstance(key, tuple))",
        "sorted(edits, key=lambda key: isinstance(key, str))",
    ),
    Break(
        "a layer counted from the last is the last one recorded",
        POINTS,
        "layer + stack.config.n_layers if layer < 0 else layer",
        "layer",
    ),
    Break(
        "a point counts as recorded only in all its layers",
        TRACE,
        "point in self.arrays or bool(self._layers(key))",
        "point in self.arrays",
    ),
    Break("the estimate forgets the size of a number", COST, "model.weights.W_E.itemsize", "1"),
    Break(
        "a partial checkpoint is taken for a whole one",
        GIVEN,
        'if model.missing:\n    missing = ", ".join(model.missing[:4])\n    raise ValueError(f"a partial checkpoint cannot run; missing: {missing} …")',
        "pass",
    ),
    # measuring
    Break(
        "a table's rows that no token reaches count as positions",
        INPUTS,
        "model.weights.W_pos[cfg.offset : cfg.offset + cfg.n_ctx]",
        "model.weights.W_pos[: cfg.n_ctx]",
    ),
    Break("queries and keys change places in the lag", LAGS, "Q.conj() * K", "Q * K.conj()"),
    Break(
        "a part of the scores is measured at its own peak",
        LAGS,
        "height(part, lag, reach, causal)",
        "height(part, peak(part, reach, causal)[0], reach, causal)",
    ),
    Break(
        "one mean of the inputs stands on both sides of a score",
        LAGS_EXPERIMENT,
        "signals.scores(layer, signals.reordered(a, order), b, reach)",
        "signals.scores(layer, signals.reordered(a, order), a, reach)",
    ),
    Break(
        "positions alone keep the words",
        CONDITIONS,
        '{"embed": np.zeros_like}',
        '{"embed": np.array}',
    ),
    Break(
        "a head that lost its direction still counts as keeping it",
        PROFILES_EXPERIMENT,
        'np.where(r[f"directed_{name}"], best, nowhere)',
        "best",
    ),
    Break("any head has a direction", PROFILES, "best != reach", "best == best"),
    Break(
        "a cluster is named by the nearest offset",
        PROFILES,
        "places[attention.argmax(axis=1)]",
        "np.sign(places[attention.argmax(axis=1)])",
    ),
    Break(
        "an answer is yes without a look at chance",
        "analysis/contract/verdict.py",
        "self.value - self.null <= self.margin",
        "self.value <= 0",
    ),
    Break(
        "an answer is given where its null leaves no room",
        "analysis/contract/verdict.py",
        "self.most - self.null <= self.margin and self.value >= self.null - self.margin",
        "False",
    ),
    Break(
        "a head has a direction in long documents, however little it looks there",
        PROFILES,
        "np.maximum(LEAST, TIMES * by_uniform)",
        "TIMES * by_uniform",
    ),
    Break(
        "a repeated word is as many words as before",
        CONDITIONS,
        "np.random.default_rng((seed, index)).choice(document[inner])",
        "np.random.default_rng((seed, index)).permutation(document[inner])",
    ),
    Break(
        "correlations keep their mean",
        LAGS,
        "covariance - covariance.mean(axis=-2, keepdims=True)",
        "covariance",
    ),
    Break(
        "scores at long lags count less",
        PROFILES,
        "profiles / np.maximum(T - abs(offsets(reach)), 1)",
        "profiles / T",
    ),
    Break(
        "nearly dependent columns are not made orthonormal again",
        FACTORS,
        "abs(squares - identity).max(initial=0) < tolerance",
        "abs(squares - identity).max(initial=0) < 1e-2",
    ),
    Break("singular directions keep the signs they came with", FACTORS, "U_K * sign", "U_K"),
    Break("null spaces are left as they fell", ROTATION, "N_K @ left @ right", "N_K"),
    Break("a rotation is drawn turned the other way", ROTATION, "U_Q.T @ U_K", "U_K.T @ U_Q"),
    Break(
        "equal angles are taken for distinct ones",
        ROTATION,
        "abs(rest).max() < ROUNDING",
        "True",
    ),
    Break("a filter goes the wrong way", ROTATION, "np.exp(1j * phase)", "np.exp(-1j * phase)"),
    Break(
        "the fastest wave counts twice in a filter",
        ROTATION,
        "np.where(2 * f == T, 1, 2)",
        "np.where(2 * f == T, 2, 2)",
    ),
    Break(
        "a phase at all frequencies counts as a shift",
        ROTATION,
        "rows.sum(axis=0)",
        "rows.sum() / rows.shape[1]",
    ),
    Break("a map is compared with itself", GAUGE, "(of_sum - with_itself)", "of_sum"),
    Break(
        "the gauge at the peaks is of the frequencies beside them",
        GAUGE,
        "correlations[frequencies - 1]",
        "correlations[frequencies - 2]",
    ),
    Break("a head at offset 0 has a direction", PROFILES, "best != reach", "best >= 0"),
    Break(
        "an answer is yes although shuffled maps do as well",
        ROTATIONS,
        'Of("right", enough=MOST)',
        'Of("right", null=0, enough=MOST)',
    ),
    Break(
        "the deals of the maps have nothing in common",
        ROTATIONS,
        "maths.dealt_by_lag(*of_basis, T, DEALS, conditions.seed)",
        "maths.dealt_by_lag(*of_basis, T, DEALS, conditions.seed + int(1e6 * of_basis[0].max()))",
    ),
    Break("a frozen norm forgets the mean", RESIDUAL, "c - c.mean(-1, keepdims=True)", "c"),
    Break(
        "a norm's bias is lost from the stream", RESIDUAL, 'passed["bias"] + b', 'passed["bias"]'
    ),
    Break("what attention carries is not carried on", RESIDUAL, 'parts.get("carried", 0.0)', "0.0"),
    Break(
        "an interrupted run begins a document early",
        STREAM,
        'int(state.pop("done"))',
        'int(state.pop("done")) - 1',
    ),
    Break("the state of other settings is taken", STREAM, "key != self.key", "False"),
    Break(
        "a second run takes the folder of the first",
        STREAM,
        "lock.acquire()",
        "pass",
    ),
    Break(
        "the lock of a folder is deleted while another run takes it",
        STREAM,
        "lock.release()",
        "lock.release()\npath.unlink(missing_ok=True)",
    ),
    Break(
        "a number is compared for any checkpoint",
        PUBLISHED,
        "not concerns(claim, name, model)",
        "False",
    ),
    Break(
        "a number is measured with the options that all are given",
        PUBLISHED,
        "options = dict(x.options) | ({'text': str(texts[x.text])} if x.text else {})",
        "options = given | ({'text': str(texts[x.text])} if x.text else {})",
    ),
    Break(
        "a run with other options is taken for the published one",
        PUBLISHED,
        "outcomes.get(labelled[need(claim)])",
        "outcomes.get(labelled[need(claim)], outcomes.get(claim.experiment))",
    ),
    Break(
        "any text is taken for the reviews",
        PUBLISHED,
        "text.labelled != (first.label in formats.CLASSES)",
        "False",
    ),
    Break(
        "all conventions of perplexity have to fit",
        PUBLISHED,
        "passed = bool(fitting)",
        "passed = len(fitting) == len(claim.readings)",
    ),
    Break(
        "one of two published numbers is enough",
        CLAIMS,
        "np.all(distance <= np.array(tolerance))",
        "np.any(distance <= np.array(tolerance))",
    ),
    Break(
        "each token's 2 to the nats is e to them",
        PERPLEXITIES,
        "np.exp2(x).sum()",
        "np.exp(x).sum()",
    ),
    Break(
        "a number of all documents leaves out those of a search",
        MASK_POSITIONS,
        "return [], texts",
        "return [], [*texts][1:]",
    ),
    Break(
        "a search for a mask hides all tokens at once",
        MASK_POSITIONS,
        "max(every, GAPS)",
        "every",
    ),
    Break("a thumbnail has ticks", DRAW, "axis.set_visible(False)", "pass"),
    Break("the scores stay while the heads are joined", "minitx/model.py", "del pattern", "pass"),
    Break(
        "a model that knows less than frequencies works without positions",
        REMOVE_POSITIONS,
        "Below('loss', **NATS)",
        "Below('loss', most=np.inf, margin=-np.inf)",
    ),
    Break(
        "a place is read off that random weights give as well",
        PROBE,
        '("r2_on_null", "r2_random_interval[1]")',
        '"r2_on_null"',
    ),
    Break(
        "a mask's weights are not brought to one",
        MASKS,
        'Meaning("scores", _logs, np.add, says="softmax(s + log m)", '
        'label="weights × m, rows sum to 1", python="lambda s: s + log_m", '
        'before="log_m = np.log(m, out=np.full_like(m, -np.inf), where=m > 0)")',
        'Meaning("pattern", _same, np.multiply, says="softmax(s + log m)")',
    ),
    Break("today's library keeps the causal mask", MASKS, "bare=True", "bare=False"),
    Break(
        "a recomputed score forgets its scale",
        MASK_TAP,
        'state["q"] * model.config.attn_scale(layer)',
        'state["q"]',
    ),
    Break(
        "chunks of the vocabulary are added up without their common top",
        LOSSES,
        "total * np.exp(top - most)",
        "total",
    ),
    Break(
        "windows of a document count its tokens twice",
        LOSSES,
        "counting[numbers] == n",
        "counting[numbers] <= n",
    ),
    Break(
        "documents weigh alike, whatever their length",
        STATS,
        "np.tensordot(times, above, 1) / np.tensordot(times, below, 1)",
        "np.tensordot(times, above / below, 1) / N",
    ),
    Break("the penalty holds the intercept too", STATS, "mean[-1] - mean[:-2] @ w", "0 * mean[-1]"),
    Break(
        "an interval for a share is half as wide",
        LOGISTIC,
        "[middle - half, middle + half]",
        "[middle - half / 2, middle + half / 2]",
        where="wilson",
    ),
    Break("keys are moved but not scaled", JOINT, "moved / c", "moved"),
    # continuing
    Break(
        "cached positions begin anew",
        POSITIONS,
        "cached + np.cumsum(takes_position(cfg, batch), axis=1)",
        "np.cumsum(takes_position(cfg, batch), axis=1)",
    ),
    Break(
        "the cache loses what it held when it grows",
        CACHE,
        "grown[:, :, :, :n_old] = self.stored[layer][:, :, :, :n_old]",
        "grown[:, :, :, :n_old] = 0",
    ),
    Break(
        "a failed call leaves the cache changed",
        MODEL,
        "key_valid = batch.valid if cache is None else cache.with_new(batch.valid)",
        "key_valid = batch.valid if cache is None else cache.with_new(batch.valid)\nif cache is not None:\n    cache.valid = key_valid",
    ),
    Break(
        "top_k keeps one token too many",
        NEXT_TOKEN,
        'np.argsort(-y, axis=-1, kind="stable")[:, :self.top_k]',
        'np.argsort(-y, axis=-1, kind="stable")[:, :self.top_k and self.top_k + 1]',
    ),
    Break(
        "top_p drops the token that crosses the line",
        NEXT_TOKEN,
        "np.cumsum(p, axis=-1) - p",
        "np.cumsum(p, axis=-1)",
    ),
    Break(
        "temperature multiplies",
        NEXT_TOKEN,
        "likeliest / self.temperature",
        "likeliest * self.temperature",
    ),
    Break("the stop token does not stop", GENERATE, "ended.all()", "False"),
    # what holds NumPy back
    Break(
        "the tightest group of a container is overlooked",
        DOCTOR,
        "min((limit for limit in limits if limit is not None), default=None)",
        "max((limit for limit in limits if limit is not None), default=None)",
    ),
    Break(
        "a library that answers is not believed",
        DOCTOR,
        "_function(handle, function)",
        "not built and _function(handle, function)",
        where="library",
    ),
    Break("the process without pins keeps them", DOCTOR, "name not in PINS", "name"),
    Break("stolen time does not count as busy", DOCTOR, "ticks.split()[:8]", "ticks.split()[:7]"),
    Break(
        "a pin that slows nothing down is blamed",
        ADVICE,
        'free["gflops"] > NOTICED * now["gflops"]',
        '2 * free["gflops"] > NOTICED * now["gflops"]',
    ),
    Break(
        "what a container allows does not limit the threads",
        ADVICE,
        'int(facts["quota"] or facts["cores"])',
        'facts["cores"]',
    ),
    Break(
        "the doctor describes the command line's one thread",
        COMMANDS,
        'argv[:1] != ["doctor"]',
        "True",
    ),
    # the command line
    Break(
        "trace prints before it saves",
        "analysis/commands/trace.py",
        "if arguments.save:\n    save(trace, Path(arguments.save))",
        "pass",
    ),
    Break("Ctrl-C is a traceback", SHELL, "KeyboardInterrupt", "ZeroDivisionError"),
    Break(
        "models in folders of one name share their results",
        ON_COMMAND_LINE,
        "path.relative_to(here if path.is_relative_to(here) else path.anchor).as_posix()",
        "path.name",
    ),
    Break(
        "a run that is strict lets a refuted claim pass",
        "analysis/commands/published.py",
        'arguments.strict and any(row["verdict"] == "fail" for row in rows)',
        "False",
    ),
    Break(
        "lines of progress stand among the JSON",
        "analysis/commands/output.py",
        "sys.stderr if json else sys.stdout",
        "sys.stdout",
    ),
    Break(
        "flags may be abbreviated",
        "analysis/commands/parsers.py",
        "allow_abbrev=False",
        "allow_abbrev=True",
        "__init__",
    ),
    Break(
        "a swapped model and experiment is only an unknown one",
        "analysis/commands/run.py",
        "later and not any((name in registry.EXPERIMENTS for name in names))",
        "False",
    ),
    Break(
        "what cannot be compared is run first",
        "analysis/commands/compare.py",
        "compare.check(experiment)",
        "pass",
    ),
    Break(
        "heads with nothing in common are not warned of",
        COMPARE,
        'record["alike"] <= record["alike_null"]',
        "False",
    ),
    Break(
        "a file is read as the text of its name",
        ON_COMMAND_LINE,
        'given != "-" and not os.path.isfile(given)',
        'given != "-"',
    ),
    Break("an empty text is read", STORAGE, "not text.strip()", "False"),
    Break(
        "a right guess is said to be wrong",
        PREDICT,
        '_word(guess) if hit else f"{_word(guess)} ({_word(here)})"',
        'f"{_word(guess)} ({_word(here)})"',
    ),
    Break(
        "a command loads all of SciPy",
        "analysis/commands/run.py",
        "import time",
        "import scipy.stats\nimport time",
    ),
    # threads and memory used again
    Break(
        "BLAS is left with one thread",
        THREADS,
        "limit(passes.part(n_threads) if passes.met else n_threads)",
        "pass",
    ),
    Break("pieces and BLAS both take all cores", THREADS, "limit(1)", "pass"),
    Break(
        "every thread does all pieces",
        THREADS,
        "for start in self.starts:\n    self.work(start, min(start + self.step, self.n))",
        "for start in range(0, self.n, self.step):\n    self.work(start, min(start + self.step, self.n))",
    ),
    Break(
        "the last piece reaches beyond the end",
        THREADS,
        "min(start + self.step, self.n)",
        "start + self.step",
    ),
    Break("the first piece is left out", THREADS, "range(0, n, step)", "range(step, n, step)"),
    Break(
        "the pieces of others are not waited for",
        THREADS,
        "[self.ended.get() for _ in self.started]",
        "[]",
    ),
    Break(
        "an error in a piece is lost",
        THREADS,
        "try:\n    raise first\nfinally:\n    del first",
        "pass",
    ),
    Break(
        "an error holds the memory of its piece",
        THREADS,
        "try:\n    raise first\nfinally:\n    del first",
        "raise first",
    ),
    Break(
        "an interrupt is lost behind another error", THREADS, "isinstance(error, Exception)", "0"
    ),
    Break(
        "an interrupt at its first line makes a thread wait for itself",
        THREADS,
        "try:\n    self.started.append(True)\n    self.ended.put(run(self.do))\nexcept BaseException as error:\n    self.ended.put(error)",
        "self.started.append(True)\ntry:\n    self.ended.put(run(self.do))\nexcept BaseException as error:\n    self.ended.put(error)",
    ),
    Break(
        "an interrupt leaves pieces to the helpers",
        THREADS,
        "for _ in self.starts:\n    pass",
        "pass",
    ),
    Break("a forked process counts on threads of its parent", THREADS, "os.getpid()", "0"),
    Break(
        "where no thread can start, nothing is computed",
        THREADS,
        "suppress(RuntimeError)",
        "suppress(KeyError)",
    ),
    # products, copies
    Break(
        "a product is done twice",
        KERNELS,
        "np.matmul(W.T[i:j], rows.T, out=y[i:j])",
        "np.matmul(W.T[i:j], rows.T, out=y[i:j])\nnp.matmul(W.T[i:j], rows.T, out=y[i:j])",
    ),
    Break("a product copies its weight", KERNELS, "W.T[i:j]", "W.T[i:j].copy()"),
    Break(
        "a pass holds another T x T array",
        MODEL,
        "scores += attn_bias",
        "scores = scores + attn_bias",
    ),
    Break(
        "softmax works on a copy",
        MODEL,
        'softmax_(hook("scores", scores))',
        'softmax_(hook("scores", scores).copy())',
    ),
    Break(
        "what is captured is copied",
        TRACE,
        'x.copy(order="K") if name in OVERWRITTEN else x',
        'x.copy(order="K")',
    ),
    Break(
        "each new token multiplies the vocabulary by the whole prompt",
        GENERATE,
        "y = logits(model, x[:, -1:])",
        "y = logits(model, x)[:, -1:]",
    ),
    Break(
        "float32 weights are copied",
        FILES,
        "raw.dtype == dtype",
        "False",
    ),
    Break(
        "a run computes all layers whatever it keeps",
        TRACE,
        "if not self.wanted:\n    raise Complete",
        "pass",
    ),
    Break("a run stops before its last edit", TRACE, "{*keep, *edits}", "{*keep}"),
    Break("chunks of a product leave out its bias", KERNELS, "y[i:j] += b[i:j, None]", "pass"),
    Break(
        "an array of other shape is written over the point it edits",
        TRACE,
        "np.copyto(new, value)",
        "new = value",
    ),
    Break("a name of no folder is not looked for", INIT, "find(name)", "_Path(name)"),
    Break("a run in a folder gathers the same twice", STREAM, "what in self.stages", "False"),
    Break(
        "states are numbered by the order of calls",
        STREAM,
        "hashlib.sha256(what.encode()).hexdigest()[:8]",
        "len(self.stages)",
    ),
    Break(
        "several threads of BLAS work inside a command's products",
        COMMANDS,
        "threads.limit(1)",
        "pass",
    ),
    Break(
        "the walk over an experiment's keywords forgets their defaults",
        REGISTRY,
        "p.kind is p.KEYWORD_ONLY",
        "p.kind is p.VAR_KEYWORD",
    ),
    Break(
        "freed memory is given back to the system",
        MEMORY,
        "libc.mallopt(M_TRIM_THRESHOLD, kept)",
        "pass",
    ),
    Break(
        "arrays never lie in memory that stays",
        MEMORY,
        "libc.mallopt(M_MMAP_THRESHOLD, LARGEST)",
        "libc.mallopt(M_MMAP_THRESHOLD, 1 << 17)",
    ),
    Break(
        "settings of the environment are overruled",
        MEMORY,
        'decided or not hasattr(libc, "mallopt")',
        'not hasattr(libc, "mallopt")',
    ),
    Break(
        "stages whose words are alike share a state",
        STREAM,
        "hashlib.sha256(what.encode()).hexdigest()[:8]",
        '"state"',
    ),
    Break(
        "what stands before a linked term is not escaped",
        GLOSSARY,
        "escape(text[end : match.start()])",
        "text[end : match.start()]",
    ),
    Break("every mention of a term is a link", GLOSSARY, "slug in self.linked", "False"),
    Break(
        "the page's policy is of another style", REPORT, "text.encode()", "text.upper().encode()"
    ),
    Break("all headline numbers are shown at once", REPORT_SECTION, "rows[:SHOWN]", "rows"),
    Break(
        "a null of several entries has no labels",
        REPORT_SECTION,
        "len(null) == len(labels)",
        "False",
    ),
    Break(
        "what cannot be judged stands among what can",
        VERDICTS,
        'row["verdict"] not in JUDGED',
        "False",
    ),
    Break(
        "numbers of this checkpoint count as claims about any",
        VERDICTS,
        'row["of"].startswith("any model")',
        "True",
    ),
    Break("documents left out are not counted", OVERVIEW, "name in outcome.result", "False"),
    Break(
        "a report's number of documents is below what an experiment needs",
        MANY,
        "0 < n < least",
        "0 > n",
    ),
    Break("a minimum of documents takes the place of all", MANY, "0 < n < least", "n < least"),
    # waves
    Break(
        "a slow drift counts as a peak",
        SPECTRA,
        "max(DRIFT + 1, -(-T // SLOW))",
        "max(1, 0 * -(-T // SLOW))",
    ),
    Break(
        "the slope of a drift counts as a peak",
        SPECTRA,
        "frequencies[frequencies >= least]",
        "np.arange(least, len(spectrum))[np.argsort(-np.asarray(spectrum)[least:])]",
    ),
    Break("a null is the median of the shuffles", NULLS, "CHANCE = 0.99", "CHANCE = 0.5"),
    Break(
        "slow peaks are not followed",
        WAVES,
        "[*fast[:FOLLOWED].tolist(), *slow[:FOLLOWED].tolist()]",
        "[*fast[:FOLLOWED].tolist(), *slow[:0].tolist()]",
    ),
    Break(
        "a column that drifts is periodic",
        WAVES,
        "spectra.amplitude(qk)[spectra.DRIFT + 1 :]",
        "spectra.amplitude(qk)[1:]",
    ),
    Break(
        "periodic columns are counted for a width of 64",
        QUERIES_KEYS,
        '{"share_periodic": is_periodic.sum() / width, "by_chance": by_chance / width}',
        '{"share_periodic": is_periodic.sum() / 64, "by_chance": by_chance / width}',
    ),
    Break(
        "a band is compared with faster ones, too",
        SPECTRA,
        "means / np.minimum.accumulate(means)",
        "means / means.min()",
    ),
    Break(
        "a slow wave counts as a rise towards fast ones",
        SPECTRA,
        "quotients[least - 1 :]",
        "quotients[0:]",
    ),
    Break(
        "figure 8 is divided by its null",
        MODELS,
        '"spectrum": mean',
        '"spectrum": mean / shuffled.max()',
    ),
    Break(
        "a claim about a peak is put to a table without one",
        CLAIMS,
        'not r["is_peak"]',
        "False",
    ),
    Break(
        "a pass that breaks off at its last norm leaves its tokens in the cache",
        MODEL,
        "x = final_norm(model, x, hook=hook)",
        "if cache is not None:\n    cache.valid = key_valid\nx = final_norm(model, x, hook=hook)",
    ),
    # what a hub may choose
    Break(
        "a hub names the file that it writes to",
        FETCH,
        "check_etag(name, repo, answer.etag, sha256)",
        "pass",
    ),
    Break(
        "a hub names the folder of a file that it lacks",
        FETCH,
        "check_answer(name, repo, commit, stated)",
        "pass",
    ),
    Break("an ETag begins like a hash", TRUST, "ETAG.fullmatch(etag)", "ETAG.match(etag)"),
    Break("a hub replaces a file of another commit", TRUST, "sha256 not in (None, etag)", "False"),
    Break("a hub answers with another commit", TRUST, "answered not in (None, commit)", "False"),
    Break(
        "a listing names any folder as its commit",
        FETCH,
        "check_commit(repo, revision, info.sha)",
        "pass",
    ),
    Break("an index names any file", FETCH, "check_shards(repo, names)", "pass"),
    Break(
        "a link out of the cache is measured and replaced",
        FETCH,
        "check_place(path, repo, commit)",
        "pass",
    ),
    Break(
        "a cache behind a link is refused",
        TRUST,
        "folder.resolve() in target.parents",
        "folder in target.parents",
    ),
    Break(
        "the library's own downloads stay checked",
        FETCH,
        "file_download.get_hf_file_metadata = ask_hub",
        "pass",
    ),
    Break(
        "two threads take each other's check away",
        FETCH,
        "threading.Lock()",
        "contextlib.nullcontext()",
    ),
    # what a resumed run may take
    Break(
        "settings forget configuration and tokenizer",
        RUN_SETTINGS,
        '"files": _hashes(folder, (*local.TEXTS, local.INDEX))',
        "",
    ),
    Break(
        "settings forget shards in subfolders",
        RUN_SETTINGS,
        "local.shards(folder) or [local.MODEL]",
        "[path.name for path in folder.glob('*.safetensors')]",
    ),
    Break(
        "settings forget the version of minitx",
        RUN_SETTINGS,
        '"minitx": minitx.__version__, "python": platform.python_version()',
        '"python": platform.python_version()',
    ),
    Break(
        "settings forget the other models of a comparison",
        RUN_SETTINGS,
        'stated["others"] = {key: model_files(path) for key, path in others(values["others"])}',
        "pass",
    ),
    Break(
        "arrays stand beside the settings of the run before",
        RESULTS,
        '(out / f"{self.experiment}.json").unlink(missing_ok=True)',
        "pass",
    ),
    Break(
        "an unknown option from Python is passed over",
        REGISTRY,
        "if name not in options:\n    raise ValueError(f'{self.name} has no option {given_name!r} (available: {self._defaults})')",
        "if name not in options:\n    continue",
    ),
    Break(
        "True passes for a number of documents",
        OPTIONS,
        "return kind is bool",
        "return kind is not str",
    ),
    Break(
        "the figure of a saved result has lost its title",
        RESULTS,
        "draw.titled(self.drawn[0], self.title)",
        "self.drawn[0]",
    ),
    Break(
        "a notebook takes words for markup",
        RESULTS,
        'says = f"<p>{escape(self.says)}</p>" if self.says else ""',
        'says = f"<p>{self.says}</p>" if self.says else ""',
    ),
    Break(
        "an experiment in a notebook runs on as many threads as BLAS has",
        BLAS,
        "limit(1)",
        "pass",
    ),
    Break(
        "results of a changed model are taken for those of its files",
        SINGLE,
        'stated["changed"] = changed',
        "pass",
    ),
    Break("threads stay limited after an experiment", BLAS, "limit(n)", "pass"),
    Break("a state that was altered is gone on with", STREAM, "digest != _digest(state)", "False"),
    Break(
        "a state of more documents than there are is gone on with", STREAM, "0 < done <= N", "True"
    ),
    Break(
        "a state with rows of fewer documents is gone on with",
        STREAM,
        "value.ndim == 0 or len(value) != done",
        "False",
    ),
    Break("sums of another type are gone on with", STREAM, "value.dtype != np.float64", "False"),
    Break("arrays of other shapes are added up", STREAM, "x.shape != before.shape", "False"),
    Break(
        "a choice that there is not is taken",
        OPTIONS,
        "self.choices and value not in self.choices",
        "False",
    ),
    Break(
        "an option beyond its range is taken",
        OPTIONS,
        "self.range is not None and value not in self.range",
        "False",
    ),
    Break(
        "an option may have a default of another kind",
        OPTIONS,
        "type(default) is not kind",
        "False",
    ),
    Break("an option without an annotation is registered", REGISTRY, "_ = new.options", "pass"),
    Break(
        "a switch that is on cannot be turned off",
        FLAGS,
        "argparse.BooleanOptionalAction if option.default else 'store_true'",
        "'store_true'",
    ),
    Break(
        "Japanese text is not brought to one form before its words are split",
        JAPANESE,
        "self.normalizes",
        "False",
        "words",
    ),
    Break(
        "the dictionary of a Japanese tokenizer that names none is another one",
        JAPANESE,
        '(settings.get("mecab_kwargs") or {}).get("mecab_dic", "ipadic")',
        '(settings.get("mecab_kwargs") or {}).get("mecab_dic", "unidic_lite")',
    ),
    Break(
        "Japanese words are lower-cased where the tokenizer does not ask for it",
        JAPANESE,
        "self.lowers",
        "True",
        "words",
    ),
    Break(
        "the settings leave out the packages that split Japanese words",
        TEXT,
        'japanese.packages(settings_in(self.folder)) if form == "vocab.txt" else ()',
        "()",
    ),
    Break("ids outside the vocabulary are read", IDS, "token >= config.n_vocab", "False"),
    Break("padding in a file of ids is read", IDS, "token == config.no_position_id", "False"),
    Break("the ends of a single line of ids count as special", IDS, "n > 1", "n > 0"),
    Break(
        "special tokens of a file of ids count as ordinary ones",
        CORPUS,
        "before, after = ids.ends(text, model.config)",
        "before, after = (), ()",
    ),
    Break(
        "ids and a text at once are taken",
        REGISTRY,
        'given.get("text", "sample") != "sample"',
        "False",
    ),
    Break(
        "Japanese labels keep a font that lacks them",
        FONTS,
        "words.set_fontfamily([*_default(), *installed()])",
        "pass",
    ),
    Break(
        "a font installed since matplotlib listed them is not seen",
        FONTS,
        "fontManager.addfont(path)",
        "pass",
    ),
    Break("a PNG has no title", DRAW, "sheet.text(*place, literal(title), **style)", "pass"),
    Break(
        "boxes in a PNG are not warned of", DRAW, "lacking = fonts.cover(picture)", "lacking = ()"
    ),
    Break(
        "a figure of an earlier run stays beside one of another format",
        RESULTS,
        "{*FORMATS} - {format}",
        "()",
    ),
    Break(
        "a mask on the embedding leaves the values as they are",
        MASK_TAP,
        "rule.values",
        "False",
    ),
    Break(
        "a mask on the embedding leaves the keys as they are",
        MASKS,
        "Meaning('scores', _same, _scaled, values=True, says='softmax(m s) m', "
        "label='keys and values × m', python=SCALED)",
        "Meaning('scores', _same, lambda x, m: x, values=True, says='softmax(m s) m')",
    ),
    Break(
        "norms that grow do so in every layer",
        NORM_TAP,
        "name == 'resid_pre' and layer == 0",
        "name == 'resid_pre'",
    ),
    Break(
        "the null of growing norms is in order",
        NORM_TAP,
        "np.random.default_rng((seed, T)).permutation(t)",
        "t",
    ),
    Break(
        "words that a half of the documents has count as positions",
        BASES,
        "a.swapaxes(-1, -2) @ b / T",
        "a.swapaxes(-1, -2) @ a / T",
    ),
    Break(
        "the keys' basis of the SVD is the queries'",
        BASES,
        "np.linalg.pinv(W_K) @ U_K",
        "np.linalg.pinv(W_K) @ U_Q",
    ),
    Break("the note's c moves the keys before a does", JOINT_NOTE, "(k + a) / c", "k / c + a"),
    Break(
        "keys that no query sees count in the note's correlation",
        JOINT_NOTE,
        "stats.pearson(products[..., seen], distances[..., seen])",
        "stats.pearson(products[..., seen | True], distances[..., seen | True])",
    ),
    Break(
        "the plane of the note is not that of queries and keys together",
        JOINT_NOTE,
        "x = np.concatenate([q, k], axis=-2)",
        "x = np.concatenate([q, q], axis=-2)",
    ),
    Break(
        "where 0 leaves a number to the experiment, any other does, too",
        OPTIONS,
        "value == 0 or value in self.others",
        "True",
    ),
    Break(
        "a run with a switch is not gone on with where that was a number",
        RUN_SETTINGS,
        "int(value) if isinstance(value, bool) else value",
        "value",
    ),
    Break(
        "rotation reads the attention of one document, however many are asked for",
        ROTATIONS,
        "corpus.documents(model, text, documents, tokens)",
        "corpus.documents(model, text, 1, tokens)",
    ),
    Break(
        "a kernel warns where a large value overflows",
        KERNELS,
        'over="ignore", under="ignore"',
        'over="warn", under="warn"',
    ),
    Break(
        "the period of frequency 0 warns of a division", SPECTRA, 'divide="ignore"', 'divide="warn"'
    ),
    Break(
        "a function of the maths has lost its example",
        LAGS,
        '"""-(T - 1) ... T - 1.\n\n    >>> all_lags(3)\n    array([-2, -1,  0,  1,  2])\n    """',
        '"""-(T - 1) ... T - 1."""',
    ),
    Break(
        "a public function has lost its example",
        "minitx/finite.py",
        '"""Raise ValueError that names every weight with NaN or infinity. Reads the whole file.\n\n    The same holds for numbers beyond 1e10: in float32 their products overflow within a layer.\n\n    A sound checkpoint:\n\n    >>> import minitx\n    >>> minitx.check(minitx.load("tiny-bert")) is None\n    True\n    """',
        '"""Raise ValueError that names every weight with NaN or infinity. Reads the whole file."""',
    ),
    Break(
        "a state that is no whole archive is left open",
        STREAM,
        'with open(path, "rb") as file, np.load(file) as arrays:\n    state = dict(arrays)',
        "with np.load(path) as arrays:\n    state = dict(arrays)",
    ),
    Break(
        "the page in a notebook could read the notebook",
        INLINE,
        'SANDBOX = "allow-scripts allow-downloads"',
        'SANDBOX = "allow-scripts allow-downloads allow-same-origin"',
    ),
    Break(
        "a page leaves its frame in the notebook",
        INLINE,
        "title, page = escape(self.title), escape(self.html)",
        "title, page = escape(self.title), self.html",
    ),
    Break(
        "a page of a changed model goes by the name of its files",
        INLINE,
        "settings.changes(model) if model is given else []",
        "[]",
    ),
    Break("Ctrl-C while NumPy is loaded is a traceback", INTERRUPT, "is_the_command()", "False"),
    Break(
        "Ctrl-C ends any program that imports minitx",
        INTERRUPT,
        "is_the_command()",
        "True",
    ),
    Break(
        "Ctrl-C is no longer ignored by a job in the background",
        INTERRUPT,
        "signal.getsignal(signal.SIGINT) is before",
        "True",
    ),
    Break("an interrupted run does not say how to go on", SHELL, "interrupt.raise_again()", "pass"),
    Break(
        "a claim that came out as NaN loses the whole report",
        PUBLISHED,
        '{"ours": finite(ours), "null": finite(null), "readings": [*claim.readings]}',
        '{"ours": ours, "null": null, "readings": [*claim.readings]}',
    ),
    # dial, chain, notch
    Break(
        "positions are moved the other way",
        MOVES,
        "x[(np.arange(len(x)) + s) % len(x)]",
        "x[(np.arange(len(x)) - s) % len(x)]",
    ),
    Break(
        "positions that came round the end are measured",
        MOVES,
        "slice(places.start + max(0, -s), places.stop - max(0, s))",
        "places",
    ),
    Break(
        "offsets are dealt to the shifts that they were measured at",
        MOVES,
        "rng.random(attended.shape)",
        "np.zeros(attended.shape)",
    ),
    Break(
        "what a turned head would see beyond the last key is lost",
        MOVES,
        "new[..., rows, last] += pattern.sum(axis=-1) - new.sum(axis=-1)",
        "pass",
    ),
    Break(
        "a document's own text passes for what stands at a place",
        "analysis/measures/dial_arrays.py",
        "others = (total - passed.inputs) / (N - 1)",
        "others = total / N",
    ),
    Break(
        "special tokens are moved too",
        POSITION_PARTS,
        "changed[places] += positions - before",
        "changed[:] += np.resize(positions - before, changed.shape)",
    ),
    Break(
        "positions of layer 0 are moved after the norm",
        POSITION_PARTS,
        "return inputs.normed(model, passed.words + rows)",
        "return passed.inputs[0] + rows - passed.rows",
    ),
    Break(
        "a causal model sees the future in a pass from a layer on",
        LATER_LAYERS,
        "block(x, w, place[w.index], model.config, partial(hook, layer=w.index))",
        "block(x, w, place[w.index]._replace(bias=None), model.config, partial(hook, layer=w.index))",
    ),
    Break(
        "the null turns all queries to one side",
        CHAIN,
        "ways.append(np.where(self.to_the_right, right, left))",
        "ways.append(right)",
    ),
    Break(
        "heads of its own layer count as deeper than a turned head",
        CHAIN,
        'np.arange(L)[:, None] > r["turned"][:, :1, None]',
        'np.arange(L)[:, None] >= r["turned"][:, :1, None]',
    ),
    Break(
        "an even loss of energy takes nothing",
        BANDS,
        "left = 1 - energy(x, part)",
        "left = 1.0",
    ),
    Break(
        "all waves pass for one band",
        NOTCH,
        'np.moveaxis(r[f"kept_{way}"][:, :-1], 1, -1)',
        'np.moveaxis(r[f"kept_{way}"], 1, -1)',
    ),
    # where scores come from, what layers keep of positions, four inputs
    Break(
        "a term of the queries is added to that of another lag",
        SOURCES,
        "np.roll(circular, reach, axis=-3)",
        "np.roll(circular, reach + 1, axis=-3)",
    ),
    Break(
        "what is added to a whole row counts as variance of scores",
        SOURCES,
        "np.where(visible, inside - totals / n_visible, 0)",
        "inside",
    ),
    Break(
        "rows are not taken off the lags that explain scores",
        SOURCES,
        "np.diag(n_seen) - seen.T @ row_means + 1",
        "np.diag(n_seen) + 1",
    ),
    Break(
        "a lag that the mask hides counts for the peak",
        SOURCES,
        "if causal:\n    curve = curve[..., : reach + 1]",
        "pass",
    ),
    Break(
        "positions of queries and of keys come from one half of the documents",
        SCORE_SOURCES,
        "(half, 1 - half)",
        "(half, half)",
    ),
    Break(
        "what all places have in common is lost from the scores",
        SCORE_SOURCES,
        'parts["position"] - common, parts["bias"] + common',
        'parts["position"] - common, parts["bias"]',
    ),
    Break(
        "what layers wrote about positions is in the scores twice",
        SCORE_SOURCES,
        'parts["attention"] + parts["mlp"] + parts["position"] - place',
        'parts["attention"] + parts["mlp"] + parts["position"]',
    ),
    Break("biases of queries are no source", SCORE_SOURCES, "y[-1] += b", "y[-1] += 0 * b"),
    Break(
        "slow waves count with the fast ones",
        SOURCES_EXPERIMENT,
        "np.array(shortest) >= LONG * (1 - 1e-9)",
        "np.array(shortest) >= 2",
    ),
    Break(
        "canonical correlations are those of the documents of the fit",
        CCA_EXPERIMENT,
        '"correlations": maths.held_out(fitted, test, y)',
        '"correlations": maths.held_out(fitted, fit, y)',
    ),
    Break(
        "the table is not centred before it is correlated",
        CCA,
        "x - x.mean(axis=0)",
        "x",
    ),
    Break(
        "the mean of a stream counts as correlation",
        CCA,
        "Moments(n, xx - rows * np.outer(mean, mean), places - n * mean)",
        "Moments(n, xx, places)",
    ),
    Break(
        "words alone keep their positions",
        CONDITIONS,
        'edits={"pos_embed": np.zeros_like}',
        "edits={}",
    ),
    Break(
        "shuffled words are in their order",
        CONDITIONS,
        "CONDITIONS[name].drawn == 'shuffled'",
        "False",
    ),
    Break(
        "a head that needs words and positions counts as reading positions",
        CONDITIONS_EXPERIMENT,
        "words & positions",
        "words | positions",
    ),
    Break(
        "a shift has the sign of a slip in print",
        ROTATION,
        "T * np.asarray(theta) / (2 * np.pi * f)",
        "-T * np.asarray(theta) / (2 * np.pi * f)",
    ),
    Break(
        "scores before the mask lack the scale",
        HEADS,
        "scale * q @ k.swapaxes(-1, -2)",
        "q @ k.swapaxes(-1, -2)",
    ),
    Break(
        "scores before the mask are taken as they are",
        HEADS,
        "scores - scores.mean(axis=-1, keepdims=True)",
        "scores",
    ),
    Break(
        "attention is clustered where scores are asked for",
        PROFILES_EXPERIMENT,
        "x[:, -1]",
        "x[:, 0]",
    ),
    Break(
        "three clusters count as one or two",
        PROFILES_EXPERIMENT,
        "n_clusters <= FEW",
        "n_clusters <= FEW + 1",
    ),
    Break(
        "the null of a heat map is the map itself",
        EXTRACTION,
        'pairs = [(r[name][:, 1:], r[name + "_text"][:, 1:]) for name in "xqk"]',
        'pairs = [(r[name][:, 1:], r[name][:, 1:]) for name in "xqk"]',
    ),
    Break(
        "a spectrum is like the table in all layers as in the first",
        EXTRACTION,
        'each = [waves.spectrum_correlation(curve, r["position"]) for curve in curves]',
        'each = [waves.spectrum_correlation(curves[0], r["position"]) for curve in curves]',
    ),
    Break(
        "a map is added up along lines of the other slope",
        LAYOUT,
        "A * f * shifts / rows.T",
        "-A * f * shifts / rows.T",
    ),
    Break(
        "energy at an angle of 0 counts as a band and as a line",
        LAYOUT,
        "np.where(np.arange(A) == A // 2 - 1, 0, x)",
        "x",
    ),
    Break(
        "many angles in one place make a band",
        LAYOUT,
        "density / density.sum()",
        "1 / len(density)",
    ),
    Break(
        "all frequencies are turned by one angle by chance",
        LAYOUT,
        "size=(n, len(rows.excess))",
        "size=(n, 1)",
    ),
    Break(
        "a band is told from a line by chance alone",
        ROTATIONS,
        "highest > max(lines[name], along[other].max())",
        "highest > lines[name]",
    ),
    Break(
        "ranks are taken over hidden pairs too",
        JOINT,
        "s_ranks = scipy.stats.rankdata(s[..., seen], axis=-1)\n"
        "d_ranks = scipy.stats.rankdata(d[..., seen], axis=-1)",
        "s_ranks = scipy.stats.rankdata(s.reshape(*s.shape[:-2], -1), axis=-1)\n"
        "d_ranks = scipy.stats.rankdata(d.reshape(*d.shape[:-2], -1), axis=-1)",
    ),
    Break(
        "Spearman's correlation is of the model's own keys after they moved",
        JOINT_FIT,
        "products = joint.PRODUCTS[settings.products].of(q @ k.swapaxes(-1, -2), layer.seen)\n"
        "distances = joint.distances(q, k, settings.distance)",
        "products = joint.PRODUCTS[settings.products].of(q @ k.swapaxes(-1, -2), layer.seen)\n"
        "distances = joint.distances(layer.q, layer.k, settings.distance)",
    ),
    Break(
        "fading in one of queries and keys is enough",
        CLAIMS,
        'of_queries_and_keys(max, "correlation_{}", -1)',
        'of_queries_and_keys(min, "correlation_{}", -1)',
    ),
    # encoder-decoders
    Break("BART's positions begin at row 0", BART, '"offset": OFFSET', '"offset": 0'),
    Break(
        "BART's positions begin behind the padding id",
        BART,
        '"offset": OFFSET',
        '"offset": values["pad_id"] + 1',
    ),
    Break(
        "scaled word embeddings are not scaled",
        BART,
        'values["d_model"] ** 0.5 if values["embed_scale"] else 1.0',
        "1.0",
    ),
    Break(
        "an untied BART's stacks share a word embedding",
        BART,
        'tensor(f"{side}.embed_tokens.weight", "shared.weight")',
        'tensor("shared.weight", f"{side}.embed_tokens.weight")',
    ),
    Break(
        "an encoder-decoder's bias of the logits is left out",
        BART,
        'tensor("final_logits_bias", optional=True)',
        'tensor("final_logits", optional=True)',
    ),
    Break("an mBART is read as a BART", BART, '"normalize_before": False', '"normalize": False'),
    Break(
        "a BART classifier's size is that of the vocabulary",
        CHECKPOINT,
        'ours in ("W_U", "b_U") and of_classes(task_head)',
        "False",
    ),
    Break(
        "the encoder of a classifier has a head",
        HELD_HEADS,
        "[name for name in saved_with(saved_from) if name in family.heads]",
        "saved_with(saved_from)",
    ),
    Break(
        "Marian has no head where its file has no output matrix",
        HELD_HEADS,
        '"Head|ForConditionalGeneration|MTModel|ForCausalLM|^BartModel"',
        '"Head|ForConditionalGeneration|ForCausalLM|^BartModel"',
    ),
    Break(
        "Marian's vocabularies are one",
        MARIAN,
        'Key("decoder_vocab_size", other="vocab_size")',
        'Key("vocab_size")',
    ),
    Break(
        "sines and cosines take turns",
        POSITIONS,
        "np.concatenate([np.sin(angle), np.cos(angle[:, : D // 2])], axis=1)",
        "np.stack([np.sin(angle), np.cos(angle)], axis=2).reshape(n, -1)[:, :D]",
    ),
    Break(
        "sinusoids are not rounded as the models were trained",
        POSITIONS,
        "table.astype(np.float32)",
        "table",
    ),
    Break(
        "a decoder has buckets for later keys",
        DISTANCES,
        "cfg.causal",
        "False",
        where="bucket",
    ),
    Break(
        "an encoder has no buckets for later keys",
        DISTANCES,
        "cfg.causal",
        "True",
        where="bucket",
    ),
    Break(
        "fewer buckets than half have one distance each",
        DISTANCES,
        "n // 2",
        "n // 4",
        where="bucket",
    ),
    Break(
        "a distance is that of query and key",
        DISTANCES,
        "column[:, None, :] - query_column[:, :, None]",
        "query_column[:, :, None] - column[:, None, :]",
    ),
    Break(
        "over a cache new tokens have the first ones' distances",
        DISTANCES,
        "column[:, S - T :]",
        "column[:, :T]",
    ),
    Break(
        "padding is seen where there is a bias by distance",
        POSITIONS,
        "by_distance if bias is None else by_distance + bias",
        "by_distance",
    ),
    Break(
        "cross-attention has a bias by distance too",
        MODEL,
        "attention_bias(cfg, numbers, seen.keys, cross_mask, name='cross_mask')",
        "attention_bias(cfg, numbers, seen.keys, cross_mask) if w.W_rel is None "
        "else w.W_rel[np.minimum(seen.keys.numbers, 1)].transpose(0, 2, 1)[:, :, None]",
    ),
    Break(
        "T5's scores are divided by the root of the width",
        T5,
        '"scale_attn": False',
        '"scale_attn": True',
    ),
    Break("T5's norms follow the addition", T5, '"pre_norm": True', '"pre_norm": False'),
    Break(
        "RMSNorm takes a mean off",
        KERNELS,
        'np.einsum("...d,...d->...", x, x) / x.shape[-1]',
        "x.var(-1)",
    ),
    Break(
        "the gate is what it multiplies",
        MODEL,
        'post = activate(pre) * hook("pre_linear", linear(x, w.W_in, w.b_in))',
        'post = pre * activate(hook("pre_linear", linear(x, w.W_in, w.b_in)))',
    ),
    Break("gated-gelu is the exact GELU", T5, '"gated-gelu": "gelu_new"', '"gated-gelu": "gelu"'),
    Break(
        "a tied T5's stream is not made smaller before its output embedding",
        MODEL,
        "x * cfg.unembed_scale",
        "x",
    ),
    Break(
        "an untied T5's stream is made smaller too",
        T5,
        'values["d_model"] ** -0.5 if scaled else 1.0',
        'values["d_model"] ** -0.5',
    ),
    Break(
        "T5 must name its start token",
        T5,
        'values["pad_id"] if values["start_id"] is None else values["start_id"]',
        'values["start_id"]',
    ),
    Break(
        "T5's decoder has as many layers as its encoder",
        T5,
        'Key("num_decoder_layers", other="num_layers")',
        'Key("num_layers")',
    ),
    Break("T5's sizes are not checked", T5, "check(values)", "pass"),
    Break(
        "a bias that T5's cross-attention does not use is in the way",
        CHECKPOINT,
        "BUFFERS.search(n)",
        'BUFFERS.search(n.replace("EncDec", ""))',
    ),
    Break(
        "padding of the source is read by the encoder",
        MODEL,
        "valid=batch.valid, mask=mask, hook=encode",
        "mask=mask, hook=encode",
    ),
    Break(
        "padding of the source is read by the decoder",
        MODEL,
        "Keys(numbers, batch.valid)",
        "Keys(numbers, batch.valid | True)",
    ),
    Break(
        "the user's mask of the encoder is not applied",
        MODEL,
        "valid=batch.valid, mask=mask, hook=encode",
        "valid=batch.valid, hook=encode",
    ),
    Break(
        "the user's mask of the source is not applied",
        MODEL,
        "attention_bias(cfg, numbers, seen.keys, cross_mask, name='cross_mask')",
        "attention_bias(cfg, numbers, seen.keys, None)",
    ),
    Break(
        "keys of the source are the decoder's own",
        MODEL,
        "keys_values(source.x, w, cfg, hook)",
        "keys_values(x, w, cfg, hook)",
    ),
    Break(
        "keys of the source are computed for every token",
        MODEL,
        "w.index not in source.cached",
        "True",
    ),
    Break(
        "a cache forgets the source",
        MODEL,
        "cache.valid, cache.source = key_valid, seen",
        "cache.valid = key_valid",
    ),
    Break(
        "cross-attention has the norm of self-attention",
        MODEL,
        '(attend_source, "ln_cross", w.cross, "resid_cross")',
        '(attend_source, "ln1", w, "resid_cross")',
    ),
    Break(
        "cross-attention follows the MLP",
        MODEL,
        'writers.insert(1, (attend_source, "ln_cross", w.cross, "resid_cross"))',
        'writers.append((attend_source, "ln_cross", w.cross, "resid_cross"))',
    ),
    Break(
        "a target of text has no start token",
        GIVEN,
        "[cfg.start_id, *(row[:-1] if row[-1:] == [cfg.end_id] else row)]",
        "[*(row[:-1] if row[-1:] == [cfg.end_id] else row)]",
    ),
    Break(
        "a target of text keeps its end token",
        GIVEN,
        "row[:-1] if row[-1:] == [cfg.end_id] else row",
        "row",
    ),
    Break(
        "a classifier's decoder does not read the source again",
        GIVEN,
        'text is None and cfg.task_head not in (None, "causal")',
        "False",
    ),
    Break(
        "token types given to an encoder-decoder are ignored",
        TRACE,
        "as_target(model, text, valid, types, source_batch)",
        "as_target(model, text, valid, None, source_batch)",
    ),
    Break(
        "layers of the encoder are counted from the decoder's last",
        POINTS,
        "stack_of(str(name), model) or model",
        "model",
    ),
    Break(
        "the estimate takes the target for the source",
        COST,
        'sizes[""] | {"S": sizes[ENCODER]["S"]}',
        'sizes[""]',
    ),
    Break(
        "the check passes over the encoder",
        "minitx/finite.py",
        "model.encoder is not None",
        "False",
        where="named_arrays",
    ),
    Break(
        "the encoder of a partial checkpoint seems whole",
        CHECKPOINT,
        "replace(encoder, missing=missing)",
        "encoder",
    ),
    Break(
        "the first token is not forced",
        CONSTRAINTS,
        "{0: cfg.first_id if given == 1 else None}",
        "{}",
    ),
    Break(
        "the first token is forced behind a prompt too",
        CONSTRAINTS,
        "{0: cfg.first_id if given == 1 else None}",
        "{0: cfg.first_id}",
    ),
    Break(
        "the last token is not forced",
        CONSTRAINTS,
        "cfg.last_id is not None",
        "False",
    ),
    Break(
        "an encoder-decoder's own end token ends nothing",
        GENERATE,
        "stop = model.config.end_id",
        "pass",
    ),
    Break(
        "dates that are held out are trained on too",
        DATES,
        "is_held_out(day) == held_out",
        "is_held_out(day) >= held_out",
    ),
    Break(
        "held-out forms of dates are trained on too",
        DATES,
        "tuple(form for form in FORMS if form not in UNSEEN)",
        "FORMS",
    ),
    Break(
        "the span of a date's part begins behind its first character",
        DATES,
        "spans[name] = slice(start, len(text))",
        "spans[name] = slice(start + 1, len(text))",
    ),
    Break(
        "the weekday of a date is the next one's",
        DATES,
        "WEEKDAYS[day.weekday()]",
        "WEEKDAYS[day.isoweekday() % 7]",
    ),
    Break(
        "numbers between slashes are day and month",
        DATES,
        '("{month}/{day}/{year}", "number", "number")',
        '("{day}/{month}/{year}", "number", "number")',
    ),
    Break(
        "a tied output matrix counts as weights of its own",
        PARTS,
        "place not in counted",
        "True",
    ),
    Break(
        "a classifier reads out every token",
        PARTS,
        "1 if is_pooled(cfg.task_head) else T",
        "T",
    ),
    Break(
        "a step does not multiply the keys that a cache holds",
        PARTS,
        "_of_stack(model, T, past + T)",
        "_of_stack(model, T, T)",
    ),
    Break(
        "a step without a cache reads out every token again",
        PARTS,
        "multiply_adds(model, n, read_out=1, S=T)",
        "multiply_adds(model, n, S=T)",
    ),
    Break(
        "a source's keys are computed again at every step",
        PARTS,
        "reads=past == 0",
        "reads=True",
    ),
    Break(
        "an encoder-decoder's arrays are its decoder's alone",
        "minitx/finite.py",
        "if model.encoder is not None: arrays |= {f'encoder.{name}': x for name, x in "
        "named_arrays(model.encoder).items()}",
        "pass",
    ),
    Break(
        "projections are the MLPs' when attention overtakes them",
        PARTS,
        "costs[MLPS] - costs[PROJECTIONS]",
        "costs[MLPS] + costs[PROJECTIONS]",
    ),
    Break(
        "the batch is an axis of every shape",
        SHAPES_EXPERIMENT,
        "Step(stack, name, column, axes, x.shape[1:], _meaning(name, model.config))",
        "Step(stack, name, column, axes, x.shape[:-1], _meaning(name, model.config))",
    ),
    Break(
        "the final norm stands before the layers",
        SHAPES_EXPERIMENT,
        "column = AFTER",
        "column = BEFORE",
    ),
    Break(
        "the likeliest piece is that of the first row",
        SHAPES_EXPERIMENT,
        "probabilities[min(last, len(probabilities) - 1)]",
        "probabilities[0]",
    ),
    Break(
        "a classifier's scores are over the vocabulary",
        SHAPES_EXPERIMENT,
        'name == "logits"',
        "False",
        "_axes",
    ),
    Break(
        "a layer gets what the layers before made of the new vector",
        MIXING,
        'before[name, layer].copy(order="K")',
        'x.copy(order="K")',
    ),
    Break(
        "a vector is replaced by itself",
        MIXING,
        "(j + 1) % x.shape[1]",
        "j",
    ),
    Break(
        "rows and replaced vectors are mixed up",
        MIXING,
        "pairs.transpose(2, 1, 3, 0)",
        "pairs.transpose(2, 1, 0, 3)",
    ),
    Break(
        "the null of A V mixes each token's own values",
        MIXING,
        "pattern @ v[:, :, order]",
        "pattern @ v",
    ),
    Break(
        "rows that do not see a vector count as those that do",
        MIXING,
        "by_attention[:, ~seen].sum()",
        "0 * by_attention[:, ~seen].sum()",
    ),
    Break(
        "effective keys are those of the mean entropy",
        MIXING,
        "np.exp(entropy).mean(axis=1)",
        "np.exp(entropy.mean(axis=1))",
    ),
    Break(
        "rounding counts as rank",
        EFFECTIVE,
        "s > bound",
        "s > 0",
    ),
    Break(
        "the effective rank is of squared singular values",
        EFFECTIVE,
        "entropy(s / total)",
        "entropy(s * s / (s * s).sum())",
    ),
    Break(
        "the output keeps the order of dimensions where W_head reads them",
        SLICES,
        'name == "W_U" and model.weights.W_head is None',
        'name == "W_U"',
    ),
    Break(
        "a bias of attention keeps the order of dimensions",
        SLICES,
        '("W_Q", "W_K", "W_V", "W_in", "W_head", "b_O", "b_out")',
        '("W_Q", "W_K", "W_V", "W_in", "W_head", "b_out")',
    ),
    Break(
        "slices at zero add up from layer to layer",
        SLICES,
        'before[layer].copy(order="K")',
        'x.copy(order="K")',
    ),
    Break(
        "every head's own slice is the first",
        SLICES,
        'np.einsum("hlh->lh", by_slice)',
        "by_slice[0]",
    ),
    Break(
        "a swap leaves the biases where they are",
        PROJECTIONS,
        '("W_", "b_")',
        '("W_",)',
    ),
    Break(
        "keys are not turned with their queries",
        PROJECTIONS,
        '("W_Q", "b_Q", "W_K", "b_K")',
        '("W_Q", "b_Q")',
    ),
    Break(
        "a swap in one layer is one in all",
        PROJECTIONS,
        "way(w) if w.index in layers else {}",
        "way(w)",
    ),
    Break(
        "the next head's keys are shifted by one column",
        PROJECTIONS,
        "np.roll(getattr(w, name), -d, axis=-1)",
        "np.roll(getattr(w, name), -1, axis=-1)",
    ),
    Break(
        "every layer projects what the first one reads",
        PROJECTIONS,
        "linear(X[w.index], W, b) - x",
        "linear(X[0], W, b) - x",
    ),
    Break(
        "a GRU's reset gate resets nothing",
        GRU,
        "x_n + r * h_n",
        "x_n + h_n",
    ),
    Break(
        "a GRU's update gate is turned round",
        GRU,
        "(1 - z) * n + z * h",
        "z * n + (1 - z) * h",
    ),
    Break(
        "a fixed context is the encoder's first state",
        GRU,
        "pattern[:, -1] = 1",
        "pattern[:, 0] = 1",
    ),
    Break(
        "additive attention does not read its query",
        GRU,
        "queries[:, None] + keys",
        "keys",
    ),
    Break(
        "dot-product attention is scaled",
        GRU,
        "(k @ q[..., None])[..., 0]",
        "(k @ q[..., None])[..., 0] / k.shape[-1] ** 0.5",
    ),
    Break(
        "a recurrent decoder starts from nothing",
        GRU,
        "s = keys[:, -1]",
        "s = np.zeros_like(keys[:, -1])",
    ),
    Break(
        "a recurrent decoder starts with a symbol of the source",
        GRU,
        "len(W_E) - 1",
        "0",
    ),
    Break(
        "a recurrent decoder does not read its target",
        GRU,
        "output if target is None else target[:, t]",
        "output",
    ),
    Break(
        "maps of another sequence are of the same",
        TOY,
        "np.roll(source, 1, axis=0)",
        "source",
    ),
    Break(
        "a sequence of which half is right is a whole one",
        TOY,
        '"exact": (right == 1).mean(axis=1)',
        '"exact": (right >= 0.5).mean(axis=1)',
    ),
    Break(
        "a context vector holds one symbol more",
        TOY,
        "fails.argmax(axis=1) + lengths[0] - 1",
        "fails.argmax(axis=1) + lengths[0]",
    ),
    Break(
        "attention may win where the fixed vector holds all",
        TOY,
        "low >= MOST > high",
        "low >= MOST",
    ),
    Break(
        "heads of the first layer are asked what was shown of a deep one",
        CLAIMS,
        "directed[0] = False",
        "directed[:0] = False",
    ),
    Break(
        "5 to 20 directions in one layer are enough",
        CLAIMS,
        "np.all((ours >= least) & (ours <= most))",
        "np.any((ours >= least) & (ours <= most))",
    ),
    Break(
        "columns of all heads drawn count as those of heads behind the first layer",
        CLAIMS,
        'curves = r["xcorr"][INPUTS.index(condition), drawn]',
        'curves = r["xcorr"][INPUTS.index(condition)]',
    ),
    Break(
        "a figure says above chance of every offset",
        ROTATIONS,
        'verdict = "above" if r["excess"][i] > r["excess_null"][i] else "within"',
        'verdict = "above"',
    ),
    Break(
        "a target is cut into the pieces of the source's model",
        PIECES,
        '"target.spm" if target else "source.spm"',
        '"source.spm"',
    ),
    Break(
        "a target's pieces are numbered by the source's vocabulary",
        PIECES,
        "own = target and separate(settings)",
        "own = False",
    ),
    Break(
        "the pieces that stand for spans in T5 are counted from the front",
        PIECES,
        "reversed(range(n_extra))",
        "range(n_extra)",
    ),
    Break(
        "the language in front of a source is cut into pieces",
        PIECES,
        "language=LANGUAGE",
        "language=None",
    ),
    Break(
        "T5 takes what stands between >> and << in front for a language",
        PIECES,
        "language=None",
        "language=LANGUAGE",
    ),
    Break(
        "a decoded text keeps the pieces' sign for a blank",
        PIECES,
        '"".join(pieces).replace("▁", " ").strip()',
        '"".join(pieces).strip()',
    ),
    Break(
        "a pair of texts for T5 has one end",
        PIECES,
        'pair="$A </s> $B </s>"',
        'pair="$A $B </s>"',
    ),
    Break(
        "one tokenizer.json stands for two vocabularies",
        PIECES,
        '"tokenizer.json" not in files or separate(settings_in(folder))',
        '"tokenizer.json" not in files',
    ),
    Break(
        "labels of a source are the target's pieces",
        TRACE,
        "_pieces(self._model.encoder, self.source)",
        "_pieces(self._model, self.source)",
    ),
    Break(
        "a source's text is read by the target's tokenizer",
        ARRAYS,
        "reader.tokenizer.batch(texts, reader.config, pad)",
        "self.tokenizer.batch(texts, reader.config, pad)",
    ),
    Break(
        "the package that cuts pieces is not among those that ids depend on",
        TEXT,
        '["sentencepiece"] if form == "pieces" else more',
        "more",
    ),
    Break(
        "a text for T5 may be no longer than those of its training",
        TEXT,
        "config.n_pos and T > config.n_ctx",
        "T > config.n_ctx",
    ),
    Break(
        "a download leaves the target's pieces behind",
        LOCAL,
        '"target.spm"',
        '"target.model"',
    ),
    Break(
        "a BartModel has no head",
        HELD_HEADS,
        '"Head|ForConditionalGeneration|MTModel|ForCausalLM|^BartModel"',
        '"Head|ForConditionalGeneration|MTModel|ForCausalLM"',
    ),
    Break(
        "beams are multiplied by a power of their length",
        BEAMS,
        "ranks = candidates.scores / length**width.length_penalty",
        "ranks = candidates.scores * length**width.length_penalty",
    ),
    Break(
        "open beams are ranked with another power of their length than finished ones",
        BEAMS,
        "rank = scores[:, 0] / length**width.length_penalty",
        "rank = scores[:, 0] / length",
    ),
    Break(
        "rows of the cache stay where they were when beams change places",
        BEAMS,
        "cache.take(np.ravel(first_rows + parents))",
        "cache.take(np.ravel(first_rows + np.arange(K)))",
    ),
    Break(
        "an end token ends no beam",
        BEAMS,
        "ends = is_last | (candidates.tokens[..., -1] == stop)",
        "ends = is_last | (candidates.tokens[..., -1] == -1)",
    ),
    Break(
        "any of the 2 K candidates may end",
        BEAMS,
        "np.arange(2 * K) < K",
        "np.arange(2 * K) < 2 * K",
    ),
    Break(
        "a text goes on until its length runs out",
        BEAMS,
        "beams.growing & (rank > worst)",
        "beams.growing & (rank < np.inf)",
    ),
    Break(
        "early stopping waits for nothing",
        BEAMS,
        "growing &= np.isneginf(worst)",
        "growing &= np.isneginf(beams.done_scores[:, 0])",
    ),
    Break(
        "all beams begin with the same token",
        BEAMS,
        "np.full((B, K), NEVER)",
        "np.zeros((B, K))",
    ),
    Break(
        "a beam reads another text's source",
        BEAMS,
        "cached[layer] = k[rows], v[rows]",
        "cached[layer] = k[rows[::-1]], v[rows[::-1]]",
    ),
    Break(
        "the forced last token comes behind the last",
        CONSTRAINTS,
        "forced[n - 1] = cfg.last_id",
        "forced[n] = cfg.last_id",
    ),
    Break(
        "a forced token costs as much as the model says",
        CONSTRAINTS,
        "y[:, self.forced[i]] = 0",
        "y[:, self.forced[i]] = -9",
    ),
    Break(
        "suppressed tokens come",
        CONSTRAINTS,
        "y[:, self.suppressed] = -np.inf",
        "y[:, self.suppressed] += 0",
    ),
    Break(
        "an end token that is a bad word never comes",
        CONSTRAINTS,
        "[token for [token] in cfg.bad_words if token != stop]",
        "[token for [token] in cfg.bad_words]",
    ),
    Break(
        "keys of the source are computed again at each step",
        MODEL,
        "w.index not in source.cached",
        "w.index >= 0",
    ),
    Break(
        "generation_config.json is not read",
        CHECKPOINT,
        "read_json(generation) if generation.is_file() else None",
        "None",
    ),
    Break(
        "a token that only config.json forces is forced beside a generation_config.json",
        GENERATION,
        "raw | dropped",
        "raw",
    ),
    Break(
        "a step's row is that of the token it says",
        DECODING,
        "asking, said = (ids[:-1], ids[1:])",
        "asking, said = (ids[1:], ids[1:])",
    ),
    Break(
        "one head's attention is the mean of a layer's",
        DECODING,
        "pattern.mean(axis=0)",
        "pattern[0]",
    ),
    Break(
        "steps whose piece is not in the source count as looking elsewhere",
        DECODING,
        "(strongest == own)[is_there].mean()",
        "(strongest == own).mean()",
    ),
    Break(
        "by chance a step looks at any piece that is there",
        DECODING,
        "same.mean(axis=1)[is_there].mean()",
        "same.any(axis=1)[is_there].mean()",
    ),
    Break(
        "a model that is shown does not count its encoder",
        SHOW,
        "model.encoder is not None",
        "False",
        where="model",
    ),
    Break(
        "computed positions can be written to",
        CHECKPOINT,
        'body["W_pos"].flags.writeable = False',
        "pass",
    ),
    Break(
        "a partial model needs a position table",
        CHECKPOINT,
        'partial and "W_pos" in family.body',
        "partial",
    ),
    Break(
        "a single stack does not say that a point is an encoder's",
        POINTS,
        "SOURCE if stack is None else point.needs",
        "point.needs",
    ),
    Break(
        "places are made up for pieces that say none",
        TEXT,
        "self.packages[1:]",
        "()",
    ),
    Break(
        "the encoder is read where the decoder is asked for",
        SIDES,
        'side == "encoder"',
        'side != "cross"',
    ),
    Break(
        "a decoder by itself runs texts",
        SIDES,
        "(*model.missing, SOURCE)",
        "model.missing",
    ),
    Break(
        "every experiment reads every side",
        SIDES,
        "side not in of(experiment)",
        "not side",
    ),
    Break(
        "a change of cross-attention is not named",
        RUN_SETTINGS,
        "cross is not None",
        "cross is None and arrays is None",
    ),
    Break(
        "a run goes on with other pairs",
        RUN_SETTINGS,
        "x.files is not None and values[x.name] in x.files",
        "x.files is not None and x.name != 'pairs' and values[x.name] in x.files",
    ),
    Break(
        "a target is read by the step that says it",
        DECODER_TEXTS,
        "np.array([model.config.start_id, *outputs[:-1]])",
        "np.array(outputs)",
    ),
    Break(
        "alignment is of the step that reads a token",
        ALIGNMENT,
        "strongest = pattern.argmax(axis=-1)",
        "strongest = np.roll(pattern.argmax(axis=-1), -1, axis=-1)",
    ),
    Break(
        "the null of the best head is that of a mean head",
        ALIGNMENT,
        "permuted[..., :-1].max(axis=(1, 2))",
        "permuted[..., :-1].mean(axis=(1, 2))",
    ),
    Break(
        "the null of alignment leaves the places in order",
        ALIGNMENT_MATHS,
        "rng.permuted(orders[:, is_own], axis=1)",
        "orders[:, is_own]",
    ),
    Break(
        "a decoder asks its source before it has looked at itself",
        PAGE_ATTENTION,
        '"resid_mid"',
        '"resid_pre"',
    ),
    Break(
        "even attention to a source is even over the target",
        ATTENTION_MAPS,
        "1 / len(said.source)",
        "1 / len(said.inputs)",
    ),
    Break(
        "words of a source are those of the target",
        WORDS,
        "_members(of_key)",
        "_members(word)",
    ),
    Break(
        "a model without a norm of its embedding is refused",
        INPUTS,
        "gain is None and cfg.sinusoids",
        "gain is None and cfg.rms_norm",
    ),
    Break(
        "a partial checkpoint needs a stored position table",
        CHECKPOINT,
        'partial and "W_pos" in family.body',
        "partial",
    ),
    Break(
        "any layer after order has arrived is the layer where it arrives",
        LESSON_09,
        "answer > first",
        "answer > 99",
    ),
    Break(
        "a mask whose dealt values do better passes as one by distance",
        LESSON_09,
        "loss >= random",
        "loss > 99",
    ),
    Break(
        "a change of queries and keys that is free may be left out",
        LESSON_10,
        "letter not in answer",
        "letter not in HINTS and not answer",
    ),
    Break(
        "a value that chance never gave has no share",
        LESSON_12,
        "high == 0",
        "high < 0",
    ),
    Break(
        "any number of queries and keys is free of axes",
        LESSON_12,
        "not np.isclose(own, turned)",
        "np.isnan(own)",
    ),
    Break(
        "two codes of 12 bits change places",
        PACKING,
        "pairs[:, 0] | pairs[:, 1] << 12",
        "pairs[:, 1] | pairs[:, 0] << 12",
    ),
    Break(
        "a causal model's guess is held against the token that it has read",
        OUTPUTS,
        "np.append(tokens[1:], -1)",
        "np.append(tokens[:-1], -1)",
    ),
    Break(
        "the logit lens reads a stream without its last norm",
        OUTPUTS,
        "probabilities(model, normed)",
        "probabilities(model, x)",
    ),
    Break(
        "the scale of a joint space moves keys by c, not c squared",
        JOINT_COSINE,
        "squares**power * column.sum(axis=-2)",
        "squares ** (power / 2) * column.sum(axis=-2)",
    ),
    Break(
        "a page shows keys that a mask hides",
        PAGE_ATTENTION,
        "visible & (heads[-1] > 0).any(axis=(0, 1))",
        "visible",
    ),
    Break(
        "axes of a layer outlive its keys",
        EXPLORE,
        "known and known[0]() is w.W_Q and known[1]() is w.W_K",
        "known and known[0]() is w.W_Q",
    ),
    Break(
        "a mask of the encoder is called by the name of the decoder's",
        MODEL,
        'user_mask(model.encoder.config, numbers, keys, mask, "enc_mask")',
        "mask",
    ),
    Break(
        "a mask of the source is called by the name of the decoder's",
        MODEL,
        "attention_bias(cfg, numbers, seen.keys, cross_mask, name='cross_mask')",
        "attention_bias(cfg, numbers, seen.keys, cross_mask)",
    ),
    Break(
        "a product of few rows is one large one",
        THREADS,
        "SMALL // rows.size",
        "SMALL * rows.size",
    ),
    Break(
        "shapes of a decoder's self-attention have the source's letter",
        SHAPES_EXPERIMENT,
        'axes.replace("S", "T")',
        "axes",
    ),
    Break(
        "shapes count the one-hot vectors of the target alone",
        SHAPES_EXPERIMENT,
        "len(tokens) * model.encoder.config.n_vocab",
        "0",
    ),
    Break(
        "a model of dates reads them although a text is named",
        "analysis/contract/own_texts.py",
        'if "text" not in given:\n    own["pairs"] = DATES',
        'own["pairs"] = DATES',
    ),
    Break(
        "a model of dates reads the sample",
        "analysis/contract/own_texts.py",
        "return own | given",
        "return given",
    ),
    Break(
        "NaN counts as equal to the reference",
        PARITY_COMPARE,
        "not row.share <= self.bound",
        "row.share > self.bound",
    ),
    Break(
        "a padded token counts in a comparison",
        PARITY_SAMPLED,
        "np.moveaxis(x, token, 1)[valid].reshape(-1)",
        "np.moveaxis(x, token, 1).reshape(-1)",
    ),
    Break(
        "rows of a comparison stand batch by batch",
        PARITY_COMPARE,
        "entry[:2]",
        "entry[1::-1]",
        "verify",
    ),
    Break(
        "only the first batch is compared",
        PARITY_COMPARE,
        "recorded.batches",
        "recorded.batches[:1]",
        "verify",
    ),
    Break(
        "a setting that differs is not said",
        PARITY_COMPARE,
        "sorted(set(unlike) - NO_MATTER)",
        "[]",
    ),
    Break(
        "verify ends well where a point differs",
        "analysis/commands/verify.py",
        "0 if outcome.agrees else 1",
        "0",
        "show_parity",
    ),
    Break(
        "a reference of another format is read",
        PARITY_REFERENCE,
        'about.get("format") != FORMAT',
        "False",
    ),
    Break(
        "the place of a difference counts padded tokens",
        PARITY_SAMPLED,
        "np.argwhere(valid)[row]",
        "np.argwhere(valid | True)[row]",
    ),
    Break(
        "weights that only one of two checkpoints has are not named",
        PARITY_MODELS,
        "ours.keys() ^ theirs.keys()",
        "()",
    ),
    Break(
        "the settings of a BERT's tokenizer do not count beside a tokenizer.json",
        TOKENIZER_SETTINGS,
        'settings.get("do_lower_case", True)',
        "tokenizer.normalizer.lowercase",
    ),
    Break(
        "add_prefix_space is not read",
        TOKENIZER_SETTINGS,
        'tokenizer.pre_tokenizer.add_prefix_space = settings.get("add_prefix_space", False)',
        "pass",
    ),
    Break(
        "added_tokens.json is not read",
        TOKENIZER_SETTINGS,
        '_object(folder / "added_tokens.json")',
        "{}",
    ),
    Break(
        "an added token may have another id than its folder says",
        TOKENIZER_SETTINGS,
        "tokenizer.token_to_id(text) != number",
        "False",
    ),
    Break(
        "add_bos_token is not read",
        TOKENIZER_SETTINGS,
        'settings.get(f"add_{key}")',
        "False",
    ),
    Break(
        "a panic of the tokenizers package goes through",
        TEXT,
        'not isinstance(error, Exception) and type(error).__name__ != "PanicException"',
        "not isinstance(error, Exception)",
    ),
    Break(
        "a byte order mark is part of the first token of a vocabulary",
        TEXT,
        'vocab.startswith("\ufeff")',
        "False",
    ),
    Break(
        "a pipe is taken for a file of a tokenizer",
        FILES,
        "{file.name for file in folder.iterdir() if file.is_file()}",
        "{file.name for file in folder.iterdir()}",
    ),
    Break(
        "a flag of a config may be anything",
        FAMILIES,
        "isinstance(key.default, bool) and not isinstance(raw.get(key.name), bool | None)",
        "False",
    ),
    Break(
        "a line of a text is read to its end, however long",
        STORAGE,
        "file.readline(LONGEST + 1)",
        "file.readline()",
    ),
    Break(
        "half of a character in a .jsonl file is a text",
        FORMATS,
        'valid(value, f"{where}: {name!r}")',
        "pass",
    ),
    Break(
        "a name or value of a folder stands in an error with its line ends",
        FILES,
        "c if c.isprintable() else ascii(c)[1:-1]",
        "c",
    ),
    Break(
        "what is long stands in an error as it is",
        FILES,
        "text[:longest]",
        "text",
    ),
    Break(
        "weights that overflow are not named",
        "minitx/finite.py",
        "size > LARGEST",
        "False",
    ),
    Break(
        "a hub sends as many bytes as it likes",
        TRUST,
        "self.file.tell() + len(data) > self.most",
        "False",
    ),
    Break(
        "a listing may promise more than the disk holds",
        TRUST,
        "size > free",
        "False",
    ),
    Break(
        "an answer that no hub gives is a traceback",
        FETCH,
        "isinstance(error, (ValueError, OSError, RuntimeError, MemoryError))",
        "True",
    ),
    Break("a record may have any form", LOCAL, "_check_record(record, repo)", "pass"),
    Break("a revision may leave the cache", LOCAL, '".." in str(revision)', "False"),
    Break(
        "a file that nobody recorded passes the check of hashes",
        LOCAL,
        "recorded and verify",
        "False",
    ),
    Break(
        "a stream that overflows gives finite, wrong numbers",
        "minitx/arrays.py",
        "np.minimum.reduce(scale, axis=None) > 0",
        "True",
    ),
    Break(
        "control characters stand in a figure",
        "analysis/drawing/draw.py",
        'NO_XML.sub("\ufffd", text)',
        "text",
    ),
    Break(
        "one link to nothing hides a folder of texts",
        STORAGE,
        "[str(path) for path in paths if not path.is_file()] if len(paths) > 1 else []",
        "[]",
    ),
    Break(
        "each token's class is read from the first token",
        TASK_HEADS,
        'Head("B T C", "the class of each token", "ForTokenClassification")',
        'Head("B C", "the class of each token", "ForTokenClassification")',
    ),
    Break(
        "an answer has any number of ends",
        CHECKPOINT,
        "HEADS[config.task_head].n_classes or array.shape[-1]",
        "array.shape[-1]",
    ),
    Break(
        "another head than was asked for",
        HELD_HEADS,
        "head not in held",
        "False",
    ),
    Break(
        "T5's classes are read from a stream made smaller",
        HELD_HEADS,
        "replace(config, head_act=act, unembed_scale=1.0, logit_cap=0.0)",
        "replace(config, head_act=act, logit_cap=0.0)",
    ),
    Break(
        "ELECTRA's discriminator has the activation of its classifier",
        HELD_HEADS,
        "family.sequence_act if HEADS[head].is_pooled else None",
        "family.sequence_act",
    ),
    Break(
        "ELECTRA classifies with tanh",
        ELECTRA,
        'sequence_act="gelu"',
        'sequence_act="tanh"',
    ),
    Break(
        "next sentences are guessed by the classifier",
        BERT,
        'dense("U", "cls.seq_relationship")',
        'dense("U", "classifier")',
    ),
    Break(
        "MPNet's last bucket begins at 64",
        MPNET,
        '"max_distance": 128',
        '"max_distance": 64',
    ),
    Break(
        "MPNet's positions begin behind the padding id of its config",
        MPNET,
        '"no_position_id": PAD',
        '"no_position_id": None',
    ),
    Break(
        "positions given to MPNet move its bias too",
        DISTANCES,
        "positions is not None and not cfg.n_pos",
        "positions is not None",
    ),
    Break(
        "a table of zeros takes all positions from MPNet",
        LAYER_INPUTS,
        "cfg.n_pos and cfg.n_buckets",
        "False",
    ),
    Break(
        "an ELECTRA with narrow embeddings is not refused by name",
        REFUSED,
        "(sizes[0] or unsaid or sizes[1]) != sizes[1]",
        "False",
    ),
    Break(
        "a model type that does not load has no reason",
        FAMILIES,
        "text + refused.reason(model_type)",
        "text",
    ),
    Break(
        "the cost of logits over classes is that of words",
        COST,
        'sizes[""] | {"C": model.weights.W_U.shape[1]}',
        'sizes[""] | {"C": model.config.n_vocab}',
    ),
    Break(
        "a head without a distribution is called one",
        SHAPES_EXPERIMENT,
        "cfg.task_head in MEANS",
        "cfg.task_head",
    ),
    Break(
        "a source has no end token where its class is read",
        "analysis/parity/batches.py",
        "[*(token for token in row[:-1] if token != end_id), end_id]",
        "[*row]",
    ),
    Break(
        "pages of every name are served here",
        GUARD,
        "hosts[0].lower() not in self.hosts",
        "not hosts[0]",
    ),
    Break(
        "the second of two Hosts is not looked at",
        GUARD,
        "len(hosts) != 1",
        "not hosts",
    ),
    Break(
        "pages from anywhere may ask the live page",
        GUARD,
        "origin.lower() not in wanted",
        "not origin",
    ),
    Break(
        "what another site embeds is sent to it",
        GUARD,
        'headers.get("sec-fetch-mode") != "navigate"',
        'headers.get("sec-fetch-mode") == "navigate"',
    ),
    Break(
        "a form of another site may ask the live page",
        GUARD,
        'kind != "application/json"',
        'kind == "application/xml"',
    ),
    Break(
        "a request of any size is read",
        GUARD,
        "len(body) > BODY",
        "len(body) > 1000 * BODY",
    ),
    Break(
        "a request may take for ever to arrive",
        GUARD,
        "anyio.fail_after(SECONDS)",
        "anyio.fail_after(None)",
    ),
    Break(
        "the live page may ask any server",
        GUARD,
        '{"connect-src": "\'self\'"}',
        '{"connect-src": "*"}',
    ),
    Break(
        "the headers that keep a page to itself are left out",
        GUARD,
        "MutableHeaders(scope=message).update(self.headers)",
        "MutableHeaders(scope=message).update({})",
    ),
    Break(
        "the live page is listened for on every network",
        LIVE_SERVER,
        "socket.create_server((HOST, port))",
        'socket.create_server(("0.0.0.0", port))',
    ),
    Break(
        "an error inside is told to whoever asked",
        LIVE_SERVER,
        'failed(500, "minitx failed here; the terminal says how")',
        "failed(500, error)",
    ),
    Break(
        "a running request is not dropped for a newer one",
        TURNS,
        "self.newest.get(page) is not request",
        "self.newest.get(page) is None",
    ),
    Break(
        "an older request waits for its turn in vain",
        TURNS,
        "older is not None and not older.done()",
        "older is not None and older.done()",
    ),
    Break(
        "as many pages wait as like to",
        TURNS,
        "len(self.waiting) >= WAITING",
        "len(self.waiting) >= 100 * WAITING",
    ),
    Break(
        "a text of any length is read",
        LIVE_REQUESTS,
        "len(text) > LONGEST",
        "len(text) > 100 * LONGEST",
    ),
    Break(
        "every run is kept",
        LIVE_RUNS,
        "lru_cache(kept)(self._run)",
        "lru_cache(None)(self._run)",
    ),
    Break(
        "a saved page is that of the changed model alone",
        LIVE_RUNS,
        '{"as is": request.as_is}',
        "{}",
    ),
    Break(
        "the dial turns the other way",
        LIVE_DIAL,
        "np.roll(grid, (-changes.dial_down, -changes.dial), axis=(0, 1))",
        "np.roll(grid, (-changes.dial_down, changes.dial), axis=(0, 1))",
    ),
    Break(
        "patches are dialled up where down is asked for",
        LIVE_DIAL,
        "np.roll(grid, (-changes.dial_down, -changes.dial), axis=(0, 1))",
        "np.roll(grid, (changes.dial_down, -changes.dial), axis=(0, 1))",
    ),
    Break(
        "shuffled positions stay in order",
        "analysis/live/positions.py",
        "np.random.default_rng(changes.seed).permutation(own)",
        "own",
    ),
    Break(
        "a layer that is off still has its MLP",
        LIVE_OFF,
        '"": ("attn_out", "mlp_out")',
        '"": ("attn_out",)',
    ),
    Break(
        "the null of shuffled positions is the same shuffle",
        CHANGES,
        "(self.seed + 1) % SEED",
        "self.seed",
    ),
    Break(
        "the Python of a mask leaves its family's parameters out",
        "analysis/live/mask.py",
        '"".join(f", {value!r}" for value in mask.values)',
        '""',
    ),
    Break(
        "attention may take less work than the MLP where the two are to be equal",
        LESSON_01,
        "answer != M",
        "answer > M",
    ),
    Break(
        "five even weights have an effective number of 2",
        LESSON_02,
        "number > 2.05",
        "number > 9",
    ),
    Break(
        "any two heads have columns 5 and 40",
        LESSON_03,
        "heads != {0, 1}",
        "len(heads) != 2",
    ),
    Break(
        "what a head compares has any rank up to its width",
        LESSON_04,
        "answer != D_HEAD",
        "answer > D_HEAD",
    ),
    Break(
        "any array of the right shape is the right answer",
        LESSON_ARRAYS,
        "ROUNDING * np.abs(y).max()",
        "np.abs(y).max() / ROUNDING",
    ),
    Break(
        "lesson 5 takes any weights that end at the last letter",
        LESSON_05,
        "weights[-1] != 1",
        "weights[-1] == 0",
    ),
    Break(
        "lesson 6 does not know rows without a cache",
        LESSON_06,
        "without != sum(range(1, STEPS + 1))",
        "without < STEPS",
    ),
    Break(
        "lesson 7 takes a turned matrix the wrong way round",
        LESSON_07,
        "not np.allclose(points @ R, wanted, atol=1e-3)",
        "False",
    ),
    Break(
        "lesson 8 takes the offset of moved keys for that of moved queries",
        LESSON_08,
        "answer == -3",
        "False",
    ),
    Break(
        "a value is called where a function was wanted",
        LESSON_ARRAYS,
        "not callable(answer)",
        "answer is None",
    ),
    Break(
        "a translation with fewer cells of code is filled",
        "lessons/notebook.py",
        "len(code) != len(places)",
        "len(code) < len(places)",
    ),
    Break(
        "a translation may have code of its own",
        "lessons/notebook.py",
        "raise ValueError(f'a cell of code in the translation is not empty: {place.source!r}')",
        "pass",
    ),
    Break(
        "a page built before the lesson was changed is opened",
        "lessons/command.py",
        "built.stat().st_mtime > max(x.stat().st_mtime for x in sources)",
        "bool(sources)",
    ),
    Break(
        "a page is built without its packages",
        "lessons/build.py",
        "find_spec(name) is None",
        "find_spec(name) is False",
    ),
    Break(
        "a link to a name that a page lacks is let pass",
        "docs/links.py",
        "unquote(name) not in pages[target].names",
        "name is None",
    ),
    Break(
        "a page may load what lies outside",
        "docs/links.py",
        "parts.scheme or parts.netloc",
        "not parts.scheme and parts.netloc",
    ),
    Break(
        "style sheets are not looked at",
        "docs/links.py",
        "yield f'{path.relative_to(folder)}: {load}: {wrong}'",
        "pass",
    ),
    Break(
        "results of other code are kept",
        "docs/cache.py",
        "json.dumps([sources(what[0]), what], sort_keys=True)",
        "json.dumps(what, sort_keys=True)",
    ),
    Break(
        "a translation is executed again",
        "docs/notebooks.py",
        "self.original or self.place",
        "self.place",
    ),
    Break(
        "a page of the gallery leaves out what chance gives",
        "docs/gallery.py",
        "escape(wording.words(number['null']))",
        "''",
    ),
    Break(
        "a failing cell lets the documentation be built",
        "docs/build.py",
        "failed = True",
        "failed = False",
    ),
    Break(
        "the kernel of turned vectors runs the other way",
        "analysis/maths/positional_kernel.py",
        "np.exp(-1j * phase)",
        "np.exp(1j * phase)",
    ),
    Break(
        "pairs prefer the lag on the other side",
        "analysis/maths/positional_kernel.py",
        "np.angle(c) / np.asarray(frequencies)",
        "-np.angle(c) / np.asarray(frequencies)",
    ),
    Break(
        "features that are not turned are left out of the kernel",
        "analysis/maths/positional_kernel.py",
        "turned + still[..., None]",
        "turned",
    ),
    Break(
        "ALiBi's kernel rises with the distance",
        "analysis/measures/mean_kernel.py",
        "-np.multiply.outer(distances.slopes(cfg.n_heads), abs(lags))",
        "np.multiply.outer(distances.slopes(cfg.n_heads), abs(lags))",
    ),
    Break(
        "mean queries and keys are put in after the turn",
        "analysis/measures/mean_kernel.py",
        "('q_in', 'k_in') if model.config.rotary else ('q', 'k')",
        "('q', 'k')",
    ),
    Break(
        "the zoo is not found by its names",
        "weights/local.py",
        "BUNDLED / name if str(name) in own else home(name)",
        "BUNDLED / name if str(name) in bundled() else home(name)",
    ),
    Break(
        "rotary pairs are neighbours",
        POSITIONS,
        "x[..., :r]",
        "x[..., 0 : 2 * r : 2]",
        where="turned",
    ),
    Break(
        "rotary pairs turn the other way",
        POSITIONS,
        "first * cos - second * sin",
        "first * cos + second * sin",
    ),
    Break(
        "frequencies fall by another width",
        POSITIONS,
        "base ** (-two_i / width)",
        "base ** (-two_i / (width + 2))",
    ),
    Break(
        "angles begin at one",
        POSITIONS,
        "np.multiply.outer(frequencies, numbers)",
        "np.multiply.outer(frequencies, numbers + 1)",
    ),
    Break(
        "YaRN's factor on what is turned is left out",
        POSITIONS,
        "rotary.scale",
        "1.0",
    ),
    Break(
        "keys are not turned",
        MODEL,
        "placed('k', next(products), w, cfg, hook, turn)",
        "placed('k', next(products), w, cfg, hook)",
    ),
    Break(
        "queries are not turned",
        MODEL,
        "placed('q', next(products), w, cfg, hook, turn)",
        "placed('q', next(products), w, cfg, hook)",
    ),
    Break(
        "an edit of the angles is lost",
        MODEL,
        'hook("pos_angle", place.angle)',
        '(hook("pos_angle", place.angle), place.angle)[1]',
    ),
    Break(
        "queries before the turn are those after it",
        MODEL,
        'turn(hook(f"{name}_in", x))',
        'hook(f"{name}_in", turn(x))',
    ),
    Break(
        "norms of queries and keys come after the turn",
        MODEL,
        'if cfg.qk_norm:\n    x = norm(f"ln_{name}", x, w, cfg, hook)\nif turn is not None:\n    x = turn(hook(f"{name}_in", x))',
        'if turn is not None:\n    x = turn(hook(f"{name}_in", x))\nif cfg.qk_norm:\n    x = norm(f"ln_{name}", x, w, cfg, hook)',
    ),
    Break(
        "heads that share keys take turns",
        "minitx/kernels.py",
        "x.reshape(len(x), G, -1, *x.shape[2:])",
        "x.reshape(len(x), -1, G, *x.shape[2:]).swapaxes(1, 2)",
    ),
    Break(
        "attention and MLP of GPT-NeoX come one after the other",
        MODEL,
        'feed_forward(norm("ln2", x, w, cfg, hook))',
        'feed_forward(norm("ln2", x + attended, w, cfg, hook))',
    ),
    Break(
        "BLOOM never adds to the normed stream", MODEL, "normed if cfg.norm_residual else x", "x"
    ),
    Break(
        "the bias of a gate is left out",
        MODEL,
        "linear(x, w.W_gate, w.b_gate)",
        "linear(x, w.W_gate)",
    ),
    Break("a window sees one key more", FAMILY_MISTRAL, "window - 1", "window"),
    Break(
        "a window has no end to the right",
        VISIBLE,
        "abs(key_column - query_column) <= window",
        "query_column - key_column <= window",
    ),
    Break(
        "over a cache a window begins at the first token",
        VISIBLE,
        "np.arange(S - T, S)[:, None]",
        "np.arange(T)[:, None]",
    ),
    Break(
        "all layers have the first one's window",
        POSITIONS,
        "cfg.windows or everywhere",
        "cfg.windows[:1] * cfg.n_layers or everywhere",
    ),
    Break(
        "all layers have the first one's frequencies",
        POSITIONS,
        "cfg.rotary or everywhere",
        "cfg.rotary[:1] * cfg.n_layers or everywhere",
    ),
    Break(
        "positions that are given turn nothing",
        POSITIONS,
        "numbers = check_positions(positions, numbers.shape)",
        "check_positions(positions, numbers.shape)",
    ),
    Break(
        "ALiBi grows with the distance",
        DISTANCES,
        "-slope * distance[:, None]",
        "slope * distance[:, None]",
    ),
    Break(
        "slopes of other heads follow those of a power of two", DISTANCES, "i + 0.5", "i + n + 1"
    ),
    Break("ALiBi of one text serves all", DISTANCES, "(places == places[:1]).all()", "True"),
    Break(
        "llama3 slows what turns fast",
        ROTARY,
        "(turns - low) / (high - low)",
        "(high - turns) / (high - low)",
    ),
    Break(
        "linear scaling makes angles faster",
        ROTARY,
        'omega / given["factor"], 1.0',
        'omega * given["factor"], 1.0',
    ),
    Break(
        "YaRN's range is not rounded", ROTARY, "math.floor(first), math.ceil(last)", "first, last"
    ),
    Break(
        "YaRN's mscale is not read", ROTARY, 'given["mscale"] and given["mscale_all_dim"]', "False"
    ),
    Break(
        "a rotary parameter that is not computed is let through",
        ROTARY,
        "name not in ALWAYS and name not in needed and name not in others",
        "False",
    ),
    Break(
        "an unknown kind of rotary positions is the plain one",
        ROTARY,
        "raise ValueError(f\"rope_type is {kind!r:.80}; supported: {', '.join(KINDS)}\")",
        'kind = "default"',
    ),
    Break(
        "a scaling in an old file is not read",
        LLAMA,
        'raw.get("rope_scaling") or raw.get("rope_parameters") or {}',
        'raw.get("rope_parameters") or {}',
    ),
    Break(
        "Llama is tied where its config says nothing",
        LLAMA,
        'Key("tie_word_embeddings", False)',
        'Key("tie_word_embeddings", True)',
    ),
    Break(
        "a LlamaForCausalLM that is tied has no head",
        HELD_HEADS,
        '"Head|ForConditionalGeneration|MTModel|ForCausalLM|^BartModel"',
        '"Head|ForConditionalGeneration|MTModel|^BartModel"',
    ),
    Break(
        "each head's query, key and value are taken for all queries, all keys, all values",
        FAMILY_RECORDS,
        "cfg.n_heads, (1, 1, 1)",
        "1, (1, 1, 1)",
    ),
    Break(
        "copies of fused matrices can be written to",
        MAPPED,
        "own.flags.writeable = x.flags.writeable",
        "pass",
    ),
    Break(
        "GPT-NeoX turns the whole of each head",
        NEOX,
        'llama.part_turned(share, values | {"d_kv": 0})',
        'llama.width(values | {"d_kv": 0})',
    ),
    Break(
        "the base of an old GPT-NeoX is not read",
        NEOX,
        'raw.get("rotary_emb_base", given["rope_theta"])',
        'given["rope_theta"]',
    ),
    Break(
        "ModernBERT's activation is on the second half",
        MODERN,
        'part("gate", "mlp.Wi", 0, by_half, bias_only="mlp_bias")',
        'part("gate", "mlp.Wi", 1, by_half, bias_only="mlp_bias")',
    ),
    Break("ModernBERT's window is as wide to each side", MODERN, "near // 2", "near"),
    Break(
        "layers of both kinds have the base of those that see all",
        MODERN,
        "parameters(raw, kind)",
        "parameters(raw, FULL)",
    ),
    Break(
        "a mean over a text counts its padding",
        TASK_HEADS,
        "valid / valid.sum(axis=1, keepdims=True)",
        "np.ones((B, T)) / T",
    ),
    Break(
        "a norm that a layer lacks has numbers",
        POINTS,
        'not (is_lacking and number in ("mean", "scale"))',
        "True",
    ),
    Break("the cost of a trace forgets shared keys", COST, '"G": cfg.n_kv', '"G": cfg.n_heads'),
    Break("a file of JSON may be of any size", FILES, "size > LONGEST", "False"),
    Break(
        "converted weights keep the file in memory",
        FILES,
        "not np.may_share_memory(array, raw)",
        "False",
    ),
    Break(
        "a missing tensor is named as nobody's file has it",
        CHECKPOINT,
        "[self.in_file[near] for near in difflib.get_close_matches(name, self.tensors, 3)]",
        "difflib.get_close_matches(name, self.tensors, 3)",
    ),
    Break(
        "numbers beyond float32 become infinite with a warning",
        FILES,
        'np.errstate(over="raise", invalid="ignore")',
        'np.errstate(invalid="ignore")',
    ),
    Break(
        "a vocabulary may be of any size",
        TEXT,
        "for name in names_in(folder) & FILES:\n    check_length(folder / name)",
        "pass",
    ),
    Break(
        "a partial checkpoint is asked for any layer",
        FAMILIES_CHECK,
        'values["n_layers"] > MOST_LAYERS',
        "False",
    ),
    Break(
        "tensors without use are named as nobody's file has them",
        CHECKPOINT,
        "listing(self.in_file[name] for name in inside)",
        "listing(inside)",
    ),
    Break("half an id may fill up a batch", FAMILIES_CHECK, "type(cfg.pad_id) is not int", "False"),
    Break(
        "the norm of a head overflows in silence",
        MODEL,
        'norm("ln_head", x, w, cfg, identity)',
        "normalise(x, *mean_and_inverse_std(x, cfg.eps), w.ln_head_w, w.ln_head_b)",
    ),
    Break(
        "an interrupt leaves the fuzzer's processes",
        "tests/tools/fuzz.py",
        "os.killpg(worker.pid, signal.SIGKILL)",
        "pass",
    ),
    Break(
        "the gradient of a table adds nothing up",
        "minitx/derivatives.py",
        "np.add.reduceat(rows_of(dy)[order], starts)",
        "rows_of(dy)[order][starts]",
    ),
    Break(
        "the gradient of a table is not in the order of its rows",
        "minitx/derivatives.py",
        "rows_of(dy)[order]",
        "rows_of(dy)",
    ),
    Break(
        "the mean of a norm gets its gradient without the scale",
        "minitx/derivatives.py",
        "-scale * total",
        "-total",
    ),
    Break(
        "a norm's scale forgets that the mean is taken off",
        "minitx/derivatives.py",
        "np.einsum('...d,...d->...', dx, x) - total * mean",
        "np.einsum('...d,...d->...', dx, x)",
    ),
    Break(
        "a factor of two in the norm's way back",
        "minitx/derivatives.py",
        "-d_scale * scale * scale * scale / D",
        "-2 * d_scale * scale * scale * scale / D",
    ),
    Break(
        "the norm's way back forgets the mean's share",
        "minitx/derivatives.py",
        "d_mean / D - by_variance * mean",
        "-by_variance * mean",
    ),
    Break(
        "the norm's variance moves the mean",
        "minitx/derivatives.py",
        "d_mean / D - by_variance * mean",
        "d_mean / D",
    ),
    Break(
        "the gain of a norm is learned from what was not centred",
        "minitx/derivatives.py",
        "x - mean[..., None]",
        "x",
    ),
    Break(
        "RMSNorm's way back has the scale squared",
        "minitx/derivatives.py",
        "-d_scale * scale * scale * scale / x.shape[-1]",
        "-d_scale * scale * scale / x.shape[-1]",
    ),
    Break(
        "softmax hands back what the others do not get",
        "minitx/derivatives.py",
        "dy - along[..., None]",
        "dy",
    ),
    Break(
        "GELU's slope forgets the density",
        "minitx/derivatives.py",
        "0.5 * (1.0 + erf(x * 0.5**0.5)) + x * density(x)",
        "0.5 * (1.0 + erf(x * 0.5**0.5))",
    ),
    Break(
        "GELU's slope forgets it in float32",
        "minitx/derivatives.py",
        "0.5 * (1.0 + np.tanh(x * r)) + x * density(x)",
        "0.5 * (1.0 + np.tanh(x * r))",
    ),
    Break(
        "the slope of GPT-2's GELU forgets the cube",
        "minitx/derivatives.py",
        "1.0 + 3 * 0.044715 * square",
        "1.0 + 0.044715 * square",
    ),
    Break(
        "the slope of a sigmoid gate forgets its own slope",
        "minitx/derivatives.py",
        "s + slope * x * s * (1.0 - s)",
        "s + x * s * (1.0 - s)",
    ),
    Break(
        "the slope of tanh is its value",
        "minitx/derivatives.py",
        "1.0 - y * y",
        "y",
    ),
    Break(
        "the target is not taken off",
        "minitx/derivatives.py",
        "p[row, targets] -= 1.0",
        "pass",
    ),
    Break(
        "the loss forgets the largest score",
        "minitx/derivatives.py",
        "y[row, targets] - largest[:, 0]",
        "y[row, targets]",
    ),
    Break(
        "an addition hands its gradient to one part",
        "minitx/backward.py",
        "dx + norm_back(writer.norm, d_normed, x, back)",
        "norm_back(writer.norm, d_normed, x, back)",
    ),
    Break(
        "after a norm an addition hands its gradient to one part",
        "minitx/backward.py",
        "dx + writer.back(dx, x, back)",
        "writer.back(dx, x, back)",
    ),
    Break(
        "the gate gets what the other factor should",
        "minitx/backward.py",
        "d_post * back.value('pre_linear')",
        "d_post * active",
    ),
    Break(
        "the stream is not read as values",
        "minitx/backward.py",
        "linear_back('V', join_heads(dv), x, back)",
        "linear_back('V', 0 * join_heads(dv), x, back)",
    ),
    Break(
        "queries get the gradient without the scale",
        "minitx/backward.py",
        "matmul_heads(d_product, k * scale)",
        "matmul_heads(d_product, k)",
    ),
    Break(
        "keys get the gradient without the scale",
        "minitx/backward.py",
        "matmul_heads(d_product.swapaxes(-1, -2), q * scale)",
        "matmul_heads(d_product.swapaxes(-1, -2), q)",
    ),
    Break(
        "the encoder is not told by the values",
        "minitx/backward.py",
        "back.of_stack().add('source', linear_back('V', join_heads(dv), source, cross))",
        "linear_back('V', join_heads(dv), source, cross)",
    ),
    Break(
        "words get the gradient without the embedding's factor",
        "minitx/backward.py",
        "by_rows['embed'] * back.cfg.embed_scale",
        "by_rows['embed']",
    ),
    Break(
        "the output embedding gets the gradient without its factor",
        "minitx/gradients.py",
        "linear_back('U', d_product, unembedded, back) * cfg.unembed_scale",
        "linear_back('U', d_product, unembedded, back)",
    ),
    Break(
        "the bias of distances is one text's",
        "minitx/backward_distances.py",
        "d_scores.sum(axis=0, keepdims=True)",
        "d_scores[:1]",
    ),
    Break(
        "an edited point lets the gradient through",
        "minitx/tape.py",
        "key in self.edited",
        "False",
    ),
    Break(
        "the parts of a gradient are not added",
        "minitx/tape.py",
        "self.kept[owner] + dW",
        "dW",
    ),
    Break(
        "the loss is a sum",
        "minitx/gradients.py",
        "dy /= n",
        "pass",
    ),
    Break(
        "a backward pass stops a layer early",
        "minitx/tape.py",
        "return key[1] if in_encoder == bool(self.prefix) else NOWHERE",
        "return key[1] + 1 if in_encoder == bool(self.prefix) else NOWHERE",
    ),
    Break(
        "the encoder is not walked",
        "minitx/tape.py",
        "in_encoder and (not self.prefix)",
        "False",
    ),
    Break(
        "a tied output embedding has its own gradient",
        "minitx/parameters.py",
        "np.array_equal(named.get(key, ()), other)",
        "False",
    ),
    Break(
        "a model that may be written shares the sound one's arrays",
        "minitx/parameters.py",
        "named[key].copy(order='K')",
        "named[key]",
    ),
    Break(
        "AdamW forgets that the mean of squares began at 0",
        "minitx/training/adamw.py",
        "math.sqrt(1 - b2 ** self.steps)",
        "1.0",
    ),
    Break(
        "AdamW adds eps before the root",
        "minitx/training/adamw.py",
        "root = np.sqrt(v, out=work)",
        "root = np.sqrt(v + self.eps, out=work)",
    ),
    Break(
        "biases shrink as matrices do",
        "minitx/training/adamw.py",
        "x.ndim > 1",
        "x.ndim > 0",
    ),
    Break(
        "the rate falls in a line",
        "minitx/training/adamw.py",
        "rate * 0.5 * (1 + math.cos(math.pi * done))",
        "rate * (1 - done)",
    ),
    Break(
        "gradients are cut to a norm that is not that of all",
        "minitx/training/adamw.py",
        "math.sqrt(sum(squares))",
        "math.sqrt(max(squares))",
    ),
    Break(
        "an output embedding that a file holds twice learns apart",
        "analysis/tuning/tensors.py",
        "tensors[name] = tensors[held[0]]",
        "pass",
    ),
    Break(
        "hidden words are those that do not count",
        "analysis/tuning/batches.py",
        "targets[is_told] = tokens[is_told]",
        "targets[~is_told] = tokens[~is_told]",
    ),
    Break(
        "a causal model learns the word that it reads",
        "analysis/tuning/batches.py",
        "targets[:, :-1] = tokens[:, 1:]",
        "targets[:, :-1] = tokens[:, :-1]",
    ),
    Break(
        "both orders of a text fall on two sides",
        "analysis/tuning/batches.py",
        "self.groups = np.arange(len(self.rows)) // 2",
        "self.groups = np.arange(len(self.rows))",
    ),
    Break(
        "documents come in the same order each time",
        "analysis/tuning/batches.py",
        "np.random.default_rng((seed, n, k))",
        "np.random.default_rng((seed, n))",
    ),
    Break(
        "a gradient that is no number is let through",
        "analysis/tuning/training.py",
        "not np.isfinite(grads.loss) or wrong",
        "not np.isfinite(grads.loss)",
    ),
    Break(
        "a state lacks the running mean of squares",
        "analysis/tuning/state.py",
        "('first', 'second')",
        "('first',)",
    ),
    Break(
        "a state of other settings is taken",
        "analysis/tuning/state.py",
        "self.same(record['settings'])",
        "pass",
    ),
    Break(
        "padding's rows of a new table are drawn",
        "analysis/tuning/tune.py",
        "table[:config.offset] = 0",
        "pass",
    ),
    Break(
        "a table at zero learns",
        "analysis/tuning/tune.py",
        "del learned[key]",
        "pass",
    ),
    Break(
        "fillers are to be told",
        "analysis/experiments/_relearn_table.py",
        "is_told[:, self.words] = draws",
        "is_told[:, self.words + 1] = draws",
    ),
    Break(
        "attention to the right is read to the left",
        "analysis/experiments/_relearn_table.py",
        "keys = queries + offset",
        "keys = queries - offset",
    ),
    Break(
        "a table learned anew begins at the old one",
        "analysis/experiments/_relearn_table.py",
        "table[...] = FRESH * drawn",
        "pass",
    ),
    Break(
        "the old table of relearn is the learned one",
        "analysis/experiments/relearn.py",
        "'kept': model.weights.W_pos",
        "'kept': table",
    ),
    Break(
        "the path of integrated gradients stops half way",
        "analysis/measures/attributions.py",
        "(roots + 1) / 2",
        "(roots + 1) / 4",
    ),
    Break(
        "gradients of a batch of paths are those of its mean",
        "analysis/measures/attributions.py",
        "-B * grads[key].astype(np.float64)",
        "-grads[key].astype(np.float64)",
    ),
    Break(
        "gradient times input forgets the input",
        "analysis/measures/attributions.py",
        "at_end[key][0] * difference[key]",
        "at_end[key][0]",
    ),
    Break(
        "a head is ablated in no layer",
        "analysis/measures/attributions.py",
        "rows[np.arange(len(z)), np.arange(len(z))] = 0",
        "pass",
    ),
    Break(
        "the null of attribution has the model's weights",
        "analysis/experiments/attribution.py",
        "measure(random, wanted)",
        "measure(model, wanted)",
    ),
    Break(
        "an interrupt while a helper starts is lost",
        THREADS,
        "with kept():\n    helper.start()",
        "helper.start()",
    ),
    Break(
        "an interrupt while documents are begun is another error",
        INTERRUPT,
        "isinstance(error.__context__, KeyboardInterrupt)",
        "False",
    ),
    Break(
        "a full disk takes the results of an earlier run",
        RESULTS,
        "before=partial(self._remove_old, out, format)",
        "before=(self._remove_old(out, format), lambda: None)[1]",
    ),
    Break("a full disk does not say how much was wanted", WRITTEN, "error.errno in FULL", "False"),
    Break(
        "a folder that is gone is a file that is missing",
        WRITTEN,
        "not path.parent.is_dir()",
        "False",
    ),
    Break(
        "a file that cannot be renamed is passed over in silence",
        WRITTEN,
        "_explained(path)",
        "suppress(OSError)",
    ),
    Break("what could not be written whole stays", WRITTEN, "draft.unlink()", "pass"),
    Break(
        "what a killed run was writing stays", STREAM, "f'.{self.name}.*.tmp'", "f'.{self.name}.x'"
    ),
    Break(
        "a Japanese page opens folded cells in English",
        "lessons/notebook.py",
        "language in FOLDED",
        "False",
    ),
    Break(
        "a sample depends on nothing but its numbers' order",
        SAMPLING,
        "_mix(start + np.asarray(numbers, np.uint64) * np.uint64(GOLDEN))",
        "np.asarray(numbers, np.uint64)",
    ),
    Break(
        "a sample takes the document after the one that was drawn",
        SAMPLING,
        "(self.numbers[self.done : end] - first).tolist()",
        "(self.numbers[self.done : end] - first + 1).tolist()",
    ),
    Break(
        "a sample of a text that changed is drawn from the old number of documents",
        STORAGE,
        "(str(path), state.st_size, state.st_mtime_ns)",
        "(str(path),)",
    ),
    Break(
        "a damaged packed file is an error without its name",
        COMPRESSION,
        "(*damage, zstd.ZstdError)",
        "damage",
    ),
    Break(
        "a password in a URL is written into results",
        REMOTE,
        "re.search(r'://[^/@]*:[^/@]*@', place)",
        "False",
    ),
    Break(
        "a pickled set of documents takes its temporary file along",
        CORPUS,
        "vars(self) | {'spool': None}",
        "vars(self)",
    ),
    Break(
        "tokens of a large vocabulary are kept in two bytes",
        SPOOL,
        "np.uint16 if n_vocab <= 1 << 16 else np.uint32",
        "np.uint16",
    ),
    Break(
        "a plan takes what is done once for each document",
        "analysis/running/cost.py",
        "stage.n + ahead * (stage.n - before) / apart",
        "documents",
    ),
    Break(
        "a long run begins without a word",
        "analysis/machine/progress.py",
        "seconds > LONG",
        "False",
    ),
    Break("batches are given in another order", WORKERS, "self.out.popleft()", "self.out.pop()"),
    Break(
        "more documents are read ahead than a batch may have bytes",
        WORKERS,
        "len(taken) == n or size > MOST",
        "len(taken) == n",
    ),
    Break("a document that fails is given to no other worker", WORKERS, "TRIES = 3", "TRIES = 1"),
    Break(
        "a document that fails takes its batch along",
        WORKERS,
        "len(batch.numbered) > 1",
        "False",
    ),
    Break(
        "a cluster in which nothing goes on is waited for",
        WORKERS,
        "quiet > max(PATIENCE, 20 * self.pace.longest)",
        "False",
    ),
    Break(
        "documents go through threads whatever is in use",
        "analysis/running/executor.py",
        "_current.get(THREADS)",
        "THREADS",
    ),
    Break("a worker with another BLAS is taken", SENT, "wanted.get(name) != value", "False"),
    Break("a worker with other weights is taken", SENT, "own.get(file) != sha256", "False"),
    Break(
        "an array of another layout travels as that of the file",
        SENT,
        "(x.dtype, x.shape, x.strides) != (y.dtype, y.shape, y.strides)",
        "x.shape != y.shape",
    ),
    Break(
        "an array that was changed travels as that of the file",
        SENT,
        "np.array_equal(x, y)",
        "True",
    ),
    Break(
        "a view loses its layout on the way to a worker",
        SENT,
        "x.ndim > 1 and not x.flags.forc and not x.dtype.hasobject",
        "False",
    ),
    Break(
        "an array that comes before its model travels by value",
        SENT,
        "len(self.names) == known",
        "True",
    ),
    Break(
        "a worker gives freed memory back as Dask has it",
        SENT,
        'del os.environ["MALLOC_TRIM_THRESHOLD_"]',
        "pass",
    ),
    Break(
        "queries are turned back the same way",
        "minitx/backward.py",
        "turned(dy, -angle, scale)",
        "turned(dy, angle, scale)",
    ),
    Break(
        "a scaled turn is undone unscaled",
        "minitx/backward.py",
        "turned(dy, -angle, scale)",
        "turned(dy, -angle)",
    ),
    Break(
        "heads that share keys hand back one head's gradient",
        "minitx/backward.py",
        "by_group.sum(axis=2)",
        "by_group[:, :, 0]",
    ),
    Break(
        "parallel writers hand back the last one's gradient",
        "minitx/backward.py",
        "total + norm_back(writer.norm, d_normed, x, back)",
        "norm_back(writer.norm, d_normed, x, back)",
    ),
    Break(
        "a normed residual is taken for the stream",
        "minitx/backward.py",
        "dx + writer.back(dx, normed, back)",
        "writer.back(dx, normed, back)",
    ),
    Break(
        "the angle's gradient is turned the other way",
        "minitx/backward.py",
        "(first - second).sum(axis=1)",
        "(first + second).sum(axis=1)",
    ),
    Break(
        "a mean over tokens hands its gradient to one",
        "minitx/gradients.py",
        "share.swapaxes(1, 2) @ d_asked[:, None]",
        "(share == share.max()).swapaxes(1, 2) @ d_asked[:, None]",
    ),
    Break(
        "the norm of each head's queries is left out on the way back",
        "minitx/backward.py",
        "cfg.qk_norm or cfg.qk_norm_all",
        "cfg.qk_norm_all",
    ),
    Break(
        "a longer table begins with new rows",
        "analysis/measures/context_extension.py",
        "rows[np.arange(n) % len(rows)]",
        "rows[::-1][np.arange(n) % len(rows)]",
    ),
    Break(
        "sinusoids are not known when they stand side by side",
        "analysis/measures/context_extension.py",
        "(halves, side_by_side)",
        "(halves,)",
    ),
    Break(
        "passes at once take all cores each",
        "minitx/threads.py",
        "return max(1, n // max(1, len(self.threads)))",
        "return n",
    ),
    Break(
        "after passes at once one thread is left",
        "minitx/threads.py",
        "self.met = bool(self.threads)",
        "return",
    ),
    Break(
        "a pass inside a pass ends both",
        "minitx/threads.py",
        "me in self.threads",
        "False",
    ),
    Break(
        "a head that shares its keys is compared with another's",
        "analysis/measures/lag_signals.py",
        "x[0].repeat(shared, axis=0)",
        "np.tile(x[0], (shared, 1, 1))",
    ),
    Break(
        "where queries are turned, places are shuffled among heads",
        "analysis/measures/lag_signals.py",
        "x[:, :, order]",
        "x[:, :, np.sort(order)]",
    ),
    Break(
        "tokens that are to be told are seen",
        "analysis/measures/losses.py",
        "hidden[places] = mask_token(model.tokenizer)",
        "mask_token(model.tokenizer)",
    ),
    Break(
        "documents that are done stay in Dask's log of messages",
        WORKERS,
        '"distributed.admin.low-level-log-length": 10',
        '"distributed.admin.low-level-log-length": 1000',
    ),
    Break(
        "each of several processes takes all cores for a product",
        MANY,
        "max(1, threads.count() // n)",
        "threads.count()",
    ),
    Break(
        "a text that is piped in is read by several processes",
        MANY,
        'options.get("text") == "-"',
        "False",
    ),
    Break(
        "several processes start workers of their own",
        MANY,
        "elsewhere = executor.current() is not executor.THREADS",
        "elsewhere = False",
    ),
    Break(
        "a process that is killed says nothing of --resume",
        MANY,
        '"a process ended before its experiment; repeat the command with --resume to continue"',
        '"a process ended"',
    ),
    Break(
        "the parts of a figure stand where the solver puts them",
        "analysis/drawing/draw.py",
        "edges.set_points(edges.get_points().round(GRID))",
        "pass",
    ),
    Break(
        "axes stand where the solver puts them",
        "analysis/drawing/draw.py",
        "round(x, GRID)",
        "x",
    ),
    Break(
        "hidden tokens are others in each window",
        "analysis/experiments/_mechanisms_lengths.py",
        "-start % every",
        "0",
    ),
    Break(
        "all quarters of the pairs stay where they are",
        "analysis/measures/place_effects.py",
        "angle[..., parts[number]] = 0",
        "angle[:] = 0",
    ),
    Break(
        "a claim on one mechanism is put to every model",
        "analysis/pages/published.py",
        "same and claim.causal in (None, reader.config.causal)",
        "True",
    ),
    Break(
        "a large matrix is read at once",
        "minitx/threads.py",
        "even_step(n_features, PIECE / D)",
        "n_features",
    ),
    Break(
        "few rows are multiplied by all of a large matrix at once",
        "minitx/threads.py",
        "min(step, max(1, SMALL // rows.size))",
        "max(1, SMALL // rows.size)",
    ),
    Break(
        "a matrix that is turned stays as it was",
        MAPPED,
        "lambda: self.bits().T",
        "lambda: self.bits()",
    ),
    Break(
        "what stays in the file is read when the model is loaded",
        FILES,
        "len(self.shape) != 2",
        "True",
    ),
    Break(
        "pages of the file that were read stay in memory",
        FILES,
        "self._give_back(raw)",
        "pass",
    ),
    Break(
        "columns that lie together are converted row by row",
        FILES,
        "rows, out = given.T, new.T",
        "rows, out = given.T, new",
    ),
    Break(
        "gradients of matrices in a file are made without a word",
        MAPPED,
        "any(isinstance(x, Mapped) for x in vars(model.weights).values())",
        "False",
    ),
    Break(
        "a matrix in a file is not looked through for NaN",
        MAPPED,
        "ARRAY = np.ndarray, Mapped",
        "ARRAY = np.ndarray, np.ndarray",
    ),
    Break(
        "a tied matrix in a file is counted twice",
        MAPPED,
        "Mapped(lambda: self.bits().T, self.to_array, shape, self.dtype, self.source)",
        "Mapped(lambda: self.bits().T, self.to_array, shape, self.dtype)",
    ),
    Break(
        "a share of each head in ModernBERT's rope_parameters is passed over",
        "minitx/rotary.py",
        "share != 1.0",
        "False",
    ),
    Break(
        "a mean over tokens passes for the push on a matrix",
        "lessons/checks/lesson_13.py",
        "right / T",
        "right * T",
    ),
    Break(
        "a rule that keeps the push along the row is right",
        "lessons/checks/lesson_13.py",
        "not is_close(got, scale * (dy - along))",
        "np.isnan(got).any()",
    ),
    Break(
        "attention to the first occurrence gets no hint of its own in lesson 14",
        "lessons/checks/lesson_14.py",
        "pattern[query, query - behind].mean()",
        "pattern[query, query - behind].max()",
    ),
    Break(
        "a head of lesson 14 has to beat no more than its own chance",
        "lessons/checks/lesson_14.py",
        "value < best + MARGIN",
        "value < own + MARGIN",
    ),
    Break(
        "a head of lesson 15 is defended on the pairs that chose it",
        "lessons/checks/lesson_15.py",
        "pairs[start::2]",
        "pairs[0::2]",
    ),
    Break(
        "a head of lesson 15 has to beat the mean of chance alone",
        "lessons/checks/lesson_15.py",
        "abs(tested.null).max()",
        "abs(tested.null).mean()",
    ),
    Break(
        "the null of a page's attribution has the model's weights",
        "analysis/pages/pushes.py",
        "[attributions.of_heads(each, wanted) for each in (model, noise)]",
        "[attributions.of_heads(each, wanted) for each in (model, model)]",
    ),
    Break(
        "a mask in the text is not what a page's attribution asks for",
        "analysis/measures/attributions.py",
        "len(hidden)",
        "False",
    ),
    Break(
        "the live page attributes unasked",
        "analysis/live/runs.py",
        "self.attribution and not edits",
        "not edits",
    ),
    Break(
        "a terminal obeys control characters in a name",
        "analysis/machine/escapes.py",
        "CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)",
        "text",
    ),
    Break(
        "a name is markup in Markdown",
        "analysis/machine/escapes.py",
        'MARKS.sub(r"\\\\\\1", escape(line, quote=False))',
        "escape(line, quote=False)",
    ),
    Break(
        "a name is HTML in Markdown",
        "analysis/machine/escapes.py",
        'MARKS.sub(r"\\\\\\1", escape(line, quote=False))',
        'MARKS.sub(r"\\\\\\1", line)',
    ),
    Break(
        "a letter can turn the direction of a picture",
        "analysis/drawing/draw.py",
        'NO_XML.sub("\ufffd", text)',
        "text",
    ),
    Break(
        "a command to copy has a name as several words",
        "weights/local.py",
        "shlex.join(words)",
        '" ".join(words)',
    ),
    Break(
        "a section's command has a name as several words",
        "analysis/pages/section.py",
        "shlex.quote(name)",
        "name",
    ),
    Break(
        "a record's batches may have any number",
        "analysis/parity/reference.py",
        "str(i) not in rows",
        "False",
    ),
    Break(
        "a record's values may be of any shape",
        "analysis/parity/reference.py",
        'wanted(f"{i}.{name}", x, "f", 1)',
        "pass",
    ),
    Break(
        "a record's sample may point outside its array",
        "analysis/parity/reference.py",
        "(places >= int(size)).any()",
        "False",
    ),
    Break(
        "a record may name what is not a point",
        "analysis/parity/reference.py",
        "stem not in POINTS or (layer and not layer.isdecimal())",
        "False",
    ),
    Break(
        "a record may say anything of itself",
        "analysis/parity/reference.py",
        "not isinstance(about.get(name), kind)",
        "False",
    ),
    Break(
        "an arrow turned the wrong way passes in lesson 11",
        "lessons/checks/lesson_11.py",
        "[q @ _turned(k, OMEGA * lag) for lag in lags]",
        "[q @ _turned(k, -OMEGA * lag) for lag in lags]",
    ),
    Break(
        "slopes of four heads pass for those of eight",
        "lessons/checks/lesson_11.py",
        "np.sort(2.0**-i)",
        "np.sort(4.0**-i)",
    ),
    Break(
        "Bahdanau's query is not the state before",
        GRU,
        "Step(step(w, 'decoder', both, s), s, pattern, context)",
        "Step(step(w, 'decoder', both, s), both, pattern, context)",
    ),
    Break(
        "positions are added again as they are where a norm follows the embeddings",
        "analysis/measures/position_sizes.py",
        "centred[: x.shape[1]] * of_norm['scale'] * gain",
        "rows[: x.shape[1]]",
    ),
    Break(
        "a rotary layer turns its queries alone",
        PARTS,
        "T * (cfg.n_heads + cfg.n_kv) * 4 * turned",
        "T * cfg.n_heads * 4 * turned",
    ),
    Break(
        "path patching adds half of what a sender changes",
        "minitx/circuits/stream.py",
        "x = x + self.written(step, trace) + added.get(i, 0.0)",
        "x = x + self.written(step, trace) + 0.5 * added.get(i, 0.0)",
    ),
    Break(
        "a frozen norm of logit attribution takes no mean off",
        "minitx/circuits/attribution.py",
        "slope - slope.mean(axis=-1, keepdims=True)",
        "slope",
    ),
    Break(
        "a circuit that is as near as random ones beats them",
        "minitx/circuits/search.py",
        "nearness(x) < own",
        "nearness(x) <= own",
    ),
    Break(
        "labels of a plane may cover each other",
        "analysis/drawing/labels.py",
        "taken.append(box)",
        "pass",
    ),
    Break(
        "columns of queries and keys are those of the highest octave alone",
        QUERIES_KEYS,
        "not (low or high)",
        "False",
    ),
    Break(
        "a ring goes round a head without a direction",
        PROFILES_EXPERIMENT,
        "is_directed = r['directed'][layer, head]",
        "is_directed = most > 0",
    ),
    Break(
        "cells of every strength are counted in each band",
        "analysis/maths/offset_shifts.py",
        "r[name] & heads[:, None]",
        "r[name]",
    ),
    Break(
        "of a sweep over receivers only the first head of a layer reads the change",
        "minitx/circuits/each.py",
        "x[rows, node.head] = value",
        "x[rows, nodes[0].head] = value",
    ),
    Break(
        "a range of rows is that of the whole table",
        "analysis/experiments/positions.py",
        "table = whole[places]",
        "table = whole",
    ),
    Break(
        "the words beside a range of rows are all words",
        "analysis/experiments/positions.py",
        "document[places]",
        "document",
    ),
    Break(
        "a kernel's peak may be as low as it likes",
        "analysis/experiments/kernel.py",
        "np.where(height > LEAST, lag, FLAT)",
        "lag",
    ),
    Break(
        "a claim's effect exceeds its null by nothing",
        CLAIMS,
        "verdict.beside(ours, null, most=most, margin=margin).verdict in verdict.EFFECTS",
        "ours > null",
    ),
    Break(
        "an effect's correlation may be negative",
        CLAIMS,
        "bool(shown and ours > least)",
        "bool(shown)",
    ),
    Break(
        "gentle heads may look at one offset alone",
        CLAIMS,
        "SHARE['holds'](ours[0], null) and ours[1] < heads.SHARP",
        "SHARE['holds'](ours[0], null)",
    ),
    Break(
        "parts of columns keep their means, which add up at every lag",
        LAGS_EXPERIMENT,
        "parts - np.median(parts[..., visible], axis=-1, keepdims=True)",
        "parts",
    ),
    Break(
        "a decoder's profiles are read beside no source of its own",
        PROFILES_EXPERIMENT,
        "source = sources and sources[i]",
        "source = sources and sources[0]",
    ),
    Break(
        "what a decoder says is shuffled with its start token",
        "analysis/measures/decoder_texts.py",
        "self.before, self.after = np.array([model.config.start_id]), np.zeros(0, int)",
        "self.before, self.after = np.zeros((2, 0), int)",
    ),
    Break(
        "special tokens take part in canonical correlations",
        "analysis/experiments/cca.py",
        "inner = texts.ordinary()",
        "inner = slice(0, texts.T)",
    ),
    Break(
        "a flag that the documentation shows is gone",
        "analysis/commands/published.py",
        "'--strict'",
        "'--severe'",
    ),
    Break(
        "a row of a circuit's boxes is as long as it may be",
        "analysis/measures/circuit_drawing.py",
        "range(0, len(names), ABREAST)",
        "range(0, len(names), len(names))",
    ),
    Break(
        "random circuits share the state of one pass",
        "minitx/circuits/search.py",
        "copy.copy(self.routes)",
        "self.routes",
    ),
    Break(
        "words of a corrupt text are not exchanged",
        "analysis/measures/contrast_pairs.py",
        "order[[place, place + APART]] = place + APART, place",
        "order[[place, place + APART]] = place, place + APART",
    ),
    Break(
        "a pair that is written out is looked for as a file",
        "analysis/contract/options.py",
        "'|' not in value and super().__contains__(value)",
        "super().__contains__(value)",
    ),
    Break(
        "a head carries an answer that the model does not know",
        "analysis/measures/contrast_pairs.py",
        "Provided(Of('told'), Every(*rules))",
        "Every(*rules)",
    ),
    Break(
        "the null of patching is the head that chance moves least",
        "analysis/experiments/patch.py",
        "abs(r[f'{way}_by_{part}_null']).max()",
        "abs(r[f'{way}_by_{part}_null']).min()",
    ),
    Break(
        "a circuit is tried on the pairs that chose it",
        "analysis/experiments/circuit.py",
        "asked.some(1, None, 2)",
        "asked.some(0, None, 2)",
    ),
    Break(
        "the null of a component's share is the share itself",
        "analysis/experiments/attribute.py",
        "of_largest[1:]",
        "of_largest[:1]",
    ),
    Break(
        "the null of a kind of heads is its smallest",
        "analysis/experiments/heads.py",
        "score.null.max()",
        "score.null.min()",
    ),
    Break(
        "pieces of tiny-induction's documents begin with their first word",
        "weights/training/train_induction.py",
        "rng.integers(n - size + 1)",
        "0 * rng.integers(n - size + 1)",
    ),
    Break(
        "a path is run from one layer too late",
        "minitx/circuits/later.py",
        "Start(layer, trace['resid_pre', layer][rows])",
        "Start(layer + 1, trace['resid_pre', layer][rows])",
    ),
    Break(
        "a pass that begins at a layer computes those before it",
        MODEL,
        "model.layers[first:]",
        "model.layers",
    ),
    Break(
        "the measure of a path is read at the first place",
        "minitx/circuits/later.py",
        "x[np.arange(len(x)), number.places][:, None]",
        "x[:, :1]",
    ),
    Break(
        "each sender of a layer is the first of them",
        "minitx/circuits/each.py",
        "[graph.more(node, donor, trace) for node in nodes]",
        "[graph.more(nodes[0], donor, trace) for node in nodes]",
    ),
    Break(
        "the unrelated pair of each is drawn from its group alone",
        "analysis/experiments/patch.py",
        "circuits.patch(model, *texts, at=point, seed=seed, **group.options())",
        "circuits.patch(model, *texts, at=point, seed=seed, prefix=group.prefix)",
    ),
    Break(
        "unrelated texts that are given are not patched",
        "minitx/circuits/patching.py",
        "given is None",
        "True",
    ),
    Break(
        "what a decoder has said is not taken off its source",
        "analysis/measures/contrast_pairs.py",
        "source, _, said = text.partition(SAYS)",
        "source, _, said = text, '', ''",
    ),
    Break(
        "parts of heads are summed by their size",
        "analysis/experiments/attribute.py",
        "np.add.at(heads, tuple(column[mine] for column in where), table.logits[mine])",
        "np.add.at(heads, tuple(column[mine] for column in where), abs(table.logits[mine]))",
    ),
    Break(
        "writers are the heads that restore least",
        "analysis/experiments/paths.py",
        "np.argsort(-by_head[1:], axis=None, kind='stable')",
        "np.argsort(by_head[1:], axis=None, kind='stable')",
    ),
    Break(
        "paths go through the queries, whatever was asked for",
        "analysis/experiments/paths.py",
        "'qkv' if reads == 'all' else reads",
        "'q'",
    ),
    Break(
        "published heads are sought among twice as many",
        "analysis/pages/circuit_claims.py",
        "np.sort(effects, axis=None)[-len(heads)]",
        "np.sort(effects, axis=None)[-2 * len(heads)]",
    ),
    Break(
        "the least attention of published heads is the most",
        "analysis/pages/circuit_claims.py",
        "min(r[f'{kind}_of_heads'][head].item() for head in heads)",
        "max(r[f'{kind}_of_heads'][head].item() for head in heads)",
    ),
    Break(
        "the giver is always named second",
        "analysis/texts/recipients.py",
        "rng.random() < 0.5",
        "False",
    ),
    Break(
        "tiny-induction reads prose",
        "analysis/contract/own_texts.py",
        "'tiny-induction': {'text': ROWS, 'sentence': ROW}",
        "'tiny-induction': {'sentence': ROW}",
    ),
    Break(
        "the null of who wrote a guess is a mean",
        "analysis/pages/logit_attribution.py",
        "np.quantile(abs(np.array(drawn)), nulls.CHANCE, axis=-1)",
        "abs(np.array(drawn)).mean(axis=-1)",
    ),
    Break(
        "a layer that is off writes guesses",
        "analysis/pages/logit_attribution.py",
        "not self.trace[out, layer].any()",
        "False",
    ),
    Break(
        "what a head wrote keeps its mean in the last stream",
        "minitx/circuits/attribution.py",
        "x = x - x.mean(axis=-1, keepdims=True)",
        "x = 1 * x",
    ),
    Break(
        "heads are labelled beside the least that chance does",
        "analysis/measures/kinds.py",
        "score.null.max()",
        "score.null.min()",
    ),
    Break(
        "both ways of a patch on the live page are one",
        "analysis/live/patching.py",
        "_way(effects.lost, abs(effects.lost_null), is_by_head)",
        "_way(effects.effects, abs(effects.null), is_by_head)",
    ),
    Break(
        "a patched head of the live page has its own null alone",
        "analysis/live/patching.py",
        "np.full_like(null, null.max())",
        "null",
    ),
    Break(
        "readings with other edits are one pass",
        "analysis/running/passes.py",
        "str(by_identity)",
        '""',
    ),
    Break(
        "readings of other tokens of the same length are one pass",
        "analysis/running/passes.py",
        "tokens.tobytes()",
        'b""',
    ),
    Break(
        "what one measure raises ends all that share its pass",
        "analysis/running/passes.py",
        "errors[number] = error",
        "raise",
    ),
    Break(
        "heads are chosen in the pass over all documents",
        "analysis/running/together.py",
        "few or [*self.waiting]",
        "[*self.waiting]",
    ),
    Break(
        "the random model of a seed is that of another model",
        "analysis/measures/document_features.py",
        "original is not model or noise is None",
        "noise is None",
    ),
    Break(
        "of several runs that go on, each adds what the last one had left",
        "analysis/running/stream.py",
        "index >= total.first and total.error is None",
        "total.error is None",
    ),
    Break(
        "a number is declared without a null and without a reason",
        "analysis/contract/numbers.py",
        "bool(self.null) == bool(self.no_null)",
        "False",
    ),
    Break(
        "a rule sets a number beside no null",
        "analysis/contract/rules.py",
        "f'{name}_null{bracket}{place}'",
        "0",
    ),
    Break(
        "a question is asked of a model for which it makes no sense",
        "analysis/contract/rules.py",
        "all(rule.verdict(names) in verdict.EFFECTS for rule in conditions)",
        "True",
    ),
    Break(
        "a line's band is drawn without its lower end",
        "analysis/drawing/panels.py",
        "axes.fill_between(places, low, high, color=line.color, alpha=0.25, linewidth=0)",
        "axes.fill_between(places, high, color=line.color, alpha=0.25, linewidth=0)",
    ),
    Break(
        "a sentence tells only the first entry of a list",
        "analysis/drawing/sentences.py",
        "', '.join(words(entry, spec) for entry in value)",
        "', '.join(words(entry, spec) for entry in value[:1])",
    ),
    Break(
        "of two nulls the smaller decides",
        "analysis/contract/rules.py",
        "max(map(names.value, nulls))",
        "min(map(names.value, nulls))",
    ),
    Break(
        "an interval is told as two numbers",
        "analysis/drawing/sentences.py",
        "spec.startswith('to ')",
        "False",
    ),
    Break(
        "numbers that differ by a word stand in the other order",
        "analysis/contract/numbers.py",
        "match[1].split('|')[i]",
        "match[1].split('|')[-1 - i]",
    ),
    Break(
        "a piece stands whichever of two numbers is larger",
        "analysis/drawing/sentences.py",
        "bool(SIGNS[sign](self[left], other))",
        "True",
    ),
    Break(
        "the first of two rules decides even where it shows no effect",
        "analysis/contract/rules.py",
        "kind in verdict.EFFECTS",
        "kind",
    ),
    Break(
        "keys are dialled in a run without the other changes",
        LIVE_DIAL,
        "before | {entered: moved}",
        "{entered: moved}",
    ),
    Break(
        "cross-attention takes a change of positions",
        INTERVENTIONS,
        "any(change.reads_order for change in records)",
        "any(change.comes_last for change in records)",
    ),
    Break(
        "chance keeps the positions that were changed",
        CHANGES,
        "values[name] = change.null(self, seed)",
        "values.setdefault(name, change.null(self, seed))",
    ),
    Break(
        "a shift counts though positions are not shifted",
        CHANGES,
        "getattr(changes, name) != wanted",
        "wanted is None",
    ),
    Break(
        "the Python prints the offset on the other side",
        AS_PYTHON,
        """f'print(f"{name}, offset {offset}: {{a.diagonal({offset}).mean():.3f}}")\'""",
        """f'print(f"{name}, offset {offset}: {{a.diagonal({-offset}).mean():.3f}}")\'""",
    ),
    Break(
        "the page knows not all changes",
        LIVE_SERVER,
        "[change.facts for change in CHANGES.values()]",
        "[change.facts for change in [*CHANGES.values()][:-1]]",
    ),
    Break(
        "an MLP that is off takes attention with it",
        LIVE_OFF,
        '{(place.point("mlp_out"), layer): np.zeros_like for layer in changes.mlps_off}',
        '{(place.point("attn_out"), layer): np.zeros_like for layer in changes.mlps_off}',
    ),
    Break(
        "numbers of a map have one decimal",
        "analysis/drawing/maps.py",
        "1 if most >= HIGH else 2",
        "1",
    ),
    Break(
        "the colours of attention begin below 0",
        "analysis/drawing/maps.py",
        "-most if self.signed else 0.0",
        "-most",
    ),
    Break(
        "the first map of a scale says what is dark in all",
        "analysis/drawing/maps.py",
        "max(abs(x).max() for x in arrays)",
        "abs(arrays[0]).max()",
    ),
    Break(
        "a column has room for parts without results",
        "analysis/drawing/panels.py",
        "sum(part.inches(r) for part in self._shown(r))",
        "sum(part.inches(r) for part in self.parts)",
    ),
    Break(
        "the writers of a random start are as large as other matrices",
        "minitx/training/start.py",
        "(2 * config.n_layers) ** -0.5",
        "1.0",
    ),
    Break(
        "matrices of a training from nothing do not shrink",
        "minitx/training/loop.py",
        "shrinking={MATRICES}",
        "shrinking=set()",
    ),
    Break(
        "spans of words to predict are longer than they say",
        "minitx/training/batches.py",
        "rng.geometric(1 / span, shape)",
        "1 + rng.geometric(1 / span, shape)",
    ),
    Break(
        "the words that a training hides depend on the step alone",
        "minitx/training/batches.py",
        "np.random.default_rng((seed, step, 1))",
        "np.random.default_rng(step)",
    ),
    Break(
        "a training goes on with a state of other settings",
        "minitx/training/saved.py",
        "self.same(record['settings'])",
        "None",
    ),
    Break(
        "a training overwrites another in its folder",
        "minitx/training/train.py",
        "place.is_used()",
        "False",
    ),
    Break(
        "the last snapshot is not of the last step",
        "minitx/training/loop.py",
        "np.geomspace(steps, 1, n - 1)",
        "np.geomspace(steps / 2, 1, n - 1)",
    ),
    Break(
        "gelu's slope at 0 is 0 where its value is known",
        "minitx/derivatives.py",
        "np.copyto(slope, 0.5, where=x == 0)",
        "np.copyto(slope, 0.0, where=x == 0)",
    ),
    Break(
        "memory of any size stays kept when a training has ended",
        "minitx/memory.py",
        "libc.mallopt(M_MMAP_MAX, MAPPED)",
        "None",
    ),
    Break(
        "GPT-J's features are turned as Llama's",
        "minitx/families/family.py",
        "if self.neighbours:\n    array = rows_of(array.T, halves_of_heads(cfg)).T",
        "pass",
    ),
    Break(
        "the MLP of GPT-J reads a norm of its own, which is none",
        "minitx/families/gptj.py",
        'norm("ln2", "ln_1")',
        "{}",
    ),
    Break(
        "OPT's first token reads the first row",
        "minitx/families/opt.py",
        '"offset": OFFSET',
        '"offset": 0',
    ),
    Break(
        "OPT always norms before each part",
        "minitx/families/opt.py",
        'Key("do_layer_norm_before", True)',
        'Key("none_says_so", True)',
    ),
    Break(
        "an OPT with narrow embeddings is not refused by name",
        "minitx/families/refused.py",
        '"opt": ("word_embed_proj_dim", None)',
        '"opt": ("hidden_size", None)',
    ),
    Break(
        "Phi-3's keys are as many as its queries",
        "minitx/families/family.py",
        "1, (cfg.n_heads, cfg.n_kv, cfg.n_kv)",
        "1, (1, 1, 1)",
    ),
    Break(
        "Phi-3 turns the whole of each head",
        "minitx/families/phi3.py",
        "llama.part_turned(share, values)",
        "llama.width(values)",
    ),
    Break(
        "a Phi-3 for long texts is read as one for short ones",
        "minitx/families/phi3.py",
        "kind != 'default'",
        "False",
    ),
    Break(
        "Falcon's keys follow all of its queries",
        "minitx/families/family.py",
        "cfg.n_kv, (cfg.n_heads // cfg.n_kv, 1, 1)",
        "1, (cfg.n_heads, cfg.n_kv, cfg.n_kv)",
    ),
    Break(
        "an old Falcon shares keys as a new one does",
        "minitx/families/falcon.py",
        "{} if is_new else {'kv_heads': int(_flag(raw, 'multi_query', True))}",
        "{}",
    ),
    Break(
        "a Falcon with ALiBi is read as one with rotary positions",
        "minitx/families/falcon.py",
        '"alibi": False',
        '"alibi": None',
    ),
    Break(
        "Gemma's gains are its weights",
        "minitx/families/gemma.py",
        'tensor(f"{name}.weight", plus=1.0)',
        'tensor(f"{name}.weight")',
    ),
    Break(
        "what is added to a weight can be written to",
        "minitx/families/family.py",
        "array.flags.writeable = False",
        "pass",
    ),
    Break(
        "Gemma's embeddings are as stored",
        "minitx/families/gemma.py",
        "'embed_scale': values['d_model'] ** 0.5",
        "'embed_scale': 1.0",
    ),
    Break(
        "Gemma 3's layers with a window have the base of the others",
        "minitx/families/gemma.py",
        "parameters(raw, kind)",
        "parameters(raw, FULL)",
    ),
    Break(
        "scores are never capped",
        "minitx/model.py",
        "if cfg.score_cap:\n    scores = capped_(scores, cfg.score_cap)",
        "pass",
    ),
    Break(
        "logits are never capped",
        "minitx/model.py",
        "if cfg.logit_cap:\n    y = capped_(y, cfg.logit_cap)",
        "pass",
    ),
    Break(
        "classes are capped as words are",
        HELD_HEADS,
        "replace(config, head_act=act, unembed_scale=1.0, logit_cap=0.0)",
        "replace(config, head_act=act, unembed_scale=1.0)",
    ),
    Break(
        "the norm of what the MLP writes is left out",
        "minitx/model.py",
        "norm('mlp_out', mlp(x, w, cfg, hook), w, cfg, hook)",
        "hook('mlp_out', mlp(x, w, cfg, hook))",
    ),
    Break(
        "each head of OLMo 2 is normed by itself",
        "minitx/model.py",
        "if cfg.qk_norm_all:\n    x = norm(f'ln_all_{name}', x, w, cfg, hook)",
        "pass",
    ),
    Break(
        "scores are divided by the root of a head's width, whatever the config says",
        "minitx/config.py",
        "self.d_scale or self.d_head",
        "self.d_head",
    ),
    Break(
        "capped scores have the slope of others",
        "minitx/backward.py",
        "derivatives.capped(d_scores, product, back.cfg.score_cap)",
        "d_scores",
    ),
    Break(
        "a norm of what is written is left out on the way back",
        "minitx/backward.py",
        "norm_back(name, dy, written, back)",
        "back.point(name, dy)",
    ),
    Break(
        "capped logits have the slope of others",
        "minitx/gradients.py",
        "derivatives.capped(dy, y, cfg.logit_cap) if cfg.logit_cap else dy",
        "dy",
    ),
    Break(
        "edges between heads are told where a norm joins them",
        "minitx/circuits/graph.py",
        "require_sum(model)",
        "pass",
    ),
    Break(
        "a logit's parts leave out the norm of what attention writes",
        "minitx/circuits/attribution.py",
        "step.name == 'head'",
        "False",
    ),
    Break(
        "a checkpoint is tuned whose file does not hold what is learned",
        "analysis/tuning/tensors.py",
        "check_views(FAMILIES[config.model_type], config)",
        "pass",
    ),
    Break(
        "capped scores are compared with the products that they are not",
        "analysis/measures/inputs.py",
        "raise NotApplicable(f'needs scores that are products of queries and keys, {what}')",
        "pass",
    ),
    Break(
        "a token in the atlas can end the element in which it stands",
        "analysis/pages/atlas.py",
        "explore.as_script({'runs': runs, 'projections': projections})",
        "__import__('json').dumps({'runs': runs, 'projections': projections})",
    ),
    Break(
        "a model's name stands in the atlas's title as it is",
        "analysis/pages/atlas.py",
        "escape(filled('Atlas of {names}', names=names))",
        "filled('Atlas of {names}', names=' and '.join(a.name for a in atlases))",
    ),
    Break(
        "a token in the atlas turns the direction of a line",
        "analysis/pages/atlas.py",
        "draw.printable(str(x)).translate(explore.BLANKS)",
        "str(x).translate(explore.BLANKS)",
    ),
    Break(
        "coordinates of the atlas are rounded to 256 steps",
        "analysis/pages/atlas.py",
        "STEPS = 4095",
        "STEPS = 255",
    ),
    Break(
        "the atlas packs weights instead of their roots",
        "analysis/pages/atlas.py",
        "np.rint(np.sqrt(np.clip(np.float64(weight), 0, 1)) * WEIGHT_STEPS)",
        "np.rint(np.clip(np.float64(weight), 0, 1) * WEIGHT_STEPS)",
    ),
    Break(
        "a strongest key of another sentence is packed into the atlas",
        "analysis/pages/atlas.py",
        "(offsets[index >= 0] < 0).any() or offsets.max() >= longest",
        "False",
    ),
    Break(
        "the low and the high bytes of the atlas change places",
        "analysis/pages/atlas.py",
        "[flat & 255, flat >> 8]",
        "[flat >> 8, flat & 255]",
    ),
    Break(
        "the atlas packs a third axis without its plane",
        "analysis/pages/atlas.py",
        "name == 'pca3' and np.array_equal(heads_of(space.xy['pca'], space), xy_of(axes))",
        "name == 'pca3'",
    ),
    Break(
        "what the process of an atlas says stands in a page as it is",
        "analysis/live/atlases.py",
        "escape(draw.printable(job.said))",
        "job.said",
    ),
    Break(
        "an atlas that failed is not tried again",
        "analysis/live/atlases.py",
        "del self.jobs[name]",
        "pass",
    ),
    Break(
        "a served text is not the atlas's",
        "analysis/live/atlases.py",
        "len(text.split()) < WORDS",
        "True",
    ),
    Break(
        "the points of an atlas are those before the move",
        "analysis/atlas/heads.py",
        "joint_fit.stages(layer, fitted.moves)[1]",
        "joint_fit.stages(layer, fitted.moves)[0]",
    ),
    Break(
        "keys that heads share are those of another head",
        "analysis/measures/joint_fit.py",
        "np.repeat(k, len(q) // len(k), axis=0)",
        "np.concatenate([k] * (len(q) // len(k)))",
    ),
    Break(
        "a head stands out in an atlas without a null",
        "analysis/atlas/flags.py",
        "verdict.beside(value, null)",
        "verdict.beside(value, 0.0)",
    ),
    Break(
        "a frequent token makes a type of its own",
        "analysis/atlas/shapes.py",
        "explained(means(xy[is_own], group, counts), table.type[is_own][first])",
        "explained(xy[is_own], table.type[is_own])",
    ),
    Break(
        "a query is its own same token",
        "analysis/atlas/heads.py",
        "is_same & (offset != 0)",
        "is_same",
    ),
    Break(
        "only drawn sentences are counted",
        "analysis/atlas/__init__.py",
        "{name: x + further[name] for name, x in sums.items()}",
        "sums",
    ),
    Break(
        "sentences are drawn without the seed",
        "analysis/atlas/sentences.py",
        "np.random.default_rng(seed).permutation(len(documents))",
        "np.random.default_rng(0).permutation(len(documents))",
    ),
    Break(
        "what followed a later token counts as induction",
        "analysis/atlas/heads.py",
        "followed & (offset < 0)",
        "followed",
    ),
    Break(
        "a head that looks one back is called an induction head",
        "analysis/atlas/flags.py",
        "max(null, far)",
        "null",
    ),
    Break(
        "what a distance gives is counted with the repeated tokens themselves",
        "analysis/atlas/heads.py",
        "layer.seen & ~mask",
        "layer.seen",
    ),
    Break(
        "keys are compared with those of another sentence",
        "analysis/atlas/trust.py",
        "strongest[..., rows] - keys[0]",
        "strongest[..., rows] % len(keys)",
    ),
    Break(
        "processes outlive a report that is killed",
        MANY,
        "connection.wait([pipe])",
        "threading.Event().wait()",
    ),
    Break(
        "keys that are moved are turned the other way",
        "analysis/measures/score_moves.py",
        "moved = places + s",
        "moved = places - s",
    ),
    Break(
        "the bias of moved keys stays",
        "analysis/measures/score_moves.py",
        "of_k - of_q[:, None]",
        "np.arange(len(of_k)) - np.arange(len(of_q))[:, None]",
    ),
    Break(
        "where nothing tells places the answer is asked all the same",
        "analysis/contract/rules.py",
        "nothing.KIND in result",
        "False",
    ),
    Break(
        "distances of one bucket are told apart",
        "analysis/measures/mean_kernel.py",
        "(own != before) & (own != after)",
        "own >= 0",
    ),
    Break(
        "heads that a kernel names are those that look elsewhere",
        "analysis/maths/offset_shifts.py",
        "r['kernel_lag'] == offset",
        "r['kernel_lag'] != offset",
    ),
    Break(
        "waves over a grid are counted with the mean of the table",
        "analysis/maths/grid.py",
        "x - x.mean(axis=0)",
        "x + 1",
    ),
    Break(
        "an offset between patches is that of the query from its key",
        "analysis/maths/grid.py",
        "return y - y[:, None], x - x[:, None]",
        "return y[:, None] - y, x[:, None] - x",
    ),
    Break(
        "positions of patches that are shuffled stay where they are",
        "analysis/measures/pictures.py",
        "rng.permutation(positions[grid.patches])",
        "positions[grid.patches]",
    ),
    Break(
        "keys of patches keep their positions when the dial is turned",
        "analysis/maths/grid.py",
        "np.clip(y + down, 0, rows - 1)",
        "y",
    ),
    Break(
        "an experiment on texts runs on pictures",
        "analysis/contract/registry.py",
        "return OF_PICTURES[experiment.name]",
        "return experiment",
    ),
    Break(
        "positions for another size are those between corners",
        "minitx/resized.py",
        "(new + 0.5) * n / m - 0.5",
        "new * (n - 1) / max(1, m - 1)",
    ),
    Break(
        "a patch's pixels lie column by column",
        "minitx/images.py",
        "split.transpose(0, 2, 4, 1, 3, 5)",
        "split.transpose(0, 2, 4, 1, 5, 3)",
    ),
    Break(
        "the rows of a grid of patches are its columns",
        "minitx/images.py",
        "picture.rows * picture.columns",
        "picture.rows * picture.rows",
    ),
    Break(
        "the middle of a picture is moved by one pixel",
        "minitx/images.py",
        "(length - wanted) // 2 + before",
        "(length - wanted + 1) // 2 + before",
    ),
    Break(
        "what is transparent in a picture lies on black",
        "minitx/images.py",
        "(255, 255, 255, 255)",
        "(0, 0, 0, 255)",
    ),
    Break(
        "a picture of any size is opened",
        "minitx/images.py",
        "width * height > MOST_PIXELS",
        "False",
    ),
    Break(
        "a narrow picture may become a huge one",
        "minitx/images.py",
        "math.prod(size) > MOST_PIXELS",
        "False",
    ),
    Break(
        "DINOv2's scale of a layer is left out",
        "minitx/families/dinov2.py",
        "(weight * scale[:, None]).T",
        "weight.T",
    ),
    Break(
        "gate and input of DINOv2's largest models are swapped",
        "minitx/families/dinov2.py",
        'part("gate", "mlp.weights_in", 0, by_half)',
        'part("gate", "mlp.weights_in", 1, by_half)',
    ),
    Break(
        "DeiT's two classifiers are summed",
        "minitx/families/vit.py",
        "0.5 * (bias + other)",
        "bias + other",
    ),
    Break(
        "the mean of all patches has the class token in it",
        "minitx/heads.py",
        '"patches": slice(1, None)',
        '"patches": slice(0, None)',
    ),
    Break(
        "similarities are not scaled",
        "minitx/similarity.py",
        "np.exp(model.weights.logit_scale[0]) * (pictures @ of_texts.T)",
        "pictures @ of_texts.T",
    ),
    Break(
        "the gradient by W_E of pictures is that of ids",
        "minitx/derivatives.py",
        "matrix(tokens.astype(dy.dtype), dy)",
        "table(dy, tokens[..., 0].astype(int), n)",
    ),
    # in memory
    Break(
        "an output embedding in memory takes the place of the word embedding",
        "minitx/in_memory.py",
        "sorted(stored, key=lambda name: name.startswith(outputs))",
        "stored",
    ),
    Break(
        "a tensor in memory is not copied",
        "minitx/in_memory.py",
        "np.array((tensor.double() if is_double else tensor.float()).numpy())",
        "(tensor.double() if is_double else tensor.float()).numpy()",
    ),
    Break(
        "a tokenizer in memory is the library's own",
        "minitx/in_memory.py",
        "tokenizers.Tokenizer.from_str(backend.to_str())",
        "backend",
    ),
    Break(
        "settings of a model in memory do not depend on its arrays",
        "analysis/running/settings.py",
        'f"{name} {x.dtype} {x.shape}".encode() + np.ascontiguousarray(x).tobytes()',
        'f"{name} {x.dtype} {x.shape}".encode()',
    ),
    Break(
        "angles of the turns are scaled only where places keep their order",
        "analysis/measures/position_sizes.py",
        "size * edit(x)",
        "edit(x)",
    ),
    Break(
        "pairs outside of a band stand still in its place",
        "analysis/measures/notch_arrays.py",
        "(inside, ~inside)",
        "(~inside, inside)",
    ),
    Break(
        "turns that turn less lose what is common to all places",
        "analysis/measures/notch_arrays.py",
        "common + max(left, 0) ** 0.5 * (turned - common)",
        "max(left, 0) ** 0.5 * turned",
    ),
    Break(
        "a bias by distance is left out of position x position",
        "analysis/experiments/_sources_scores.py",
        "added[POSITION, POSITION] = bias",
        "pass",
    ),
    Break(
        "what places say of words belongs to what words say of places",
        "analysis/experiments/_sources_scores.py",
        "(source, POSITION) if name == 'c2p' else (POSITION, source)",
        "(source, POSITION)",
    ),
    Break(
        "words that are averaged out stay where they were",
        "analysis/experiments/_conditions_scores.py",
        "name not in self.means",
        "True",
    ),
    Break(
        "layers follow sinusoids that random weights follow as well",
        "analysis/experiments/cca.py",
        "follows = r['mean'] > chance + verdict.MARGIN",
        "follows = r['mean'] > r['mean_null'] + verdict.MARGIN",
    ),
    Break(
        "the angles of turned pairs are those of keys against queries",
        "analysis/experiments/_rotation_pairs.py",
        "positional_kernel.pairs(key, r).conj()",
        "positional_kernel.pairs(key, r)",
    ),
    # terms of content and place
    Break(
        "DeBERTa's scores are divided by the root of a head's width alone",
        DEBERTA,
        "float((1 + len(terms)) * d_head)",
        "float(d_head)",
    ),
    Break(
        "DeBERTa's distances run the other way",
        DISTANCES,
        "to_left = -distance",
        "to_left = distance",
    ),
    Break(
        "DeBERTa's far distances begin again at the other side",
        DISTANCES,
        "np.clip(to_left + half, 0, cfg.n_distances - 1)",
        "(to_left + half) % cfg.n_distances",
    ),
    Break(
        "DeBERTa's far distances are rounded down",
        DISTANCES,
        "np.ceil(growth * (n_exact - 1))",
        "np.floor(growth * (n_exact - 1))",
    ),
    Break(
        "the farthest of DeBERTa's distances is one too far",
        DISTANCES,
        "(largest - 1) / n_exact",
        "largest / n_exact",
    ),
    Break(
        "keys read the row of the distance to the other side",
        DISTANCES,
        "by_distance(products, row.swapaxes(-1, -2))",
        "by_distance(products, row)",
    ),
    Break(
        "place with content is not scaled",
        DISTANCES,
        "heads_by_rows(k * scale, of_distances('Q', embed, w, cfg, hook))",
        "heads_by_rows(k, of_distances('Q', embed, w, cfg, hook))",
    ),
    Break(
        "the table of distances is not normed",
        DISTANCES,
        "w.ln_dist_w is None",
        "True",
    ),
    Break(
        "DeBERTa's fused matrix is laid out part by part",
        DEBERTA,
        "part(x, f'{SELF}.in_proj', i, by_head)",
        "part(x, f'{SELF}.in_proj', i)",
    ),
    Break(
        "the published head of a DeBERTa needs a matrix of its own",
        DEBERTA,
        "values['tied'] = True",
        "pass",
    ),
    Break(
        "an enhanced mask decoder is left out without a word",
        DEBERTA,
        "TABLE in names and not cfg.n_pos",
        "False",
    ),
    Break(
        "a term of unknown kind is left out without a word",
        DEBERTA,
        "not {*words} <= {*TERMS}",
        "False",
    ),
    Break(
        "DeBERTa adds no token type where none is given",
        DEBERTA,
        "values['default_type'] = 0 if n_types else None",
        "values['default_type'] = None",
    ),
    Break(
        "of several keys at one distance one hands its gradient back",
        "minitx/backward_distances.py",
        "np.add.reduceat(flat[:, order], starts, axis=1)",
        "flat[:, order][:, starts]",
    ),
    Break(
        "queries get no gradient by the keys of distances",
        "minitx/backward_distances.py",
        "of_query = products_back('q', 'k_pos', d_products, back)",
        "products_back('q', 'k_pos', d_products, back)",
    ),
    Break(
        "places that are off leave the terms of content and place",
        "analysis/measures/position_edits.py",
        "[*added, *config.pos_terms]",
        "added",
    ),
    Break(
        "a spiral is flagged as a line",
        "analysis/atlas/flags.py",
        "value >= ENOUGH.get(kind, 0)",
        "True",
    ),
    Break(
        "what chance gives forms, too",
        "analysis/maths/onsets.py",
        "values - np.maximum(level, null)",
        "values - level",
    ),
    Break(
        "a curve counts from its first rise, though it fell again",
        "analysis/maths/onsets.py",
        "i = below[-1]",
        "i = below[0]",
    ),
    Break(
        "sooner is said without its interval",
        "analysis/forming/words.py",
        "names[1 + int(low > 1) - int(high < 1)]",
        "names[2 * int(low + high > 2)]",
    ),
    Break(
        "a training's snapshots are those of its last step",
        "minitx/training/train.py",
        "kept = {step: place.snapshot(step) for step in record['snapshots']}",
        "kept = {step: folder for step in record['snapshots']}",
    ),
    Break(
        "a part of a long text is left out",
        "minitx/training/tokens.py",
        "begin = end",
        "begin = end + 1",
    ),
    Break(
        "the language of a command stays after it",
        "analysis/machine/language.py",
        "del os.environ[name]",
        "pass",
    ),
    Break(
        "numbers of a translated label come in the order of its text",
        "analysis/machine/language.py",
        "int(mark[1]) - 1",
        "0",
    ),
    Break(
        "lesson 17: a picture cut into stripes gets no hint",
        LESSON_17,
        "np.array_equal(given, picture.reshape(shape))",
        "False",
    ),
    Break(
        "lesson 17: any order of positions counts as right",
        LESSON_17,
        "said != WANTED",
        "set(said) != set(WANTED)",
    ),
    Break(
        "lesson 17: any number of weights counts as right",
        LESSON_17,
        "given != (1 + n**2) ** 2",
        "given is None",
    ),
    Break(
        "a layer that a stage adds is as it was drawn",
        "minitx/training/stages.py",
        "(key[0], key[1] % n_old)",
        "key",
    ),
    Break(
        "running means begin anew with each stage",
        "minitx/training/stages.py",
        "keyed(arrays, mine)[key][:rows] = keyed(old.arrays, other)[of]",
        "keyed(arrays, mine)[key][:rows] = 0",
    ),
    Break(
        "a state saved where a stage ends is taken up by the next one's model",
        "minitx/training/stages.py",
        "max(0, done - 1)",
        "done",
    ),
    Break(
        "a state is saved in a folder that is not there",
        "minitx/training/saved.py",
        "self.path.mkdir(parents=True, exist_ok=True)",
        "pass",
    ),
    Break(
        "patches that are dealt stay at their places",
        "analysis/experiments/pictures/conditions.py",
        "lambda n, rng: rng.permutation(n)",
        "lambda n, rng: np.arange(n)",
    ),
    Break(
        "the null of offsets keeps the places in order",
        "analysis/maths/grid.py",
        "pattern[:, order[queries], order[keys]]",
        "pattern[:, queries, keys]",
    ),
    Break(
        "the class token is among the patches of a joint space",
        "analysis/experiments/pictures/joint_space.py",
        "among=places.patches",
        "among=slice(None)",
    ),
    Break(
        "keys in the plane are told by row where columns are asked",
        "analysis/experiments/pictures/joint_space.py",
        "zip(SIDES, np.divmod(np.arange(places.n), places.columns))",
        "zip(SIDES[::-1], np.divmod(np.arange(places.n), places.columns))",
    ),
    Break(
        "a live page opens the file that a request names as its picture",
        "analysis/live/runs.py",
        "of_pictures.number_of(request.text)",
        "pass",
    ),
    Break(
        "the class token takes part where patches are shuffled",
        "analysis/live/place.py",
        "np.arange(self.stack.config.picture.specials, self.T)",
        "np.arange(0, self.T)",
    ),
    Break(
        "a page shows a picture as it was normalised",
        "analysis/measures/pictures.py",
        "(pixels * np.array(steps.std) + steps.mean) / (steps.factor or 1)",
        "pixels / (steps.factor or 1)",
    ),
    Break(
        "points of another projection are taken from the cache",
        "analysis/atlas/projections.py",
        "stated == stamp(key, xy) and xy.shape == shape",
        "xy is not None and xy.shape == shape",
    ),
    Break(
        "a projection that is kept does not depend on its seed",
        "analysis/atlas/projections.py",
        "repr((name, seed, INNER, versions, x.dtype.str, x.shape))",
        "repr((name, INNER, versions, x.dtype.str, x.shape))",
    ),
    Break(
        "a projection is computed anew by each run",
        "analysis/atlas/projections.py",
        "keep(path, key, xy)",
        "pass",
    ),
    Break(
        "a product in one piece passes through the machinery of threads",
        THREADS,
        "n <= step",
        "n == 0",
    ),
    Break(
        "keys that heads share are given to the wrong heads",
        KERNELS,
        "by_group(out, G)",
        "by_group(out, G)[:, ::-1]",
    ),
    Break(
        "ticks that are named when drawn stay English",
        "analysis/drawing/draw.py",
        "isinstance(form, StrCategoryFormatter | FuncFormatter)",
        "isinstance(form, StrCategoryFormatter)",
    ),
    Break(
        "argparse speaks the language of the environment",
        "analysis/commands/parsers.py",
        "gettext.textdomain(language.DOMAIN)",
        "pass",
    ),
    Break(
        "numbers are declared in the language of the first import",
        "analysis/contract/numbers.py",
        "using('en')",
        "using('ja')",
    ),
    Break(
        "a label that is put together stays English",
        "analysis/machine/language.py",
        "between.join(map(label, text.split(between)))",
        "text",
    ),
    Break(
        "an array that is fixed learns",
        "minitx/training/start.py",
        "key not in fixed",
        "key not in ()",
    ),
    Break(
        "a file of an encoder-decoder has its shared embedding twice",
        "minitx/training/start.py",
        'ours in ("b_U", "W_E")',
        'ours == "b_U"',
    ),
    Break(
        "types of words are not told to gradients in training",
        "minitx/training/loop.py",
        "gradients(model, batch.tokens, batch.targets, keys, **batch.others)",
        "gradients(model, batch.tokens, batch.targets, keys)",
    ),
    Break(
        "the reset gate of a GRU gets no gradient",
        "weights/training/train_recurrent.py",
        "np.concatenate([d_n * h_n, d * (h - n)], axis=1)",
        "np.concatenate([0 * d_n, d * (h - n)], axis=1)",
    ),
    Break(
        "the state that asks before a step gets no gradient from what it asks for",
        "weights/training/train_recurrent.py",
        "d_s, d_keys = d_s + d_q[:, 0], d_keys + d_k",
        "d_keys = d_keys + d_k",
    ),
    Break(
        "a decoder of dates reads what it is to write",
        "weights/training/train_dates.py",
        "np.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=END)",
        "target",
    ),
    Break(
        "padding of a date is read",
        "weights/training/train_dates.py",
        '"source_valid": source != PAD',
        '"source_valid": source != 99',
    ),
    Break(
        "a model of the zoo begins otherwise than the others",
        "weights/training/recipe.py",
        "arrays[key][...] = x",
        "pass",
    ),
    Break(
        "matrices that write to the stream begin as large as others in a recipe",
        "weights/training/recipe.py",
        "arrays[key] *= recipe.sizes.get(name, 1.0)",
        "pass",
    ),
    Break(
        "a report has no page before its last experiment",
        "analysis/pages/report.py",
        "now - written >= EVERY",
        "now - written >= 1e9",
    ),
    Break(
        "offsets of patches are counted across where they are down",
        "analysis/atlas/patches.py",
        "(down == y) & (across == x)",
        "(down == x) & (across == y)",
    ),
    Break(
        "the class token is a point of an atlas of pictures",
        "analysis/atlas/__init__.py",
        "among = slice(None) if self.album is None else self.documents[0].grid.patches",
        "among = slice(None)",
    ),
    Break(
        "rows of a picture are counted as columns in an atlas",
        "analysis/atlas/shapes.py",
        '{"position": by_position, "row": by_row(columns), "column": by_column(columns)}',
        '{"position": by_position, "row": by_column(columns), "column": by_row(columns)}',
    ),
    Break(
        "high bytes of keys of long sentences are lost on the atlas page",
        "analysis/pages/atlas.py",
        "[] if longest <= BYTE else [offsets >> 8 & BYTE]",
        "[] if longest <= BYTE else [offsets & 0]",
    ),
    Break(
        "a second segment of BERT has the type of the first",
        "weights/training/train.py",
        "types[rows] = np.arange(tokens.shape[1]) > cuts[:, None]",
        "types[rows] = 0",
    ),
    Break(
        "a separator of BERT is predicted",
        "weights/training/train.py",
        "tokens[rows, cuts], targets[rows, cuts] = SEPARATOR, UNCOUNTED",
        "tokens[rows, cuts] = SEPARATOR",
    ),
    Break(
        "books of a causal model have no beginning",
        "weights/training/recipe.py",
        "END * (i == 0) + line",
        "line",
    ),
    Break(
        "the table of a model of the zoo without positions learns",
        "weights/training/train_zoo.py",
        'CAUSAL("zoo/causal-none", fixed=EMPTY)',
        'CAUSAL("zoo/causal-none")',
    ),
    Break(
        "sinusoids of the zoo have all sines first",
        "weights/training/recipe.py",
        "np.stack(halves, axis=-1).reshape(n, D)",
        "np.concatenate(halves, axis=-1)",
    ),
    Break(
        "losses of the zoo are of the token before",
        "weights/training/zoo_measure.py",
        "cross_entropy(logits, ids[indices[:, 1:]])",
        "cross_entropy(logits, ids[indices[:, :-1]])",
    ),
    Break(
        "a longer table of the zoo reads its rows again from those that no token reads",
        "weights/training/zoo_measure.py",
        'self.rows(arrays["W_pos"][config.offset :], n, how)',
        'self.rows(arrays["W_pos"], n, how)',
    ),
    Break(
        "a layer whose matrices were changed multiplies by those that it had",
        "minitx/side_by_side.py",
        "known is None or not all(map(operator.is_, known.parts, parts))",
        "known is None",
    ),
    Break(
        "a copy of a layer has the view of the layer's matrices",
        "minitx/arrays.py",
        "return vars(self)",
        "return vars(self), {'_known': self._known}",
    ),
    Break(
        "matrices whose biases lie apart are multiplied without a bias",
        "minitx/side_by_side.py",
        "(b is None and has_biases)",
        "False",
    ),
    Break(
        "one token has three products where one would do",
        "minitx/side_by_side.py",
        "together is None",
        "True",
    ),
    Break(
        "the first rows of a figure are shown without a limit",
        "analysis/pages/folding.py",
        "n + bands[shown][2] <= SHOWN",
        "True",
    ),
    Break(
        "a figure is cut at the frame of the row that is folded",
        "analysis/pages/folding.py",
        "above + 0.4 * (below - above)",
        "top + 1",
    ),
    Break(
        "a figure of no known source is said to be the paper's",
        "docs/works.py",
        "figure.startswith(work.begins)",
        "True",
    ),
    Break(
        "lesson 18: a ratio upside down gets no hint",
        "lessons/checks/lesson_18.py",
        "np.isclose(given, wrong(ratio, T))",
        "False",
    ),
    Break(
        "lesson 18: a choice that is too wide counts as two",
        "lessons/checks/lesson_18.py",
        "size > WANTED + NEAR",
        "False",
    ),
    Break(
        "lesson 18: any probabilities count as a nucleus",
        "lessons/checks/lesson_18.py",
        "np.allclose(given, np.where(kept, P, 0) / P[kept].sum())",
        "True",
    ),
    Break(
        "lesson 19: an RMSNorm gets no hint",
        "lessons/checks/lesson_19.py",
        "np.sqrt((x**2).mean(-1, keepdims=True))",
        "np.inf",
    ),
    Break(
        "lesson 19: one of two unseen changes is enough",
        "lessons/checks/lesson_19.py",
        "given != UNSEEN",
        "not given",
    ),
    Break(
        "lesson 19: a matrix that changes more than the mean counts as right",
        "lessons/checks/lesson_19.py",
        "is_close(y, x @ W - (x @ W).mean(axis=-1, keepdims=True))",
        "True",
    ),
    Break(
        "lesson 20: a merge that takes a token twice gets no hint",
        "lessons/checks/lesson_20.py",
        "tokens == [1, 1, 1]",
        "tokens is None",
    ),
    Break(
        "lesson 20: characters count as bytes",
        "lessons/checks/lesson_20.py",
        "len(text.encode('utf-8'))",
        "len(text)",
    ),
    Break(
        "lesson 20: two cuts with a token in common count as strangers",
        "lessons/checks/lesson_20.py",
        "first & behind",
        "first - first",
    ),
    Break(
        "lesson 21: a value without its activity gets no hint",
        "lessons/checks/lesson_21.py",
        "refuse(given, W_out[k], 'this is the value; how much of it is written depends on the token')",
        "pass",
    ),
    Break(
        "lesson 21: a number of keys counts as a rate",
        "lessons/checks/lesson_21.py",
        "np.isclose(given, share)",
        "np.isclose(given, share) or given == 30 * share",
    ),
    Break(
        "lesson 21: a unit that other values reach is defended",
        "lessons/checks/lesson_21.py",
        "own <= max(foreign)",
        "own <= min(foreign)",
    ),
    Break(
        "lesson 22: any five directions are a pentagon",
        "lessons/checks/lesson_22.py",
        "np.allclose(gaps, 360 / N, atol=0.5)",
        "True",
    ),
    Break(
        "lesson 22: a bias that lets neighbours through counts as right",
        "lessons/checks/lesson_22.py",
        "abs(b + NEIGHBOUR) <= NEAR",
        "b >= -NEIGHBOUR - NEAR",
    ),
    Break(
        "lesson 22: a cost of half the right size counts as right",
        "lessons/checks/lesson_22.py",
        "np.isclose(given, wanted)",
        "given <= wanted",
    ),
    Break(
        "the map of lessons puts a lesson beside the one that it takes up",
        "docs/contents.py",
        "1 + max((spots[n][0] for n in lesson.after), default=-1)",
        "max((spots[n][0] for n in lesson.after), default=0)",
    ),
    Break(
        "a translated lesson takes up no other",
        "lessons/notebook.py",
        "head(text).get('after', ())",
        "self.head.get('after', ())",
    ),
    Break(
        "a plan of a course has a row too few",
        "docs/contents.py",
        "[*rows, f'| {weeks} | {words.project} | |']",
        "rows",
    ),
    Break(
        "a sentence of the report's story is told whatever its null",
        "analysis/pages/story.py",
        "kind in verdict.EFFECTS",
        "True",
    ),
    Break(
        "the loss without positions is told where its interval meets the one with them",
        "analysis/pages/story.py",
        'Provided(RISE, Below("loss", **NATS))',
        'Below("loss", **NATS)',
    ),
    Break(
        "statements on any transformer are counted among the questions about a model",
        "analysis/pages/overview.py",
        "run not in of_any",
        "True",
    ),
    Break(
        "a section says more than forty words at first sight",
        "analysis/pages/passage.py",
        "n_words(text[: pair[0]]) <= most",
        "True",
    ),
    Break(
        "maps of what heads add have a scale of their own",
        "analysis/experiments/attribution.py",
        "vmax=largest",
        "vmax=abs(mean).max()",
    ),
    Break(
        "lists of the same entries are a line each",
        "analysis/pages/section.py",
        "len(labels) >= (LONG if len(numbers) > 1 else SHOWN)",
        "False",
    ),
    Break(
        "a model of pictures is shown the questions of texts",
        "analysis/pages/report.py",
        "registry.of_model(experiment, model)",
        "experiment",
    ),
    Break(
        "live page: top_k and top_p leave no guess out",
        "analysis/live/guesses.py",
        "sampling.temperature > 0 and sampling.top_k is None and sampling.top_p is None",
        "sampling.temperature > 0",
    ),
    Break(
        "tokens that may be drawn: probabilities do not sum to 1",
        NEXT_TOKEN,
        "p / p.sum(axis=-1, keepdims=True)",
        "p",
    ),
    Break(
        "live page: a model of dates begins with prose",
        LIVE_SERVER,
        "own_texts.sentence(model)",
        "None",
    ),
    Break(
        "live page: the Python draws at temperature 0",
        AS_PYTHON,
        "sampling._asdict().items()",
        "Sampling()._asdict().items()",
    ),
    Break(
        "rows that begin later are told from the first",
        "analysis/drawing/sentences.py",
        "numbers[self.first :]",
        "numbers[0:]",
    ),
    Break(
        "a history of any format is read",
        "minitx/training/saved.py",
        "record.get('format', FORMAT)",
        "FORMAT",
    ),
    Break(
        "a parameter's former name is taken without a warning",
        "minitx/deprecation.py",
        "warnings.warn(text, DeprecationWarning, stacklevel=2)",
        "pass",
    ),
    Break(
        "after a figure no garbage is looked for any more",
        DRAW,
        "gc.enable()",
        "gc.disable()",
    ),
    Break(
        "the story does not say which tests of its question show nothing",
        "analysis/pages/story.py",
        "answer.verdict not in verdict.EFFECTS",
        "False",
    ),
    Break(
        "a table of zeros is looked at for waves",
        "analysis/measures/inputs.py",
        "(table == table[0]).all()",
        "False",
    ),
    Break(
        "figures of a dark page are white sheets",
        "analysis/pages/tokens.py",
        "'invert(.9) hue-rotate(180deg)'",
        "'none'",
    ),
]
