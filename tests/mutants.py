"""Is the suite able to fail? One deliberate break of one line at a time; it must notice each.

    python tests/mutants.py [WORD ...]    all of them, or those whose description has one of the words

Read downward: the list, then how one break is tried: on a copy of the project, the likeliest tests first, up
to the first failure. Among the breaks is one that changes nothing, and must pass. Exit code 0 only if all
came out as wanted. A line to be broken that is no longer there is an error, so the list cannot rot.
"""
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOTHING = "nothing at all"
QUICK = {"test_parity.py", "test_forward.py"}  # and they notice most
CORE = {"test_cache_generate.py", "test_checkpoint.py", "test_counts.py"}  # then these, before all experiments
NOT_HERE = "test_mutants.py"                   # it looks for the lines as they stand
LIMIT = 600  # seconds for test files, which take four minutes together; a single test has fewer, see setup.cfg
CONFIG, KERNELS, THREADS, MODEL, CACHE, CHECKPOINT, TEXT, TRACE, GENERATE = (
    f"minitx/{name}.py" for name in "config kernels threads model cache checkpoint text trace generate".split())

# what goes wrong | file | the line's text | what takes its place
MUTANTS = [
    (NOTHING, MODEL, "# the tap of a run that nobody watches", "# the tap of a run without a trace"),

    # positions
    ("RoBERTa's first token reads row 0", CONFIG, "offset=pad + 1", "offset=0"),
    ("RoBERTa's first token reads row 2, whatever its pad id", CONFIG, "offset=pad + 1", "offset=2"),
    ("a pad id inside a RoBERTa text takes a position", MODEL, "valid & (tokens != cfg.pad)", "valid"),
    ("padding on the left takes positions", MODEL, "np.cumsum(takes_position, 1) - 1  #",
     "np.arange(tokens.shape[1]) + 0 * takes_position  #"),
    ("RoBERTa reads as many tokens as its table has rows", CONFIG,
     'n_ctx=get("max_position_embeddings") - pad - 1', 'n_ctx=get("max_position_embeddings")'),
    ("one token too many is let through", MODEL, "numbers.max() < cfg", "numbers.max() <= cfg"),
    ("explicit positions forget the offset", MODEL, "positions + cfg.offset, numbers.shape",
     "positions, numbers.shape"),

    # token types
    ("no token type is added where none is given", CONFIG, 'type_vocab_size"), default_type=0',
     'type_vocab_size"), default_type=None'),
    ("GPT-2 adds a word embedding for token type 0", CONFIG, 'n_types=get("vocab_size")',
     'n_types=get("vocab_size"), default_type=0'),
    ("the tokenizer's zeros reach GPT-2 as token types", TEXT, "None if config.default_type is None else t",
     "t"),

    # activations
    ("exact gelu becomes the tanh form", KERNELS, '"gelu": gelu_,', '"gelu": gelu_tanh_,'),
    ("GPT-2's gelu becomes the exact one", KERNELS, '"gelu_new": gelu_tanh_', '"gelu_new": gelu_'),
    ("float64 gelu takes the float32 fit", KERNELS, "if x.dtype == np.float64:", "if False:"),
    ("the float32 fit of gelu is off in the third digit", KERNELS, "0.7978860305", "0.7988860305"),
    ("RoBERTa's head uses the MLP's activation", CONFIG, 'head_act="gelu",', ""),
    ("relu lets negative values through", KERNELS, '"relu": lambda x: np.maximum(x, 0.0, out=x)',
     '"relu": lambda x: np.maximum(x, -0.01, out=x)'),

    # norms
    ("GPT-2's epsilon is BERT's", CONFIG, 'eps=get("layer_norm_epsilon")', "eps=1e-12"),
    ("DistilBERT's epsilon is GPT-2's", CONFIG, "n_types=0, eps=1e-12", "n_types=0, eps=1e-5"),
    ("a missing epsilon is guessed", CONFIG, 'get("layer_norm_eps")', 'get("layer_norm_eps", 1e-12)'),
    ("sample variance instead of population variance", KERNELS, "/ x.shape[-1] + eps",
     "/ (x.shape[-1] - 1) + eps"),
    ("epsilon is added to the deviation", KERNELS, "x.shape[-1] + eps)", "x.shape[-1]) + eps"),
    ("BERT's norm comes before the addition", MODEL, "ln1(x + attn(x))", "x + ln1(attn(x))"),
    ("GPT-2's second norm is left out", MODEL, "x + ffn(ln2(x))", "x + ffn(x)"),
    ("GPT-2 without its final norm", MODEL, "at) if model.config.pre_norm else x", "at) if False else x"),
    ("the two norms of a BERT layer are swapped", CHECKPOINT, '"ln1": "attention.output.LayerNorm"',
     '"ln1": "output.LayerNorm"'),

    # attention
    ("GPT-2's square output matrix is transposed", CHECKPOINT, '"O": "attn.c_proj"', '"O": "attn.c_proj.T"'),
    ("BERT's square output matrix is not transposed", CHECKPOINT, '"O": "attention.output.dense.T"',
     '"O": "attention.output.dense"'),
    ("keys and values of the fused matrix are swapped", CHECKPOINT, '"K": "attn.c_attn/1"',
     '"K": "attn.c_attn/2"'),
    ("the fused matrix is read interleaved", CHECKPOINT, "array[..., int(theirs[-1]) * last:][..., :last]",
     "array[..., int(theirs[-1])::3]"),
    ("scores are not scaled", CONFIG, "self.d_head ** -0.5 if self.scale_attn else 1.0", "1.0"),
    ("scores are scaled by the whole width", CONFIG, "self.d_head ** -0.5", "self.d_model ** -0.5"),
    ("scale_attn_weights is not read", CONFIG, 'get("scale_attn_weights", True)', "True"),
    ("the inverse layer index starts at zero twice", CONFIG, "(layer + 1 if", "(max(layer, 1) if"),
    ("heads are cut the wrong way", MODEL, "cfg.n_heads, cfg.d_head).swapaxes(1, 2)",
     "cfg.d_head, cfg.n_heads).swapaxes(1, 3)"),
    ("heads are joined in the wrong order", MODEL, "z.swapaxes(1, 2).reshape(x.shape)", "z.reshape(x.shape)"),
    ("a token sees the one to its right", MODEL, "<= np.arange(S - T, S)", "<= 1 + np.arange(S - T, S)"),
    ("BERT looks to the left only", MODEL, "if cfg.causal:", "if True:"),
    ("padding is attended to", MODEL, "seen = keys[:, None, None, :]",
     "seen = keys[:, None, None, :] | True"),
    ("the user's mask is not applied", MODEL, "seen = seen & mask", "pass"),
    ("a row whose keys are all hidden gives NaN", KERNELS, "top[np.isneginf(top)] = 0.0", "pass"),
    ("a row whose keys are all hidden divides by zero", KERNELS, "total[total == 0] = 1.0", "pass"),
    ("in batches the softmax works on a copy that is lost", KERNELS, "x.shape[-1], copy=False)",
     "x.shape[-1]).copy()"),
    ("softmax trusts sums at the lower end of float32", KERNELS, "total.min() > 1e-20", "total.min() > 0"),
    ("softmax trusts sums that are infinite", KERNELS, " and total.max() < 1e30", ""),
    ("scores become float64 in a float32 model", MODEL, "q * cfg.attn_scale(w.index)",
     "q * np.float64(cfg.attn_scale(w.index))"),

    # heads
    ("an output embedding in the file is passed over for the word embedding", CHECKPOINT,
     "tied is not None and not self.find(theirs)", "tied is not None"),
    ("a tied head is missing its matrix", CHECKPOINT, 'tied = getattr(body["W_E"], "T", None)',
     'tied = getattr(body["W_E"], "TT", None)'),
    ("BERT's unused output bias is added", CHECKPOINT, "cls.predictions.decoder.bias|cls.predictions.bias",
     "cls.predictions.bias|cls.predictions.decoder.bias"),
    ("RoBERTa's output bias is not known under its other name", CHECKPOINT,
     '"b_U": "lm_head.decoder.bias|lm_head.bias"', '"b_U": "lm_head.bias"'),
    ("the output bias is left out", MODEL, "linear(x, w.W_U, w.b_U)", "linear(x, w.W_U)"),
    ("BERT classifies without tanh", CHECKPOINT, 'sequence_act="tanh"', 'sequence_act="relu"'),
    ("DistilBERT classifies without relu", CHECKPOINT, 'sequence_act="relu"', 'sequence_act="tanh"'),
    ("GPT-2 classifies by its first token", MODEL, "x.shape[1] - 1 - valid[:, ::-1].argmax(1) if cfg.causal",
     "valid.argmax(1) if cfg.causal"),
    ("GPT-2 classifies by the last column, padding or not", MODEL, "- valid[:, ::-1].argmax(1) if",
     "- 0 * valid[:, 0] if"),
    ("a GPT-2 body without a head gives logits", CHECKPOINT, 'and (not kind or "Head" in kind)', ""),

    # names and files
    ("prefixes of names are not taken off", CHECKPOINT, "name.removeprefix(*prefixes)", 'name.removeprefix("bert.")'),
    ("gamma and beta are unknown", CHECKPOINT, 'if "LayerNorm." in plain:', "if False:"),
    ("GPT-2's causal mask is taken for a weight", CHECKPOINT, r"|attn\.bias|", "|"),
    ("BF16 is widened into the lower half", CHECKPOINT, '(raw.astype("<u4") << 16)', 'raw.astype("<u4")'),
    ("F16 is read as BF16", CHECKPOINT, '"F16": "<f2"', '"F16": "<u2"'),
    ("a missing shard is no error of its own", CHECKPOINT, "if not (folder / file).is_file()}", "if False}"),
    ("all tensors come from the last shard", CHECKPOINT, "{name: shards[file][name] for name, file in",
     "{name: shards[max(shards)].get(name) for name, file in"),
    ("header and offsets are not checked", CHECKPOINT, 'safe_open(path, "np"), open(path, "rb") as file',
     'open(path, "rb") as file'),
    ("shapes are not checked", CHECKPOINT, "need(array.shape == (wanted :=", "need(() != (wanted :="),
    ("loaded arrays can be written to", CHECKPOINT, "out.flags.writeable = False", "pass"),
    ("a folder with nothing but pickles is called empty", CHECKPOINT, 'p.suffix in (".bin",',
     'p.stem in (".bin",'),
    ("NaN in weights passes the check", CHECKPOINT, "not np.isfinite(array).all()", "False"),

    # config
    ("n_inner null means three widths", CONFIG, "or 4 * get(", "or 3 * get("),
    ("n_inner is not read", CONFIG, 'get("n_inner", None) or', "False or"),
    ("relative positions are ignored", CONFIG, '"position_embedding_type": "absolute", ', ""),
    ("a decoder is run as an encoder", CONFIG, '"is_decoder": False, ', ""),

    # text
    ("truncation stored in tokenizer.json stays on", TEXT, "tokenizer.no_truncation()", "pass"),
    ("padding stored in tokenizer.json stays on", TEXT, "tokenizer.no_padding()", "pass"),
    ("a text that is too long is let through", TEXT, "need(T <= config.n_ctx,", "need(True,"),
    ("<mask> keeps the space on its left", TEXT, 'AddedToken("<mask>", lstrip=True)', 'AddedToken("<mask>")'),
    ("vocab.txt folders are never lower-cased", TEXT, 'lowercase=get("do_lower_case", not capitals)',
     "lowercase=False"),
    ("padding on the left is put on the right", TEXT, "direction=pad", 'direction="right"'),

    # seeing and changing
    ("a kept array is overwritten later", TRACE, "x.copy(order=\"K\") if", "x if"),
    ("an edit is not applied", TRACE, "x = _edited(key, x,", "_edited(key, x,"),
    ("an edit of one layer loses against one of all layers", TRACE, "edit: isinstance(edit[0], tuple)",
     "edit: isinstance(edit[0], str)"),
    ("the estimate forgets the size of a number", TRACE, " * model.weights.W_pos.itemsize", ""),

    ("a partial checkpoint is taken for a whole one", MODEL, "need(not model.missing,", "need(True,"),

    # measuring
    ("a table's rows that no token reaches count as positions", "analysis/inputs.py",
     "W_pos[cfg.offset:cfg.offset + cfg.n_ctx]", "W_pos[:cfg.n_ctx]"),

    ("queries and keys change places in the lag", "analysis/lags.py", "irfft(Q.conj() * K", "irfft(Q * K.conj()"),
    ("correlations keep their mean", "analysis/lags.py", "(covariance - covariance.mean(axis=-2, keepdims=True)) / ",
     "covariance / "),
    ("scores at long lags count less", "analysis/profiles.py",
     "profiles / np.maximum(T - abs(offsets(reach)), 1)", "profiles / T"),
    ("nearly dependent columns are not made orthonormal again", "analysis/factors.py",
     "(initial=0) < near", "(initial=0) < 1e-2"),
    ("singular directions keep the signs they came with", "analysis/factors.py", "return U_Q * sign, S, U_K * sign",
     "return U_Q * sign, S, U_K"),
    ("null spaces are left as they fell", "analysis/rotation.py", "N_K @ left @ right", "N_K"),
    ("a rotation is drawn turned the other way", "analysis/rotation.py", "R = U_Q.T @ U_K", "R = U_K.T @ U_Q"),
    ("a frozen norm forgets the mean", "analysis/residual.py", "(c - c.mean(-1, keepdims=True)) * scale", "c * scale"),
    ("a norm's bias is lost from the stream", "analysis/residual.py", 'passed["bias"] + b}', 'passed["bias"]}'),
    ("what attention carries is not carried on", "analysis/residual.py", ' + read.get("carried", 0.0)', ""),
    ("an interrupted run begins a document early", "analysis/stream.py", 'int(state.pop("done"))',
     'int(state.pop("done")) - 1'),
    ("the state of other settings is taken", "analysis/stream.py", 'if key != _run.key:', "if False:"),
    ("a second run takes the folder of the first", "analysis/stream.py", "fcntl.LOCK_EX | fcntl.LOCK_NB",
     "fcntl.LOCK_SH"),
    ("a number is compared for any checkpoint", "analysis/published.py",
     "if claim.of and not is_of(name, model, claim.of):", "if False:"),

    ("a mask's weights are not brought to one", "analysis/masks.py",
     '"weights": Meaning("scores", _logs, np.add', '"weights": Meaning("pattern", _same, np.multiply'),
    ("today's library keeps the causal mask", "analysis/masks.py", "np.add, bare=True,", "np.add, bare=False,"),
    ("a recomputed score forgets its scale", "analysis/masking.py", 'now["q"] * model.config.attn_scale(layer)',
     'now["q"]'),
    ("chunks of the vocabulary are added up without their common top", "analysis/losses.py",
     "total * np.exp(top - most)", "total"),
    ("windows of a document count its tokens twice", "analysis/losses.py", "places = np.flatnonzero(number[held] == n)",
     "places = np.flatnonzero(number[held] <= n)"),
    ("documents weigh alike, whatever their length", "analysis/stats.py",
     "np.tensordot(times, above, 1) / np.tensordot(times, below, 1)", "np.tensordot(times, above / below, 1) / N"),
    ("the penalty holds the intercept too", "analysis/stats.py", "mean[-1] - mean[:-2] @ w", "0 * mean[-1]"),
    ("an interval for a share is half as wide", "analysis/logistic.py",
     "np.clip([middle - half, middle + half], 0, 1 + Z", "np.clip([middle - half / 2, middle + half / 2], 0, 1 + Z"),
    ("keys are moved but not scaled", "analysis/joint.py", "(k + np.atleast_1d(a)[..., None, :]) / c",
     "(k + np.atleast_1d(a)[..., None, :])"),

    # continuing
    ("cached positions begin anew", MODEL, "numbers = past +", "numbers ="),
    ("the cache loses what it held when it grows", CACHE, "if old else 0", "* 0 if old else 0"),
    ("a failed call leaves the cache changed", MODEL, "cache.valid = keys  #", "pass  #"),
    ("top_k keeps one token too many", GENERATE, "[:, :top_k]", "[:, :top_k and top_k + 1]"),
    ("top_p drops the token that crosses the line", GENERATE, "np.cumsum(p, -1) - p >= top_p",
     "np.cumsum(p, -1) > top_p"),
    ("temperature multiplies", GENERATE, "astype(np.float64) / temp", "astype(np.float64) * temp"),
    ("the stop token does not stop", GENERATE, "if ended.all():", "if False:"),

    # what holds NumPy back
    ("the tightest group of a container is overlooked", "analysis/doctor.py", "min(found, default=None)",
     "max(found, default=None)"),
    ("a library that answers is not believed", "analysis/doctor.py", "        if threads:", "        if not built:"),
    ("the process without pins keeps them", "analysis/doctor.py", "if name not in PINS}", "if name}"),
    ("stolen time does not count as busy", "analysis/doctor.py", "ticks.split()[:8]]", "ticks.split()[:7]]"),
    ("a pin that slows nothing down is blamed", "analysis/advice.py", 'slower = free["gflops"] >',
     'slower = 2 * free["gflops"] >'),
    ("what a container allows does not limit the threads", "analysis/advice.py",
     'int(facts["quota"] or facts["cores"])', 'facts["cores"]'),
    ("the doctor describes the command line's one thread", "analysis/__main__.py", 'if sys.argv[1:2] != ["doctor"]:',
     "if True:"),

    # threads and memory used again
    ("memory is taken back while a view of it is in use", THREADS, "np.frombuffer(memoryview(memory)",
     "np.frombuffer(memory"),
    ("no memory is used again", THREADS, "weakref.finalize(array, _give_back, memory).atexit = False",
     "pass"),
    ("a text a little shorter finds no memory", THREADS, "size += -size % (1 << size.bit_length() - 3)",
     "size += -size % 8"),
    ("spare memory has no limit", THREADS, "        return _spare.clear()", "        pass"),
    ("an array larger than all spare memory is kept", THREADS, "return _spare.clear()", "_spare.clear()"),
    ("BLAS is left with one thread", THREADS, "_set_threads(count)", "pass"),
    ("pieces and BLAS both take all cores", THREADS, "_set_threads(1)", "pass"),
    ("every thread does all pieces", THREADS, "for i in pieces:", "for i in range(0, n, step):"),
    ("the last piece reaches beyond the end", THREADS, "min(i + step, n)", "i + step"),
    ("the first piece is left out", THREADS, "iter(range(0, n, step))", "iter(range(step, n, step))"),
    ("the pieces of others are not waited for", THREADS, "[ended.get() for _ in begun]", "[]"),
    ("an error in a piece is lost", THREADS, "if errors:", "if False:"),
    ("an error holds the memory of its piece", THREADS, "raise errors.pop()", "raise errors[0]"),
    ("an interrupt is lost behind another error", THREADS, "isinstance(error, Exception))]", "0)]"),
    ("an interrupt at its first line makes a thread wait for itself", THREADS, "try:\n            begun.append(run)",
     "begun.append(run)\n        try:\n            pass"),
    ("an interrupt leaves pieces to the helpers", THREADS, "list(pieces)  # after", "pass  # after"),
    ("a forked process counts on threads of its parent", THREADS, "_teams[os.getpid()]", "_teams[0]"),
    ("where no thread can start, nothing is computed", THREADS, "suppress(RuntimeError)", "suppress(KeyError)"),

    # products, copies
    ("a product is done twice", KERNELS, "        np.matmul(W.T[i:j], rows.T, out=y[i:j])",
     "        np.matmul(W.T[i:j], rows.T, out=y[i:j])\n        np.matmul(W.T[i:j], rows.T, out=y[i:j])"),
    ("a product copies its weight", KERNELS, "np.matmul(W.T[i:j],", "np.matmul(W.T[i:j].copy(),"),
    ("a pass holds another T x T array", MODEL, "scores += hide", "scores = scores + hide"),
    ("softmax works on a copy", MODEL, 'softmax_(at("scores", scores))', 'softmax_(at("scores", scores).copy())'),
    ("what is captured is copied", TRACE, 'x.copy(order="K") if name in _OVERWRITTEN else x', 'x.copy(order="K")'),
    ("logits are computed unasked", TRACE, 'if "logits" in keep:', "if model.config.head:"),
    ("each new token multiplies the vocabulary by the whole prompt", GENERATE, "cache=cache)[:, -1:])[:, 0]",
     "cache=cache))[:, -1]"),
    ("float32 weights are copied", CHECKPOINT, "raw.astype(dtype, copy=False)", "raw.astype(dtype)"),
]


