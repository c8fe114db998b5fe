"""Queries and keys in one space: what must not change does not, the scale is the best, nearness is counted."""
import numpy as np
import pytest
from scipy.special import softmax

from analysis import joint, words

H, T, D = 3, 20, 8
ALL = np.ones((T, T), bool)
SIGHT = {"both": ALL, "causal": np.tri(T, dtype=bool)}
EVERY = [(distance, products) for distance in joint.DISTANCES for products in joint.PRODUCTS]


@pytest.fixture(scope="module")
def pair():
    """Queries and keys of three heads, their means far apart, as in a trained model."""
    draw = np.random.default_rng(1)
    q, k = draw.standard_normal((2, H, T, D))
    return q * [[[1.0]], [[3.0]], [[0.5]]] + 2 * draw.standard_normal((H, 1, D)), k + draw.standard_normal((H, 1, D))


def scanned(q, k, distance, products="centred", weights=ALL, seen=ALL):
    """Correlation as it is, and at every scale: [...], [C ...]."""
    found = joint.correlation(joint.scan(q, k, (q.mean(axis=-2), k.mean(axis=-2)), weights, seen, distance, products))
    return found[0], found[1:]


def at(q, k, c, distance):
    """Queries and keys at one scale."""
    return joint.normalised(q, k, c, joint.translation(q.mean(axis=-2), k.mean(axis=-2), c, distance))


# what attention cannot see

@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("distance", joint.DISTANCES)
@pytest.mark.parametrize("c", [0.125, 1, 8])
def test_attention_does_not_change(pair, sight, distance, c):
    q, k = pair
    a = joint.translation(q.mean(axis=1), k.mean(axis=1), c, distance)
    attention, products = joint.changes(q, k, c, a, D ** -0.5, SIGHT[sight])
    assert attention.max() < 1e-12  # float64, at c = 8 products are 64 times as large: measured 8e-14
    assert products.max() < 1e-12   # measured 0: c is a power of 2
    assert attention.shape == products.shape == (H,)


def test_a_change_of_attention_would_be_seen(pair):
    """Keys that move each by its own way, or queries that are not scaled back, are no freedom."""
    q, k = pair
    other = joint.attention(q, k * np.linspace(1, 1.001, T)[:, None], 1, ALL)
    assert abs(other - joint.attention(q, k, 1, ALL)).max() > 1e-4


@pytest.mark.parametrize("sight", SIGHT)
def test_translation_adds_one_number_to_each_row_hidden_keys_included(pair, sight):
    q, k = pair
    a = np.random.default_rng(2).standard_normal((H, D))
    hide = np.where(SIGHT[sight], 0, -np.inf)
    before = q @ k.swapaxes(1, 2) + hide
    after = q @ joint.normalised(q, k, 1, a)[1].swapaxes(1, 2) + hide
    shift = (q @ a[:, :, None])
    assert np.array_equal(np.isinf(before), np.isinf(after))
    seen = np.isfinite(before)
    assert abs(np.where(seen, after, 0) - np.where(seen, before + shift, 0)).max() < 1e-12  # measured 1.1e-14
    assert abs(softmax(after, axis=-1) - softmax(before, axis=-1)).max() < 1e-12            # measured 2e-15


@pytest.mark.parametrize("distance, c", [("euclidean", 1), ("cosine", 1), ("cosine", 3)])
def test_the_means_meet(pair, distance, c):
    q, k = at(*pair, c, distance)
    assert abs(q.mean(axis=1) - k.mean(axis=1)).max() < 1e-12  # measured 4e-15


def test_no_scale_changes_a_cosine_of_keys_that_were_moved_before_it(pair):
    """The order as published, under which the cosine distance does not depend on c at all."""
    q, k = pair
    moved = k + (q.mean(axis=1) - k.mean(axis=1))[:, None]
    still = joint.distances(q, moved, "cosine")
    for c in (0.125, 8):
        assert abs(joint.distances(*joint.normalised(q, moved, c), "cosine") - still).max() < 1e-12  # measured 0


# distances and their correlation with products

def test_distances_are_those_of_the_definition(pair):
    q, k = pair
    apart = q[:, :, None] - k[:, None]
    assert abs(joint.distances(q, k, "euclidean") - np.linalg.norm(apart, axis=-1)).max() < 1e-12  # measured 3e-15
    cosine = [[1 - x @ y / np.linalg.norm(x) / np.linalg.norm(y) for y in k[0]] for x in q[0]]
    assert abs(joint.distances(q, k, "cosine")[0] - cosine).max() < 1e-12                        # measured 4e-16


