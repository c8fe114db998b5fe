"""A generation with edits, token by token the same as whole passes; what is kept, the same, too.

Float64: passes over a cache and whole ones differ by the shapes of their products: measured at most
6e-15 of the largest value, bound 1e-12.
"""

import numpy as np
import parity
import pytest
import tiny

import minitx
from minitx.config_parts import NOTHING_SET
from minitx.points import name_of

GENERATE = [name for name in parity.VARIANTS if tiny.load(name).config.task_head == "causal"]
BOUND = 1e-12


def edits(model):
    """Edits of every kind: of the stream, of a head, of what it writes, one number, in a source."""

    def moved(x):
        return x + 0.5 * np.cos(np.arange(x.shape[-1]))

    def without_last_head(x):
        x[:, -1] = 0
        return x

    last = model.config.n_layers - 1
    changes = {("resid_post", 0): moved, ("z", last): without_last_head, ("mlp_out", last): 0.1}
    changes["head_out", 0] = lambda x: x * 0.7
    if model.encoder is not None:
        changes |= {("enc_mlp_out", 0): 0, ("cross_z", 0): without_last_head}
    return changes


def whole(model, ids, given, keep, changes):
    """A pass of all tokens; given: `valid` of the prompt, and a source."""
    more = ids.shape[1] - given["valid"].shape[1]
    valid = np.pad(given["valid"], ((0, 0), (0, more)), constant_values=True)
    return minitx.run(model, ids, keep, changes, **given | {"valid": valid})


@pytest.mark.parametrize("variant", GENERATE)
def test_every_token_is_that_of_a_whole_pass(variant):
    """Two prompts, padded on the left; sources padded on the right."""
    model, n = tiny.load(variant), 5
    tokens, given = tiny.texts(model, source_side="right")
    changes = edits(model)
    keep = [*tiny.computed(model), "head_out"]
    ids, trace = minitx.generate(
        model, tokens, n, edits=changes, keep=keep, stop=-1, ignore_settings=True, **given
    )
    assert ids.shape == (2, tokens.shape[1] + n) and (ids[:, : tokens.shape[1]] == tokens).all()
    assert (trace.tokens == ids).all() and trace.valid.sum() == given["valid"].sum() + 2 * n
    first = tokens.shape[1]
    y = [last_logits(model, ids[:, :t], given, changes) for t in range(first, first + n)]
    y = np.stack(y, axis=1)
    if model.config.generation == NOTHING_SET:
        assert (y.argmax(-1) == ids[:, -n:]).all()
    same = trace["logits"][:, -n - 1 : -1]
    assert abs(same - y).max() < BOUND * abs(y).max()
    expected = dict(whole(model, ids, given, keep, changes))
    assert abs(whole(model, ids, given, "logits", None)["logits"] - expected["logits"]).max() > 1e-3
    if any(turn is not None and turn.reach for turn in model.config.rotary):
        expected["logits"] = trace["logits"]  # of the passes as they were, with other angles
    assert_same(trace, expected)


def last_logits(model, ids, given, changes):
    return whole(model, ids, given, "logits", changes)["logits"][:, -1]


def assert_same(trace, expected):
    """Two traces, where a token is text and a key is seen."""
    assert trace.keys() == expected.keys()
    for key, x in expected.items():
        assert trace[key].shape == x.shape, key
        counts = counted(key, x, trace, expected)
        far = abs(np.where(counts, trace[key], 0) - np.where(counts, x, 0)).max()
        assert far < BOUND * max(abs(x[counts]).max(), 1), key


def counted(key, x, trace, expected):
    """Where the values of a point count: not at padding, not at a hidden key."""
    axes, counts = minitx.POINTS[name_of(key)].axes.split(), np.ones(x.shape, bool)
    if name_of(key).startswith("enc_"):
        return counts & (abs(x) < np.inf)
    if "T" in axes:
        shape = [1 if axis not in "BT" else size for axis, size in zip(axes, x.shape)]
        counts &= trace.valid[: shape[0]].reshape(shape)
    if axes[-1] == "S":
        scores = "cross_scores" if name_of(key).startswith("cross_") else "scores"
        layer = key[1] if isinstance(key, tuple) else 0
        counts &= np.isfinite(expected[scores, layer]).all(axis=(0, 1))
    return counts


def one_of_each_family():
    """The first variant of each family whose folder sets nothing for generation."""
    first: dict[str, str] = {}
    for name in GENERATE:
        cfg = tiny.load(name).config
        if cfg.generation == NOTHING_SET:
            first.setdefault(cfg.model_type, name)
    return [*first.values()]


def test_ten_families_and_more_are_searched():
    assert len(one_of_each_family()) >= 10


@pytest.mark.parametrize("variant", one_of_each_family())
def test_beams_with_edits_are_a_search_of_whole_passes(variant):
    """Two texts, one padded on the left; each step of the search reads each beam from its start."""
    model, n, width = tiny.load(variant), 4, 3
    tokens, given = tiny.texts(model, source_side="right")
    changes = edits(model)
    how = {"num_beams": width, "stop": -1}
    ids = minitx.generate(model, tokens, n, edits=changes, **how, **given)
    for i, prompt in enumerate(tokens):
        own = {name: x[i : i + 1] for name, x in given.items()}
        assert ids[i, -n:].tolist() == searched(model, prompt, own, n, width, changes)