def misplaced():
    """Mutants whose text is not in their file exactly once, as lines of an error."""
    counts = [(ROOT / file).read_text(encoding="utf-8").count(old) for _, file, old, _ in MUTANTS]
    return [f"{file}: the text of {what!r} is there {n} times; wanted once"
            for (what, file, _, _), n in zip(MUTANTS, counts) if n != 1]


def outcome(tree, file, old, new):
    """Break one file in a copy of the project and run the tests: the first one that fails, or None."""
    path = tree / file
    sound = path.read_text(encoding="utf-8")
    path.write_text(sound.replace(old, new), encoding="utf-8")
    try:
        return next(filter(None, (first_failure(tree, tests) for tests in stages(tree, file))), None)
    finally:
        path.write_text(sound, encoding="utf-8")


def stages(tree, file):
    """Test files named after the broken file or its package, and the quick ones; those that import it; all others."""
    there = {path.name: path for path in (tree / "tests").glob("test_*.py") if path.name != NOT_HERE}
    parts = set(Path(file).with_suffix("").parts) - {"analysis"}  # whose tests run every experiment
    near = {name for name in there if name in QUICK or parts & set(name[:-3].split("_"))}
    used = re.compile(rf"^from (?:analysis|minitx)\b.* import .*\b{Path(file).stem}\b", re.M)
    near |= {name for name, path in there.items() if used.search(path.read_text(encoding="utf-8"))}
    return [sorted(tests, key=lambda name: (name not in CORE, name)) for tests in (near, there.keys() - near) if tests]


