"""Pieces through a cache equal one pass; continued texts follow the model's own probabilities.

Cached and whole passes differ by the shapes of their matrix products only: measured 9e-15 in
float64, bound 1e-12.
"""

import numpy as np
import pytest
import tiny
from cached import PADDED, Failing, cuts, in_pieces, splits
from scipy.stats import chi2

import minitx
from minitx.kernels import softmax_
from minitx.sampling import Sampling

CAUSAL = ["gpt2-causal", "gpt2-inverse-layer", "gpt2-unscaled", "gpt2-untied", "gpt2-bare"]


@pytest.fixture(scope="module")
def model():
    return tiny.load("gpt2-untied")  # with a head of its own it repeats itself less than the others


@pytest.mark.parametrize("variant", CAUSAL)
@pytest.mark.parametrize("mask", [None, lambda q, k: (q - k) % 3 != 1], ids=["all", "masked"])
def test_any_pieces_are_one_pass(variant, mask):
    """All 32 splits of 6 tokens, in a batch with padding on the left, in the middle and right."""
    model = tiny.load(variant)
    tokens = tiny.ids(model, 4, 6)
    for types in (None, tiny.ids(model, 4, 6, seed=1)):

        def own(piece, types=types):
            cut = None if types is None else types[:, piece]
            return {"valid": PADDED[:, piece], "types": cut, "mask": mask}

        whole = minitx.forward(model, tokens, **own(slice(None)))
        for pieces in splits(6):
            parts = in_pieces(model, pieces, tokens, own)
            np.testing.assert_allclose(parts[PADDED], whole[PADDED], rtol=0, atol=1e-12)


def test_explicit_positions_and_mask_arrays_with_a_cache(model):
    tokens = tiny.ids(model, 2, 6)
    positions = np.array([[3, 4, 5, 9, 0, 1], [0, 0, 0, 7, 8, 2]])
    mask = np.random.default_rng(0).random((6, 6)) < 0.7

    def own(piece):
        return {"positions": positions[:, piece], "mask": mask[piece, : piece.stop]}

    parts = in_pieces(model, cuts(0, 2, 3, 6), tokens, own)
    whole = minitx.forward(model, tokens, positions=positions, mask=mask)
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-12)


def test_a_cache_outgrows_its_first_capacity(tmp_path):
    """300 tokens one by one, past every doubling, equal one pass."""
    longer = tiny.edited(transformer__wpe__weight=np.random.default_rng(0).normal(size=(300, 18)))
    folder = tiny.make(tmp_path, "gpt2-causal", longer, n_positions=300)
    model = minitx.load(folder, dtype=np.float64)
    tokens = tiny.ids(model, 2, 300)
    whole = minitx.forward(model, tokens)
    parts = in_pieces(model, cuts(*range(201), 299, 300), tokens)
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-12)