def searched(model, prompt, given, n, width, changes):
    """The likeliest n tokens that a beam search finds, by whole passes."""
    beams = [(0.0, [])]
    for _ in range(n):
        longer = []
        for score, new in beams:
            ids = np.append(prompt, np.array(new, int))[None]
            y = last_logits(model, ids, given, changes)[0]
            y = y - np.logaddexp.reduce(y)
            longer += [(score + y[i], [*new, int(i)]) for i in np.argsort(-y)[:width]]
        beams = sorted(longer, reverse=True)[:width]
    return beams[0][1]


@pytest.mark.parametrize("variant", ["gpt2-causal", "llama-grouped", "bart-causal", "t5-gated"])
@pytest.mark.parametrize(
    "how", [{}, {"num_beams": 3}, {"temperature": 1.0, "seed": 3}], ids=["one", "beams", "drawn"]
)
def test_a_head_that_is_edited_is_one_that_is_not_there(variant, how):
    """The same ids as a model in whose weights the head writes nothing; the trace is of these."""
    model, n = tiny.load(variant), 5
    tokens, given = tiny.texts(model, source_side="right")
    W_O = model.layers[1].W_O.copy()
    W_O[-model.config.d_head :] = 0
    without = tiny.with_weights(model, {1: {"W_O": W_O}})
    off = {("head_out", 1): edits(model)["z", model.config.n_layers - 1]}
    expected = minitx.generate(without, tokens, n, **how, **given)
    assert (minitx.generate(model, tokens, n, edits=off, **how, **given) == expected).all()
    keep = ["resid_post", "pattern", "scores"]
    ids, trace = minitx.generate(model, tokens, n, edits=off, keep=keep, **how, **given)
    assert (ids == expected).all() and (trace.tokens == expected).all()
    again = whole(without, ids, given, keep, None)
    for key in ("resid_post", 0), ("resid_post", 1):
        far = abs(trace[key] - again[key])[trace.valid].max()
        assert far < BOUND * abs(again[key]).max()


@pytest.mark.parametrize("num_beams", [1, 2])
def test_edits_see_the_prompt_then_one_token_a_pass(num_beams):
    model, shapes = tiny.load("gpt2-causal"), []

    def seen(x):
        shapes.append(x.shape[:3])
        return x

    given = {"num_beams": num_beams, "edits": {("scores", 1): seen}}
    ids = minitx.generate(model, [5, 6, 7], 3, **given)
    H, rows = model.config.n_heads, num_beams
    assert shapes == [(1, H, 3), (rows, H, 1), (rows, H, 1)]
    assert (ids == minitx.generate(model, [5, 6, 7], 3, num_beams=num_beams)).all()


def test_logits_may_be_edited():
    """A token that is forbidden by an edit never comes."""
    model = tiny.load("gpt2-causal")
    tokens, given = tiny.texts(model)
    likeliest = minitx.generate(model, tokens, 4, **given)[0, -4]

    def forbidden(y):
        y[..., likeliest] = -1e9
        return y

    for beams in (1, 2):
        how = {"edits": {"logits": forbidden}, "num_beams": beams}
        ids = minitx.generate(model, tokens, 4, **how, **given)
        assert likeliest not in ids[:, -4:]


def test_what_is_kept_of_texts_of_several_lengths_that_end():
    model = tiny.load("gpt2-causal")
    rows = [[3, 4, 5, 6], [7, 8]]
    stop = int(minitx.generate(model, [rows[1]], 3)[0, 3])
    ids, trace = minitx.generate(model, rows, 3, stop=stop, keep=["embed", ("q", -1)])
    for i, row in enumerate(ids):
        assert (trace.tokens[i][trace.valid[i]] == row).all()
    assert trace["q", -1].shape[2] == trace.tokens.shape[1] and len(trace) == 2
    assert (trace["embed"] == model.weights.W_E[trace.tokens]).all()


def test_a_prompt_alone_is_a_trace_too():
    model = tiny.load("gpt2-causal")
    ids, trace = minitx.generate(model, [3, 4, 5], 0, keep="logits")
    assert (ids == [3, 4, 5]).all()
    assert np.array_equal(trace["logits"], minitx.run(model, [3, 4, 5], "logits")["logits"])
    ids, trace = minitx.generate(model, [3, 4, 5], 2, keep=[])
    assert trace.tokens.shape == (1, 5) and not len(trace)


def test_what_cannot_be_is_refused_before_work():
    model = tiny.load("gpt2-causal")
    error = r"'resid_post', 0\) is an array \[3, 32\], .*different numbers of tokens; .*one number"
    with pytest.raises(ValueError, match=error):
        minitx.generate(model, [3, 4, 5], 2, edits={("resid_post", 0): np.zeros((3, 32))})
    with pytest.raises(ValueError, match="unknown point 'resid'"):
        minitx.generate(model, [3, 4], 2, keep="resid")
    n = model.config.n_ctx - 1
    minitx.generate(model, [3, 4], n)
    with pytest.raises(ValueError, match="and keep reads the last, too; this model reads"):
        minitx.generate(model, [3, 4], n, keep="q")
