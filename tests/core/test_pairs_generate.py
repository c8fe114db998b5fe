"""Two stacks over a cache: pieces equal one pass, the source is read once, continued texts.

As test_cache_generate.py has it of one stack; measured 9e-15 in float64, bound 1e-12.
"""

from dataclasses import replace

import numpy as np
import pytest
import tiny
from cached import PADDED, Failing, cuts, in_pieces, splits
from spelling import spelling

import minitx

VARIANTS = [*tiny.PAIRS, "bart-scaled", "t5-relu", "t5-gated-tied", "marian-odd"]
CLOSE = dict(rtol=0, atol=1e-12)


@pytest.fixture(params=VARIANTS)
def model(request):
    return tiny.load(request.param)


def four(model):
    """Four targets of 6 tokens, and the inputs of their sources, of different lengths."""
    rows = [tiny.ids(model.encoder, n, seed=n) for n in (7, 2, 4, 5)]
    source, source_valid, _ = tiny.padded(rows, "left")
    return tiny.ids(model, 4, 6), {"source": source, "source_valid": source_valid}


@pytest.mark.parametrize("mask", [None, lambda q, k: (q - k) % 3 != 1], ids=["all", "masked"])
def test_any_pieces_are_one_pass(model, mask):
    """All 32 splits of 6 tokens, in a batch with padding of source and target."""
    tokens, source = four(model)

    def own(piece):
        return {"valid": PADDED[:, piece], "mask": mask}

    whole = minitx.forward(model, tokens, **own(slice(None)), **source)
    for pieces in splits(6):
        parts = in_pieces(model, pieces, tokens, own, **source)
        np.testing.assert_allclose(parts[PADDED], whole[PADDED], **CLOSE)


def test_masks_of_the_source_with_a_cache(model):
    """Each piece brings its rows of what the decoder sees of the source; enc_mask comes once."""
    tokens, source = four(model)
    rng = np.random.default_rng(0)
    cross_mask, enc_mask = rng.random((6, 7)) < 0.7, rng.random((7, 7)) < 0.7
    source |= {"enc_mask": enc_mask}

    def own(piece):
        return {"valid": PADDED[:, piece], "cross_mask": cross_mask[piece]}

    whole = minitx.forward(model, tokens, **own(slice(None)), **source)
    plain = minitx.forward(model, tokens, valid=PADDED, **source)
    assert abs(whole - plain)[PADDED].max() > 1e-3
    parts = in_pieces(model, cuts(0, 2, 3, 6), tokens, own, **source)
    np.testing.assert_allclose(parts[PADDED], whole[PADDED], **CLOSE)


def test_points_over_a_cache(model):
    """Cached keys of the source are no point of a later pass; queries and patterns are."""
    tokens, source = four(model)
    cache, later = minitx.Cache(), {}
    minitx.forward(model, tokens[:, :3], cache=cache, **source)

    def hook(name, x, layer=None):
        later[name, layer] = x.copy()
        return x

    whole = minitx.run(model, tokens, **source)
    minitx.forward(model, tokens[:, 3:], cache=cache, hook=hook)
    assert not {name for name, _ in later} & {"cross_k", "cross_v", "enc_q", "enc_resid_post"}
    for name in ("cross_q", "cross_pattern", "cross_z"):
        np.testing.assert_allclose(later[name, 0], whole[name, 0][:, :, 3:], **CLOSE)


def test_a_refused_piece_leaves_the_cache_as_it_was(model):
    tokens, source = four(model)
    cache = minitx.Cache()
    with pytest.raises(ValueError, match="is an encoder-decoder; it needs source="):
        minitx.forward(model, tokens[:, :5], cache=cache)
    with pytest.raises(ValueError, match="the source has 2 texts, the decoder's tokens 4"):
        minitx.forward(model, tokens, cache=cache, source=source["source"][:2])
    assert len(cache) == 0 and cache.source is None
    minitx.forward(model, tokens[:, :5], cache=cache, **source)
    for piece, given, message in (
        (
            tokens[:, 5:],
            source,
            "the cache already has a source; give it only with the first tokens",
        ),
        (tokens[:1, 5:], {}, "the cache holds a batch of 4, the new tokens are 1"),
        (np.full((4, 1), 99), {}, "99 is out of range"),
        (tokens[:, 5:], {"cross_mask": np.ones((3, 3), bool)}, r"\[B H T S\] = \[4, \d, 1, 7\]"),
    ):
        with pytest.raises(ValueError, match=message):
            minitx.forward(model, piece, cache=cache, **given)
        assert len(cache) == 5
    last = minitx.forward(model, tokens[:, 5:], cache=cache)
    whole = minitx.forward(model, tokens, **source)
    np.testing.assert_allclose(last, whole[:, 5:], **CLOSE)


def rest(model, held, n=None):
    """Hidden states after `held` cached tokens and a pass broken off at its n-th intermediate."""
    tokens, source = four(model)
    cache = minitx.Cache()
    if held:
        minitx.forward(model, tokens[:, :held], cache=cache, **source)
        source = {}
    if n is not None:
        with pytest.raises(KeyboardInterrupt):
            minitx.forward(model, tokens[::-1, 1:4], cache=cache, hook=Failing(n), **source)
        assert len(cache) == held
    return minitx.forward(model, tokens[:, held:], cache=cache, **source)