def test_a_refused_piece_leaves_the_cache_as_it_was(model):
    tokens = tiny.ids(model, 2, 8)
    cache = minitx.Cache()
    minitx.forward(model, tokens[:, :5], cache=cache)
    for piece, inputs, message in (
        (tokens[:1, 5:], {}, "the cache holds a batch of 2, the new tokens are 1"),
        (tiny.ids(model, 3, 2), {}, "the cache holds a batch of 2, the new tokens are 3"),
        (np.array([[99], [1]]), {}, "99 is out of range"),
        (tiny.ids(model, 2, 8), {}, "13 tokens; this model reads at most 12"),
        (tokens[:, 5:], {"mask": np.ones((3, 3), bool)}, r"\[B H T S\] = \[2, 3, 3, 8\]"),
        (tokens[:, 5:], {"positions": [12, 1, 2]}, "12 is out of range"),
        (tokens[:, 5:], {"valid": np.ones((2, 2), bool)}, r"valid is \[2, 2\]"),
    ):
        with pytest.raises(ValueError, match=message):
            minitx.forward(model, piece, cache=cache, **inputs)
        assert len(cache) == 5
    last = minitx.forward(model, tokens[:, 5:], cache=cache)
    np.testing.assert_allclose(last, minitx.forward(model, tokens)[:, 5:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("other, dtype", [("tiny-stories", None), ("tiny-gpt2", "float64")])
def test_the_keys_of_another_model_are_refused(other, dtype):
    model, cache = minitx.load("tiny-gpt2"), minitx.Cache()
    minitx.forward(model, [5, 6], cache=cache)
    with pytest.raises(ValueError, match="the cache holds keys of another model, or of another"):
        minitx.forward(minitx.load(other, dtype=dtype), [7], cache=cache)
    last = minitx.forward(minitx.load("tiny-gpt2"), [7], cache=cache)  # another copy of the same
    np.testing.assert_allclose(last[0, 0], minitx.forward(model, [5, 6, 7])[0, 2], atol=1e-5)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("held", [0, 5])
def test_a_pass_that_is_broken_off_adds_nothing_to_the_cache(model, error, held):
    """At any of its intermediates: what comes next is what a cache gives that never saw it."""
    tokens = tiny.ids(model, 2, 8)

    def last(n):  # the pass after one that broke off at its n-th intermediate; None: after none
        cache = minitx.Cache()
        if held:
            minitx.forward(model, tokens[:, :held], cache=cache)
        if n is not None:
            with pytest.raises(error):
                minitx.forward(model, tokens[::-1, 1:4], cache=cache, hook=Failing(n, error))
            assert len(cache) == held
        return minitx.forward(model, tokens[:, held:], cache=cache)

    whole = last(None)
    passes = []
    minitx.forward(model, tokens, hook=lambda name, x, layer=None: passes.append(name) or x)
    assert passes[-1] == "ln_final" and len(passes) > 20
    for n in range(len(passes)):
        assert np.array_equal(last(n), whole), passes[n]


@pytest.mark.parametrize("variant", ["bert-masked", "roberta-masked", "distilbert-masked"])
def test_a_cache_needs_a_causal_model(variant):
    message = "a cache needs a causal model; in .* old tokens see new ones"
    with pytest.raises(ValueError, match=message):
        minitx.forward(tiny.load(variant), [4, 5], cache=minitx.Cache())


# --- generate


def test_prompts_of_different_lengths_continue_as_each_alone(model):
    prompts = [tiny.ids(model, n, seed=n).tolist() for n in (3, 6, 1)]
    alone = [minitx.generate(model, prompt, 5).tolist() for prompt in prompts]
    arrays = tuple(map(np.array, prompts))
    assert [row.tolist() for row in minitx.generate(model, prompts, 5)] == alone
    assert [row.tolist() for row in minitx.generate(model, arrays, 5)] == alone
    tokens, valid, _ = tiny.padded(prompts, "left", fill=7)
    batch = minitx.generate(model, tokens, 5, valid=valid)
    assert batch.shape == (3, 11)
    assert [row[6 - len(p) :].tolist() for row, p in zip(batch, prompts)] == alone
    assert len({tuple(row[-5:]) for row in alone}) > 1


def test_shapes_and_no_new_tokens(model):
    single = [4, 5, 6]
    pair = [[4, 5, 6], [7, 8, 9]]
    new = minitx.generate(model, single, 2)
    assert new.shape == (5,) and new.dtype.kind == "i"
    assert minitx.generate(model, pair, 2).shape == (2, 5)
    assert minitx.generate(model, single, 0).tolist() == single
    assert minitx.generate(model, pair, 0).tolist() == pair
    unequal = [[4], [5, 6]]
    assert [row.tolist() for row in minitx.generate(model, unequal, 0)] == unequal


SETTINGS = [
    dict(temperature=1.0),
    dict(temperature=2.0, top_k=5),
    dict(temperature=0.7, top_p=0.8),
    dict(temperature=1.5, top_k=20, top_p=0.9),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_same_seed_gives_the_same_tokens(model, settings):
    tokens = tiny.ids(model, 6, 3)
    first = minitx.generate(model, tokens, 8, seed=3, **settings)
    assert (first == minitx.generate(model, tokens, 8, seed=3, **settings)).all()
    assert (first != minitx.generate(model, tokens, 8, seed=4, **settings)).any()


def test_the_narrowest_choice_is_greedy(model):
    tokens = tiny.ids(model, 4, 3)
    greedy = minitx.generate(model, tokens, 6)
    wide = dict(temperature=3.0)
    for narrow in (wide | dict(top_k=1), wide | dict(top_p=1e-9), dict(temperature=1e-6)):
        assert (minitx.generate(model, tokens, 6, seed=0, **narrow) == greedy).all()
    assert (minitx.generate(model, tokens, 6, seed=0, **wide) != greedy).any()


def allowed(p, top_k=None, top_p=None):
    """Keep the k likeliest tokens, of these the fewest that hold p, and scale them to sum 1."""
    kept = sorted(range(len(p)), key=lambda i: -p[i])[:top_k]
    q = {i: p[i] / sum(p[j] for j in kept) for i in kept}
    if top_p is not None:
        kept = []
        held = 0.0
        for i, share in q.items():
            if held < top_p:
                kept.append(i)
            held += share
        q = {i: q[i] / sum(q[j] for j in kept) for i in kept}
    return np.array([q.get(i, 0.0) for i in range(len(p))])


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_probabilities_are_those_of_the_tokens_that_may_be_drawn(model, settings):
    y = minitx.run(model, tiny.ids(model, 4), ["logits"])["logits"][0]
    ids, p = Sampling(**settings).probabilities(y)
    rules = {name: value for name, value in settings.items() if name != "temperature"}
    for row, kept, given in zip(y, ids, p):
        wanted = allowed(softmax_(row / settings["temperature"]), **rules)
        assert np.abs(given - wanted[kept]).max() < 1e-6  # of float32 logits; measured 6e-8
        assert given.sum() == pytest.approx(1) and (np.diff(given) <= 0).all()


@pytest.mark.parametrize("temperature", [0.0, 1e-320])  # divided by the second, logits overflow
def test_at_temperature_0_one_token_has_all(temperature):
    y = np.array([[0.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    ids, p = Sampling(temperature).probabilities(y)
    assert (ids.tolist(), p.tolist()) == ([[1], [0]], [[1.0], [1.0]])


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_frequencies_are_the_probabilities(model, settings):
    """8,000 draws of a token: chi-square below its 99.99% point, and only allowed tokens drawn."""
    n = 8_000
    prompt = tiny.ids(model, 4)
    y = minitx.run(model, prompt, ["logits"])["logits"][0, -1]
    rules = {name: value for name, value in settings.items() if name != "temperature"}
    p = allowed(softmax_(y / settings["temperature"]), **rules)
    drawn = minitx.generate(model, np.tile(prompt, (n, 1)), 1, seed=1, **settings)[:, -1]
    counts = np.bincount(drawn, minlength=len(p))
    assert not counts[p == 0].any() and (p > 0).sum() > 2
    often = p * n >= 5  # the rare tokens are counted as one cell, which may be empty
    observed, expected = (np.append(x[often], x[~often].sum()) for x in (counts, p * n))
    possible = expected > 0
    statistic = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
    assert statistic < chi2.ppf(0.9999, possible.sum() - 1)


def test_a_stop_token_ends_a_row(model):
    """In an array the ended row is filled up with it; lists of different lengths end there."""
    prompts = [tiny.ids(model, n).tolist() for n in (3, 6, 1)]
    free = [minitx.generate(model, prompt, 6)[len(prompt) :].tolist() for prompt in prompts]
    stop = free[0][2]
    # two rows end, and would have gone on
    assert stop in free[1][:4] and stop not in free[0][3:] + free[2]
    ended = [row[: row.index(stop) + 1] if stop in row else row for row in free]
    rows = minitx.generate(model, prompts, 6, stop=stop)
    assert [row[len(p) :].tolist() for row, p in zip(rows, prompts)] == ended
    tokens, valid, _ = tiny.padded(prompts, "left")
    width = max(map(len, ended))
    array = minitx.generate(model, tokens, 6, valid=valid, stop=stop)
    assert array[:, 6:].tolist() == [row + [stop] * (width - len(row)) for row in ended]
    at_once = minitx.generate(model, prompts[0], 6, stop=free[0][0])
    assert at_once.tolist() == [*prompts[0], free[0][0]]
    other = next(i for i in range(61) if i not in free[0])
    assert minitx.generate(model, prompts[0], 3, stop=other)[3:].tolist() == free[0][:3]


@pytest.mark.parametrize(
    "prompt,n,settings,message",
    [
        ([1, 2], 12, {}, "2 tokens and 12 new ones; this model reads at most 12"),
        ([[1, 2], [3]], 12, {}, "2 tokens and 12 new ones; this model reads at most 12"),
        ([1] * 13, 1, {}, "13 tokens and 1 new ones; this model reads at most 12"),
        ([1, 2], -1, {}, "n=-1.*wanted n >= 0"),
        ([1, 2], 2.5, {}, "n=2.5.*wanted n >= 0"),
        ([1, 2], 2, dict(temperature=-1), "temperature=-1.*wanted .*temperature >= 0"),
        ([1, 2], 2, dict(temperature=float("nan")), "temperature=nan.*wanted .*temperature >= 0"),
        ([1, 2], 2, dict(temperature=1, top_k=0), "top_k=0.*top_k >= 1"),
        ([1, 2], 2, dict(temperature=1, top_k=2.5), "top_k=2.5.*top_k >= 1"),
        ([1, 2], 2, dict(temperature=1, top_p=0), "top_p=0.*0 < top_p <= 1"),
        ([1, 2], 2, dict(temperature=1, top_p=1.5), "top_p=1.5"),
        ([1, 2], 2, dict(temperature=1, top_p=float("nan")), "top_p=nan"),
        ([1, 2], 2, dict(temperature="hot"), "temperature='hot'.*wanted .*temperature >= 0"),
        ([1, 2], "5", {}, "n='5', .*n and top_k whole"),
        ([1, 2], 2, dict(temperature=1, top_p="x"), "top_p='x'.*0 < top_p <= 1"),
        ([1, 2], 2, dict(seed="x"), "seed='x'; wanted a whole number of at least 0, or None"),
        ([1, 2], 2, dict(seed=-1), "seed=-1; wanted a whole number"),
        ([1, 2], 2, dict(seed=1.5), "seed=1.5; wanted a whole number"),
        ([1, 2], 2, dict(stop="."), r"stop='\.'; wanted a token id from 0 to 60"),
        ([1, 2], 2, dict(stop=61), "stop=61; wanted a token id from 0 to 60"),
        (5, 2, {}, r"tokens are \[\]; wanted \[T\] or \[B T\]"),
        (1.5, 2, {}, "token ids are float64; wanted whole numbers"),
        ([], 2, {}, r"tokens are \[0\]; wanted .* at least one token"),
        ([[], [1]], 2, {}, "prompt 0 is empty; wanted at least one token"),
        ([[1], [2, 99]], 2, {}, "token ids: 99 is out of range"),
        ([[1], [2, 3]], 2, dict(valid=[[1]]), "valid goes with an array of token ids"),
        (
            [[1, 2], [3, 4]],
            2,
            dict(valid=[[1, 1], [1, 0]]),
            "a row ends in padding; pad prompts on the left",
        ),
        ([[1.5, 2], [3, 4]], 2, {}, "token ids are float64"),
    ],
)
def test_prompts_and_settings_that_are_refused(model, prompt, n, settings, message):
    with pytest.raises(ValueError, match=message):
        minitx.generate(model, prompt, n, **settings)


@pytest.mark.parametrize(
    "variant,head",
    [("bert-masked", "'masked'"), ("gpt2-bare", "None"), ("gpt2-sequence", "'sequence'")],
)
def test_generate_needs_a_causal_language_model(variant, head):
    message = f"generate needs a causal language model; this one has head {head}"
    with pytest.raises(ValueError, match=message):
        minitx.generate(tiny.load(variant), [4, 5], 2)


def test_a_longer_text_than_the_model_reads_is_possible_under_padding(model):
    """Only text counts towards the limit: a row of 4 tokens in 20 columns goes on for 9."""
    row = tiny.ids(model, 4)
    tokens, valid, _ = tiny.padded([row], "left", width=20)
    continued = minitx.generate(model, tokens, 9, valid=valid)[0, 16:]
    assert continued.tolist() == minitx.generate(model, row, 9).tolist()
    with pytest.raises(ValueError, match="4 tokens and 10 new ones"):
        minitx.generate(model, tokens, 10, valid=valid)