@pytest.mark.parametrize("distance", joint.DISTANCES)
def test_what_is_drawn_has_the_order_of_the_distances(pair, distance):
    q, k = pair
    drawn = joint.DISTANCES[distance].drawn
    there = np.linalg.norm(drawn(q)[:, :, None] - drawn(k)[:, None], axis=-1)
    assert np.array_equal(there.argsort(axis=-1), joint.distances(q, k, distance).argsort(axis=-1))


@pytest.mark.parametrize("distance, products", EVERY)
@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("weighted", [False, True])
def test_scanned_correlations_are_pearsons(pair, distance, products, sight, weighted):
    q, k = pair
    seen = SIGHT[sight]
    pattern = joint.attention(q, k, 0.3, seen)
    raw, scales = scanned(q, k, distance, products, pattern if weighted else seen, seen)
    for found, (new_q, new_k) in ((raw, (q, k)), (scales[80], at(q, k, joint.SCALES[80], distance))):
        qk = new_q @ new_k.swapaxes(1, 2)
        for h in range(H):
            rows = [[qk[h, i, j] - (qk[h, i][seen[i]].mean() if products == "centred" else 0) for j in range(T)]
                    for i in range(T)]
            s, d = np.array(rows)[seen], joint.distances(new_q, new_k, distance)[h][seen]
            w = pattern[h][seen] if weighted else np.ones(len(s))
            C = np.cov(s, d, aweights=w)
            assert found[h] == pytest.approx(C[0, 1] / np.sqrt(C[0, 0] * C[1, 1]), abs=1e-10)  # sums: measured 4e-14


def test_sums_of_documents_add_up(pair):
    q, k = pair
    means = q.mean(axis=1), k.mean(axis=1)
    ends = [joint.scan(x, k, means, np.ones((len(x[0]), T)), ALL[:len(x[0])], "cosine", "centred")
            for x in (q[:, :7], q[:, 7:])]
    whole = joint.scan(q, k, means, np.ones((T, T)), ALL, "cosine", "centred")
    assert abs(sum(ends) - whole).max() / abs(whole).max() < 1e-12  # order of summation: measured 3e-16


def test_products_less_their_rows_mean_are_the_logarithm_of_attention(pair):
    q, k = pair
    qk = q @ k.swapaxes(1, 2)
    logs = np.log(softmax(qk, axis=-1))
    assert abs(joint.centred(qk, ALL) - joint.centred(logs, ALL)).max() < 1e-12  # measured 7e-15


def test_nothing_varies_no_correlation():
    q, k = np.ones((1, 4, 3)), np.ones((1, 4, 3))
    raw, scales = scanned(q, k, "euclidean", weights=ALL[:4, :4], seen=ALL[:4, :4])
    assert raw == 0 and not scales.any()
    moves = joint.chosen(joint.best(np.concatenate([[raw], scales]), "head"), (np.ones((1, 3)), 2 * np.ones((1, 3))),
                         "euclidean")
    assert moves["c"] == 1 and not moves["a"].any()  # nothing is done for nothing


# the search

def test_one_is_among_the_scales():
    assert (joint.SCALES == 1).sum() == 1
    assert joint.SCALES[0] == 1 / 8 and joint.SCALES[-1] == 8


@pytest.mark.parametrize("distance, products", EVERY)
@pytest.mark.parametrize("scope", joint.SCOPES)
def test_the_scale_is_the_best_and_never_worse_than_none(pair, distance, products, scope):
    """On the grid of the search; the heads are taken as 3 layers of 1 head, and as 1 layer of 3."""
    raw, curves = scanned(*pair, distance, products)
    for shape in ((H, 1), (1, H)):
        curve = np.concatenate([raw[None], curves]).reshape(-1, *shape)
        best = joint.best(curve, scope)
        assert best.shape == shape
        mean = curve.mean(axis=joint.SCOPES[scope], keepdims=True)
        found = np.take_along_axis(curve, best[None], 0).mean(axis=joint.SCOPES[scope], keepdims=True)
        assert (found <= mean.min(axis=0) + 2e-12).all()
        assert (found <= mean[0] + 2e-12).all() and (found <= mean[1:][joint.SCALES == 1] + 2e-12).all()


@pytest.mark.parametrize("distance", joint.DISTANCES)
def test_a_head_that_nothing_improves_is_left_as_it_is(distance):
    """Queries and keys that are one set of points of length 1 tell the product by distance; the mean of the keys is
    given as another, so that moving them only does harm."""
    q = np.random.default_rng(4).standard_normal((1, T, D))
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    means = q.mean(axis=1), q.mean(axis=1) + 1
    found = joint.correlation(joint.scan(q, q, means, ALL * 1.0, ALL, distance, "centred"))
    moves = joint.chosen(joint.best(found[:, None], "head")[0], means, distance)
    assert found[0] < found[1:].min() - 0.5  # measured -0.99, -0.94 against -0.37, -0.40
    assert moves["c"] == 1 and not moves["a"].any()
    assert all(np.array_equal(same, q) for same in joint.normalised(q, q, **moves))