def first_failure(tree, tests):
    """The first of these tests that fails, or None; RuntimeError if they do not run, or hang (see setup.cfg)."""
    env = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=short", "-rfE", "-p", "no:cacheprovider"]
    command += [f"tests/{name}" for name in tests]
    try:
        done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"the tests did not end in {LIMIT} s:\n{(error.stdout or b'')[-2000:].decode()}") from None
    if done.returncode == 0:
        return None
    if done.returncode == 1 and (failed := re.search(r"^(?:FAILED|ERROR) (?:tests/)?([\w.:]+)", done.stdout, re.M)):
        return failed[1]
    ours = [line for line in done.stderr.splitlines() if "/_pytest/" not in line and "/pluggy/" not in line]
    raise RuntimeError("\n".join(["the tests hung or did not run:", done.stdout[-2000:], *ours[-50:]]))


def tried(trees, mutant):
    """Run one mutant in a free copy and print a line: whether it came out as wanted."""
    what, *change = mutant
    tree, start = trees.get(), time.perf_counter()
    try:
        test = outcome(tree, *change)
        as_wanted = (test is None) == (what == NOTHING)
        verdict = f"noticed by {test}" if test else "unnoticed" + " as it should be" * as_wanted
    except RuntimeError as error:
        as_wanted, verdict = False, error
    finally:
        trees.put(tree)
    seconds = time.perf_counter() - start
    print(f"{'ok ' if as_wanted else 'BAD'} {seconds:5.1f} s  {what}: {verdict}", flush=True)
    return as_wanted


def main(words):
    """Try them two at a time; exit code 0 if every one came out as wanted."""
    if errors := misplaced():
        sys.exit("\n".join(errors))
    chosen = [m for m in MUTANTS if not words or any(word in m[0] for word in words)]
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(2) as pool:
        trees = queue.Queue()
        for i in range(2):
            skip = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "*.egg-info", "report", "out")
            trees.put(shutil.copytree(ROOT, Path(place) / f"copy{i}", ignore=skip))
        results = list(pool.map(lambda mutant: tried(trees, mutant), chosen))
    print(f"{sum(results)} of {len(results)} came out as wanted",
          *("not: " + mutant[0] for mutant, as_wanted in zip(chosen, results) if not as_wanted), sep="\n")
    sys.exit(not all(results))


if __name__ == "__main__":
    main(sys.argv[1:])
