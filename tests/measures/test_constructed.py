"""The constructed models do what they were built for."""

import constructed
import numpy as np
import pytest

import minitx
from minitx.analysis.maths import profiles
from minitx.analysis.measures import heads
from minitx.analysis.texts import corpus

TOKENS = 64


def attention(model, tokens=TOKENS):
    """Mean attention by offset of every head on four documents: [L H R]."""
    documents = corpus.documents(model, "sample", 4, tokens)
    by_document = [heads.head_profiles(model, document) for document in documents]
    return profiles.mean_attention(np.mean(by_document, axis=0), tokens)


def directions(model):
    """{(layer, head): (offset, attention to it)} of the heads with a direction."""
    measured = attention(model)
    places = np.argwhere(profiles.directed(measured, TOKENS)).tolist()
    best = profiles.offsets()[measured.argmax(axis=2)]
    return {(i, h): (best[i, h], measured[i, h].max()) for i, h in places}


def test_heads_that_read_waves_look_at_their_lags():
    directed = directions(constructed.waves())
    lags = {place: lag for place, (lag, _) in constructed.LAGS.items()}
    assert {place: offset for place, (offset, _) in directed.items()} == lags
    assert min(most for _, most in directed.values()) > 0.99


def test_a_copied_word_makes_a_neighbour():
    directed = directions(constructed.copies())
    offsets = {(0, 0): constructed.COPIED, (0, 1): constructed.UNRELATED, (1, 0): 1}
    assert {place: offset for place, (offset, _) in directed.items()} == offsets
    assert directed[1, 0][1] > 0.5  # measured 0.79: words come again within a document


def test_the_same_heads_have_a_direction_in_documents_of_any_length():
    """Several times uniform attention alone is less the longer they are: 4, 5, 6 and 6 heads."""
    model, by_times = constructed.strengths(), []
    for tokens in (64, 128, 256, 512):
        measured = attention(model, tokens)
        for place, (lag, share) in constructed.SHARES.items():
            at_lag = measured[place][profiles.offsets() == lag]
            assert at_lag == pytest.approx(share, abs=1.01 / tokens)  # edges, and the first token
        uniform = profiles.mean_attention(profiles.uniform(tokens), tokens)
        by_times.append((measured >= profiles.TIMES * uniform).any(axis=-1).sum())
        directed = profiles.directed(measured, tokens)
        strong = [place for place, (_, share) in constructed.SHARES.items() if share >= 0.15]
        assert [*map(tuple, np.argwhere(directed))] == strong
        assert profiles.by_strength(measured.max(axis=-1), directed).tolist() == [1, 1, 2]
    assert by_times == [4, 5, 6, 6]


def test_words_alone_have_no_direction():
    assert not directions(constructed.neither())


@pytest.mark.parametrize("make", [constructed.waves, constructed.neither])
def test_norms_only_multiply(make):
    """All tokens have the same length: measured at most 1e-15 off, but for random positions."""
    model = make()
    document = corpus.documents(model, "sample", 1, TOKENS).first()[0]
    trace = minitx.run(model, document, keep=["ln_embed_mean", "ln_embed_scale"])
    assert abs(trace["ln_embed_mean"]).max() < 1e-12
    assert make is constructed.neither or np.ptp(trace["ln_embed_scale"]) < 1e-12


def test_positions_are_erased_where_words_are_copied():
    model = constructed.copies()
    document = corpus.documents(model, "sample", 1, TOKENS).first()[0]
    x = minitx.run(model, document, keep=["resid_pre"]).stack("resid_pre")[:, 0]
    left = np.square(x[..., constructed.POSITIONS]).sum(axis=(1, 2))
    assert left[1] < 1e-3 * left[0]