def test_the_ends_of_the_search_are_said():
    told = [joint.told(c) for c in (0.125, 1.0, joint.SCALES[1], 8.0)]
    assert told == ["0.125 (the least tried)", "1.00", "0.13", "8 (the largest tried)"]


def test_who_shares_a_scale():
    curves = np.random.default_rng(0).standard_normal((1 + len(joint.SCALES), 4, 5))
    different = {scope: [len(set(row)) for row in joint.best(curves, scope).tolist()] for scope in joint.SCOPES}
    assert max(different["head"]) > 1 and different["layer"] == [1] * 4
    assert len(set(joint.best(curves, "layer")[:, 0].tolist())) > 1
    assert len(set(joint.best(curves, "model").ravel().tolist())) == 1


@pytest.mark.parametrize("distance", joint.DISTANCES)
def test_a_fine_grid_finds_no_scale_beyond_the_next(pair, distance):
    q, k = pair
    raw, curves = scanned(q, k, distance)
    every = np.concatenate([np.ones((1, *raw.shape)), curves])[:, None]  # as if nothing could stay as it is
    number = joint.best(every, "head")
    found = joint.SCALES[number[0] - 1]
    fine = 2.0 ** np.linspace(-3, 3, 8 * (len(joint.SCALES) - 1) + 1)
    values = []
    for c in fine:
        new_q, new_k = at(q, k, c, distance)
        s, d = joint.centred(new_q @ new_k.swapaxes(1, 2), ALL), joint.distances(new_q, new_k, distance)
        values.append([np.corrcoef(s[h].ravel(), d[h].ravel())[0, 1] for h in range(H)])
    best = fine[np.argmin(values, axis=0)]
    assert (abs(np.log2(best / found)) <= 1 / 16 + 1e-9).all()  # one step of the search
    at_found = np.take_along_axis(every, number[None], 0)[0, 0]
    assert (at_found - np.min(values, axis=0) < 2e-3).all()    # measured 1.4e-3, at a sharp bend, and less


@pytest.mark.parametrize("ratio", [0.2, 0.5, 4])
def test_a_planted_scale_comes_back(ratio):
    """Keys are the queries in another order, `ratio`**2 times as long and moved far away: at c = ratio each query lies
    on its own key. As they are, the own key is seldom the nearest, and the translation alone does not do it."""
    draw = np.random.default_rng(1)
    q = draw.standard_normal((1, T, D)) * draw.uniform(0.5, 2, (T, 1))
    q -= q.mean(axis=1, keepdims=True)
    deal = draw.permutation(T)
    k = q[:, deal] * ratio ** 2 + 5 * ratio * draw.standard_normal(D)
    raw, curves = scanned(q, k, "euclidean")
    c = joint.SCALES[joint.best(np.concatenate([raw[None], curves])[:, None], "head")[0, 0] - 1]
    assert c == pytest.approx(ratio, rel=0.03)  # half a step of the search is 2.2 %: measured 0.2013, 0.5, 4
    own = np.argsort(deal)[None]
    nearest = [near(*vectors, own, "euclidean")[1, 0]
               for vectors in ((q, k), at(q, k, 1, "euclidean"), at(q, k, c, "euclidean"))]
    assert max(nearest[:2]) < 0.9 and nearest[2] == 1  # measured 0.3 0.65, 0.1 0.85, 0.05 0.1
    assert curves.min() < raw[0] - 0.3           # measured -0.52 to -0.54 against -0.11 and more


# nearness

def near(q, k, keys, distance, seen=ALL):
    """Mean of 1 / rank, and share of rank 1: [2 H]."""
    return joint.nearness(joint.ranks(joint.distances(q, k, distance), seen), keys, seen) / len(seen)


def test_ranks_count_what_is_nearer_and_share_ties():
    seen = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)
    ranks = joint.ranks(np.array([[3.0, 1.0, 2.0, 2.0]] * 2), seen)
    assert ranks[0].tolist() == [4, 1, 2.5, 2.5] and ranks[1, :2].tolist() == [2, 1]


def test_points_on_one_spot_are_not_near():
    every = np.ones((9, 9), bool)
    total = joint.nearness(joint.ranks(np.zeros((1, 9, 9)), every), np.zeros((1, 9), int), every)
    assert total[:, 0].tolist() == [9 / 5, 0]  # each has rank 5


