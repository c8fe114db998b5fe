"""Detectors of heads: what was built in is named, formulas by hand, nulls, every kind of stack."""

import typing

import made
import numpy as np
import pytest
import tiny

import minitx
from minitx import circuits
from minitx.circuits import detectors
from minitx.circuits.repeated import RandomTexts

KINDS = typing.get_args(detectors.Kind)


def test_the_heads_that_were_made_are_named():
    scores = circuits.detect_heads(made.induction(), ("previous", "duplicate", "induction"))
    assert scores["previous"][0, 0] > 0.99 and scores["induction"][1, 1] > 0.97
    for kind, head in (("previous", (0, 0)), ("induction", (1, 1))):
        values = np.array(scores[kind])
        values[head] = 0
        assert values.max() < 0.12 and scores[kind].null.max() < 0.12, kind  # measured: 0.08
    assert scores["duplicate"].max() < 0.05


def test_copying_is_seen_in_the_weights():
    scores = circuits.detect_heads(made.induction(), "copying")["copying"]
    assert abs(scores[1, 1] - 1) < 1e-9
    assert np.isnan(scores[0, 1])  # it writes nothing


@pytest.mark.parametrize("variant", ["gpt2-causal", "llama-grouped"])
def test_eigenvalues_are_those_of_the_large_matrix(variant):
    model = tiny.load(variant)
    scores = circuits.detect_heads(model, ["copying"])["copying"]
    cfg, w = model.config, model.layers[1]
    d, group = cfg.d_head, cfg.n_heads // cfg.n_kv
    for h in range(cfg.n_heads):
        W_V = w.W_V[:, h // group * d : (h // group + 1) * d]
        W_O = w.W_O[h * d : (h + 1) * d]
        values = np.linalg.eigvals(model.weights.W_E @ W_V @ W_O @ model.weights.W_U)
        expected = values.sum().real / abs(values).sum()
        assert abs(scores[1, h] - expected) < 1e-9


@pytest.mark.parametrize("variant", ["gpt2-causal", "bert-masked", "bart-causal", "t5-encoder"])
def test_scores_are_means_of_attention(variant):
    """By hand on the same texts; a decoder repeats its target."""
    model = tiny.load(variant)
    scores = circuits.detect_heads(model, KINDS[:-1], n_texts=3, n_tokens=4, seed=5)
    texts = RandomTexts(model, 3, 4, np.random.default_rng(5))
    tokens, first = texts.repeated, texts.first
    assert (tokens[:, first : first + 4] == tokens[:, first + 4 : first + 8]).all()
    assert (texts.others[:, first : first + 4] == tokens[:, first : first + 4]).all()
    trace = minitx.run(model, tokens, "pattern", **texts.options)
    pattern = trace["pattern", 1].mean(axis=0)
    T = tokens.shape[1]
    second = range(first + 4, first + 8)
    looks = {"previous": [(q, q - 1) for q in range(1, T)]}
    looks["first"] = [(q, 0) for q in range(1, T)]
    looks["next"] = [(q, q + 1) for q in range(T - 1)]
    looks["itself"] = [(q, q) for q in range(T)]
    looks["duplicate"] = [(q, q - 4) for q in second]
    looks["induction"] = [(q, q - 3) for q in second]
    for kind, places in looks.items():
        expected = np.mean([pattern[:, q, k] for q, k in places], axis=0)
        assert abs(expected - scores[kind][1]).max() < 1e-14, kind
        assert scores[kind].shape == scores[kind].null.shape
    assert scores["next"].any() == (not model.config.causal)


def test_words_are_random_and_special_tokens_stay_around_them():
    model = minitx.load("tiny-roberta")
    texts = RandomTexts(model, 4, 10, np.random.default_rng(0))
    assert texts.repeated.shape == (4, 22) and texts.first == 1
    assert (texts.repeated[:, 0] == 0).all() and (texts.repeated[:, -1] == 2).all()
    words = texts.repeated[:, 1:11]
    mask = model.tokenizer.encode("<mask>", special=False)
    assert not np.isin(words, [0, 1, 2, *mask]).any()
    assert all(len({*row}) == 10 for row in words.tolist())


def test_the_same_seed_gives_the_same_scores():
    model = tiny.load("gpt2-causal")
    scores, again, other = (circuits.detect_heads(model, seed=seed) for seed in (1, 1, 2))
    for kind in scores:
        assert (scores[kind] == again[kind]).all() and (scores[kind] != other[kind]).any()
        assert (scores[kind].null == again[kind].null).all()
    assert scores["induction"][:1].null is None  # a null belongs to the whole


def test_repeated_tokens_get_easier_where_a_head_looks_for_them():
    score = circuits.in_context_score(made.induction())
    assert abs(score) < 1e-9  # from the second repeated token on, all are as easy
    model = made.induction(sharp=0.0)
    assert abs(circuits.in_context_score(model) - circuits.in_context_score(model).null) < 0.1
    with pytest.raises(ValueError, match="needs a causal head; this model's is 'masked'"):
        circuits.in_context_score(tiny.load("bert-masked"))


WRONG = {
    "unknown kind 'inducing'; available: previous, next": dict(kinds=["inducing"]),
    "n_tokens is 900; this model reads at most": dict(n_tokens=900),
    "n_tokens is 2.5; this model reads at most": dict(n_tokens=2.5),
    "n_tokens is 1;": dict(n_tokens=1),
}


PAIR = [5, 6, 7], [5, 8, 7]
SEEDED = [
    circuits.detect_heads,
    circuits.composition,
    circuits.in_context_score,
    lambda model, seed: circuits.logit_attribution(model, PAIR[0], 5, seed=seed),
    lambda model, seed: circuits.patch(model, *PAIR, (5, 6), seed=seed),
    lambda model, seed: circuits.find(model, [PAIR], (5, 6), seed=seed),
    lambda model, seed: minitx.steering_vector(model, *PAIR, 1, seed=seed),
    lambda model, seed: minitx.top_examples(model, PAIR, ("post", 0), 1, seed=seed),
    lambda model, seed: minitx.fit_probe(
        model, [[i, 7] for i in range(8)], [0, 1] * 4, ("resid_post", 0), seed=seed
    ),
]


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
@pytest.mark.parametrize("call", SEEDED)
def test_what_is_no_seed_is_refused(call, seed):
    with pytest.raises(ValueError, match=f"seed={seed!r}; wanted a whole number of at least 0"):
        call(tiny.load("gpt2-causal"), seed=seed)


@pytest.mark.parametrize("message", WRONG)
def test_bad_requests_are_refused(message):
    with pytest.raises(ValueError, match=message):
        circuits.detect_heads(tiny.load("gpt2-causal"), **WRONG[message])


def test_copying_needs_a_vocabulary():
    with pytest.raises(ValueError, match="needs a head over the vocabulary"):
        circuits.detect_heads(tiny.load("gpt2-bare"), ["copying"])