@pytest.mark.parametrize("held,n_points", [(0, 119), (4, 89)])
def test_a_pass_that_is_broken_off_adds_nothing_to_the_cache(held, n_points):
    """At any of its intermediates, in either stack."""
    model = tiny.load("bart-scaled")
    whole = rest(model, held)
    for n in (*range(0, n_points, 4), n_points - 1):
        assert np.array_equal(rest(model, held, n), whole), n


# --- generate


def test_the_end_token_ends_a_row_without_being_asked_for():
    """Shown by an end that is the model's own third choice; rows of arrays are filled up."""
    model = tiny.load("t5-relu")
    sources = [tiny.ids(model.encoder, n, seed=n).tolist() for n in (4, 7)]
    free = [minitx.generate(model, n=6, source=row, stop=-1)[1:].tolist() for row in sources]
    end = free[0][2]
    ends = replace(model, config=replace(model.config, end_id=end))
    cut = [row[: row.index(end) + 1] if end in row else row for row in free]
    for row, expected in zip(sources, cut):
        assert minitx.generate(ends, n=6, source=row).tolist() == [0, *expected]
    source, source_valid, _ = tiny.padded(sources, "right")
    rows = minitx.generate(ends, n=6, source=source, source_valid=source_valid)
    width = max(map(len, cut))
    assert rows.tolist() == [[0, *row, *[end] * (width - len(row))] for row in cut]
    other = minitx.generate(ends, n=6, source=sources[0], stop=free[0][0])
    assert other.tolist() == [0, free[0][0]]


def test_sources_and_prompts_of_different_lengths_continue_as_each_alone(model):
    sources = [tiny.ids(model.encoder, n, seed=n).tolist() for n in (3, 8, 1)]
    prompts = [[model.config.start_id, *tiny.ids(model, n, seed=n).tolist()] for n in (2, 4, 1)]
    source, source_valid, _ = tiny.padded(sources, "left", fill=7)
    given = {"source": source, "source_valid": source_valid}
    starts = minitx.generate(model, n=4, stop=-1, **given)
    batch = minitx.generate(model, prompts, 4, stop=-1, **given)
    tokens, valid, _ = tiny.padded(prompts, "left", fill=3)
    array = minitx.generate(model, tokens, 4, valid=valid, stop=-1, **given)
    for i, prompt in enumerate(prompts):
        alone = minitx.generate(model, n=4, source=sources[i], stop=-1)
        assert starts[i].tolist() == alone.tolist()
        alone = minitx.generate(model, prompt, 4, source=sources[i], stop=-1).tolist()
        assert batch[i].tolist() == alone
        assert array[i].tolist()[5 - len(prompt) :] == alone


def test_text_in_and_ids_out():
    """A text is the source's; a text as prompt stands behind the start token, without its end."""
    model = spelling("marian-shared", end=0)
    ids = minitx.generate(model, n=4, source=[5, 6, 0])
    assert minitx.generate(model, n=4, source="5 6").tolist() == ids.tolist()
    several = minitx.generate(model, n=4, source=["5 6", "7 8 9"])
    assert several[0].tolist() == ids.tolist() and len(several) == 2
    prompt = minitx.generate(model, "11 12", 4, source="5 6").tolist()
    assert prompt == minitx.generate(model, [52, 11, 12], 4, source=[5, 6, 0]).tolist()
    assert prompt[:3] == [52, 11, 12]


@pytest.mark.parametrize(
    "variant,prompt,given,message",
    [
        ("bart-causal", [4], {}, "is an encoder-decoder; it needs source="),
        ("bart-causal", None, {}, "is an encoder-decoder; it needs source="),
        ("gpt2-causal", None, {}, "no prompt; wanted a text, a list of texts, or ids to continue"),
        ("gpt2-causal", [4], dict(source=[5]), "source given, but this model .* has no encoder"),
        ("bart-sequence", None, dict(source=[5]), "this one has head 'sequence'"),
        ("t5-encoder", [4], {}, "this one has head None"),
        (
            "bart-causal",
            [[4], [5]],
            dict(source=[[5]]),
            "the source has 1 texts, the decoder's tokens 2",
        ),
        ("bart-causal", [4], dict(source=[99]), "token ids: 99 is out of range"),
        (
            "marian-odd",
            [4] * 5,
            dict(source=[5], n=9),
            "5 tokens and 9 new ones; this model reads at most 12",
        ),
        ("marian-odd", None, dict(source=[5] * 13), "13 tokens; this model reads at most 12"),
    ],
)
def test_prompts_that_are_refused(variant, prompt, given, message):
    settings = {"n": 2} | given
    with pytest.raises(ValueError, match=message):
        minitx.generate(tiny.load(variant), prompt, **settings)


def test_t5_goes_on_beyond_the_length_of_its_training():
    model = tiny.load("t5-relu")
    assert len(minitx.generate(model, n=40, source=[5, 6], stop=-1)) == 41