def test_a_query_that_sees_one_key_tells_nothing():
    seen = np.tri(3, dtype=bool)
    ranks = joint.ranks(np.array([[[1.0, 0, 0], [1, 2, 0], [1, 2, 3]]]), seen)
    assert joint.nearness(ranks, np.array([[0, 0, 2]]), seen)[:, 0] == pytest.approx([1 + 1 / 3, 1])


@pytest.mark.parametrize("sight", SIGHT)
def test_dealt_keys_are_a_deal_of_those_that_a_query_sees(sight):
    seen = SIGHT[sight]
    deals = joint.dealt(seen, 3, np.random.default_rng(0))
    for deal in deals:
        assert all(sorted(row[see].tolist()) == np.flatnonzero(see).tolist() for row, see in zip(deal, seen))
        assert sight == "causal" or (deal == deal[0]).all()
    assert not np.array_equal(deals[0], deals[1])


@pytest.mark.parametrize("sight", SIGHT)
def test_shuffled_keys_have_the_rank_of_chance(pair, sight):
    """Mean of 1/rank over random keys: the harmonic number of n over n, for each query that sees n > 1."""
    q, k = pair
    seen = SIGHT[sight]
    strongest = joint.attention(q, k, 1, seen).argmax(axis=-1)
    ranks = joint.ranks(joint.distances(q, k, "cosine"), seen)
    deals = joint.dealt(seen, 1000, np.random.default_rng(0))
    found = np.mean([joint.nearness(ranks, deal[np.arange(T), strongest], seen) for deal in deals], axis=0)
    counts = [n for n in seen.sum(axis=1) if n > 1]
    chance = np.mean([((1 / np.arange(1, n + 1)).sum() / n, 1 / n) for n in counts], axis=0)
    assert abs(found / len(counts) - chance[:, None]).max() < 0.02  # of 1,000 deals: measured 0.008


def test_without_a_limit_to_the_scale_every_strongest_key_would_be_the_nearest(pair):
    """Why nearness alone cannot choose c: |c q - k/c|^2 = c^2 |q|^2 - 2 q.k + |k|^2 / c^2."""
    q, k = pair
    strongest = (q @ k.swapaxes(1, 2)).argmax(axis=-1)
    assert (near(*joint.normalised(q, k, 1e4), strongest, "euclidean")[1] == 1).all()
    assert (near(q, k, strongest, "euclidean")[1] < 1).all()


def test_the_plane_is_that_of_principal_components(pair):
    x = pair[0][0] * np.linspace(1, 3, D)
    U = joint.plane(np.cov(x.T))
    direct = np.linalg.svd(x - x.mean(axis=0))[2][:2].T
    assert abs(abs((U * direct).sum(axis=0)) - 1).max() < 1e-12  # measured 2e-16
    assert (np.take_along_axis(U, abs(U).argmax(axis=0)[None], 0) > 0).all()


# words

def decode(ids):
    """A text as WordPiece decodes it: ## goes on, a blank otherwise; 9 is special."""
    pieces = {0: "the", 1: "cap", 2: "##y", 3: "##bara", 4: ".", 5: "now", 6: "\ufffd"}
    text = " ".join(pieces[i] for i in np.ravel(ids).tolist() if i != 9)
    return text.replace(" ##", "").replace(" .", ".").replace("\ufffd \ufffd", "é")


def test_pieces_make_words():
    ids = np.array([9, 0, 1, 2, 3, 5, 4, 4, 9])
    found = words.numbers(ids, decode)
    assert found.tolist() == [0, 1, 2, 2, 2, 3, 4, 5, 6]
    names = words.names(ids, found, decode, ["[CLS]", *["-"] * 7, "[SEP]"])
    assert names == ["[CLS]", "the", "capybara", "now", ".", ".", "[SEP]"]
    assert words.matches(" Capybara", names).tolist() == [False, False, True, False, False, False, False]


def test_the_bytes_of_one_character_stay_together():
    assert words.numbers([0, 6, 6, 5], decode).tolist() == [0, 1, 1, 2]


def test_attention_of_words_sums_over_keys_and_averages_over_queries(pair):
    q, k = pair
    word = np.repeat(np.arange(5), [1, 3, 6, 2, 8])
    pattern = joint.attention(q, k, 1, ALL)
    new, new_q, new_k = words.merged(pattern, q, k, word)
    assert abs(new.sum(axis=-1) - 1).max() < 1e-12
    assert new[1, 2, 1] == pytest.approx(pattern[1, 4:10, 1:4].sum(axis=1).mean())
    assert abs(new_q[:, 1] - q[:, 1:4].mean(axis=1)).max() < 1e-12
    assert abs(new_k[:, 3] - k[:, 10:12].mean(axis=1)).max() < 1e-12
    same = words.merged(pattern, q, k, np.arange(T))
    assert np.array_equal(same[0], pattern) and np.array_equal(same[1], q)
