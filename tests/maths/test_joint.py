"""Queries and keys in one space: what must not change, the best scale, how near keys are."""

import itertools

import numpy as np
import pytest
from distance import max_error
from scipy.spatial.distance import cdist
from scipy.special import softmax
from scipy.stats import spearmanr

from minitx.analysis.maths import joint
from minitx.analysis.texts import words

H, T, D = 3, 20, 8
ALL = np.ones((T, T), bool)
SIGHT = {"both": ALL, "causal": np.tri(T, dtype=bool)}
MEASURES = list(itertools.product(joint.DISTANCES, joint.PRODUCTS))


@pytest.fixture(scope="module")
def pair():
    """Queries and keys of three heads, their means far apart, as in a trained model."""
    draw = np.random.default_rng(1)
    q, k = draw.standard_normal((2, H, T, D))
    lengths = np.array([1.0, 3.0, 0.5])
    q_mean = 2 * draw.standard_normal((H, 1, D))
    k_mean = draw.standard_normal((H, 1, D))
    q = q * lengths[:, None, None] + q_mean
    return q, k + k_mean


def products_of(q, k):
    """All q.k: [... T S]."""
    return q @ k.swapaxes(-1, -2)


def all_distances(x, y):
    """Euclidean distances of all rows of x from all rows of y, head by head: [H T S]."""
    return np.stack([cdist(*rows) for rows in zip(x, y)])


def values_at(x, places):
    """x [n ...] at one place of the first axis for each of all other axes."""
    return np.take_along_axis(x, places[None], 0)[0]


def means_of(q, k):
    """Mean query and mean key of each head."""
    return q.mean(axis=-2), k.mean(axis=-2)


def scanned(q, k, distance, products="centred", weights=ALL, seen=ALL):
    """Correlation as it is, then that at every scale: [1 + C ...]."""
    sums = joint.scan(q, k, means_of(q, k), weights, seen, distance, products)
    return joint.correlation(sums)


def scaled(q, k, c, distance):
    """Queries and keys at one scale, their means brought together."""
    a = joint.translation(*means_of(q, k), c, distance)
    return joint.normalised(q, k, c, a)


# what attention cannot see


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("distance", joint.DISTANCES)
@pytest.mark.parametrize("c", [0.125, 1, 8])
def test_attention_does_not_change(pair, sight, distance, c):
    q, k = pair
    a = joint.translation(*means_of(q, k), c, distance)
    scale = D**-0.5
    attention, products = joint.changes(q, k, c, a, scale, SIGHT[sight])
    # float64, at c = 8 products are 64 times as large: measured 8e-14
    assert attention.max() < 1e-12
    assert products.max() < 1e-12  # measured 0: c is a power of 2
    assert attention.shape == products.shape == (H,)


def test_a_change_of_attention_would_be_seen(pair):
    """Keys that move each by its own way, or queries that are not scaled back, are no freedom."""
    q, k = pair
    lengths = np.linspace(1, 1.001, T)[:, None]
    attention = joint.attention(q, k, 1, ALL)
    other = joint.attention(q, k * lengths, 1, ALL)
    assert max_error(other, attention) > 1e-4


@pytest.mark.parametrize("sight", SIGHT)
def test_translation_adds_one_number_to_each_row_hidden_keys_included(pair, sight):
    q, k = pair
    a = np.random.default_rng(2).standard_normal((H, D))
    hide = np.where(SIGHT[sight], 0, -np.inf)
    before = products_of(q, k) + hide
    _, moved = joint.normalised(q, k, 1, a)
    after = products_of(q, moved) + hide
    shift = q @ a[:, :, None]
    assert np.array_equal(np.isinf(before), np.isinf(after))
    seen = np.isfinite(before)
    expected = before + shift
    assert max_error(after[seen], expected[seen]) < 1e-12  # measured 1.1e-14
    attention = softmax(before, axis=-1)
    assert max_error(softmax(after, axis=-1), attention) < 1e-12  # measured 2e-15


@pytest.mark.parametrize("distance, c", [("euclidean", 1), ("cosine", 1), ("cosine", 3)])
def test_the_means_meet(pair, distance, c):
    q, k = scaled(*pair, c, distance)
    q_mean, k_mean = means_of(q, k)
    assert max_error(q_mean, k_mean) < 1e-12  # measured 4e-15


# distances and their correlation with products


def test_distances_are_those_of_the_definition(pair):
    q, k = pair
    euclidean = joint.distances(q, k, "euclidean")
    assert max_error(euclidean, all_distances(q, k)) < 1e-12  # measured 3e-15
    cosine = joint.distances(q, k, "cosine")
    assert max_error(cosine[0], cdist(q[0], k[0], "cosine")) < 1e-12  # measured 4e-16


@pytest.mark.parametrize("distance", joint.DISTANCES)
def test_what_is_drawn_has_the_order_of_the_distances(pair, distance):
    q, k = pair
    drawn = joint.DISTANCES[distance].drawn
    on_paper = all_distances(drawn(q), drawn(k))
    distances = joint.distances(q, k, distance)
    order = distances.argsort(axis=-1)
    assert np.array_equal(on_paper.argsort(axis=-1), order)


@pytest.mark.parametrize("distance, products", MEASURES)
@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("weighted", [False, True])
def test_scanned_correlations_are_pearsons(pair, distance, products, sight, weighted):
    q, k = pair
    seen = SIGHT[sight]
    pattern = joint.attention(q, k, 0.3, seen)
    weights = pattern if weighted else seen
    curves = scanned(q, k, distance, products, weights, seen)
    new_q, new_k = scaled(q, k, joint.SCALES[80], distance)
    weights = np.broadcast_to(weights, pattern.shape)

    def direct(q, k, h):
        s = slow_products(q[h], k[h], products, seen)
        distances = joint.distances(q, k, distance)[h]
        return pearson(s[seen], distances[seen], weights[h][seen])

    for h in range(H):
        before = direct(q, k, h)
        after = direct(new_q, new_k, h)
        # sums: measured 4e-14
        assert curves[0, h] == pytest.approx(before, abs=1e-10)
        assert curves[81, h] == pytest.approx(after, abs=1e-10)


def slow_products(q, k, products, seen):
    """q.k of one head [T T], if centred less the mean over the keys that the query sees."""
    qk = q @ k.T
    if products == "centred":
        qk -= qk.mean(axis=1, keepdims=True, where=seen)
    return qk


def pearson(x, y, weights):
    """Weighted correlation of two vectors."""
    C = np.cov(x, y, aweights=weights)
    variances = C.diagonal()
    return C[0, 1] / np.sqrt(variances.prod())


def test_sums_of_documents_add_up(pair):
    q, k = pair
    means = means_of(q, k)

    def scan(queries):
        n = queries.shape[1]
        weights = np.ones((n, T))
        return joint.scan(queries, k, means, weights, ALL[:n], "cosine", "centred")

    parts = scan(q[:, :7]) + scan(q[:, 7:])
    whole = scan(q)
    # order of summation: measured 3e-16
    assert max_error(parts, whole) / abs(whole).max() < 1e-12


def test_nothing_varies_no_correlation():
    q = k = np.ones((1, 4, 3))
    seen = ALL[:4, :4]
    curves = scanned(q, k, "euclidean", weights=seen, seen=seen)
    assert not curves.any()
    best = joint.best(curves, "head")
    means = np.ones((1, 3)), 2 * np.ones((1, 3))
    moves = joint.transform_of(best, means, "euclidean")
    # nothing is done for nothing
    assert moves["c"] == 1
    assert not moves["a"].any()


# the search


def test_one_is_among_the_scales():
    assert (joint.SCALES == 1).sum() == 1
    assert joint.SCALES[0] == 1 / 8
    assert joint.SCALES[-1] == 8


@pytest.mark.parametrize("distance, products", MEASURES)
@pytest.mark.parametrize("scope", joint.SCOPES)
def test_the_scale_is_the_best_and_never_worse_than_none(pair, distance, products, scope):
    """On the grid of the search; the heads are taken as 3 layers of 1 head, and as 1 layer of 3."""
    axis = joint.SCOPES[scope]
    curves = scanned(*pair, distance, products)
    for shape in ((H, 1), (1, H)):
        curve = curves.reshape(-1, *shape)
        best = joint.best(curve, scope)
        assert best.shape == shape
        mean = curve.mean(axis=axis, keepdims=True)
        unchanged, *by_scale = mean
        at_one = by_scale[joint.SCALES.tolist().index(1)]
        values = values_at(curve, best)[None]
        reached = values.mean(axis=axis, keepdims=True) - 2e-12
        assert (reached <= mean.min(axis=0)).all()
        assert (reached <= unchanged).all()
        assert (reached <= at_one).all()


@pytest.mark.parametrize("sight", SIGHT)
def test_rank_correlation_is_spearmans_over_the_pairs_seen(pair, sight):
    """With ties, as in the library; hidden pairs change nothing."""
    seen = SIGHT[sight]
    products = np.rint(products_of(*pair))
    d = joint.distances(*pair, "cosine")
    hidden = np.where(seen, products, np.inf)
    for s in (products, hidden):
        ours = joint.rank_correlation(s, d, seen)
        direct = [spearmanr(s[h][seen], d[h][seen]).statistic for h in range(H)]
        assert max_error(ours, direct) < 1e-12
    assert not joint.rank_correlation(0 * products, d, seen).any()


@pytest.mark.parametrize("distance", joint.DISTANCES)
def test_a_head_that_nothing_improves_is_left_as_it_is(distance):
    """Queries and keys are one set of points of length 1: distance gives the product.

    The mean of the keys is stated wrongly, so that moving them only does harm.
    """
    q = np.random.default_rng(4).standard_normal((1, T, D))
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    mean = q.mean(axis=1)
    means = (mean, mean + 1)
    sums = joint.scan(q, q, means, ALL, ALL, distance, "centred")
    curve = joint.correlation(sums)
    best = joint.best(curve[:, None], "head")
    moves = joint.transform_of(best[0], means, distance)
    assert curve[0] < curve[1:].min() - 0.5  # measured -0.99, -0.94 against -0.37, -0.40
    assert moves["c"] == 1
    assert not moves["a"].any()
    same_q, same_k = joint.normalised(q, q, **moves)
    assert np.array_equal(same_q, q)
    assert np.array_equal(same_k, q)


def test_the_ends_of_the_search_are_said():
    assert joint.format_scale(0.125) == "0.125 (the least tried)"
    assert joint.format_scale(1.0) == "1.00"
    assert joint.format_scale(joint.SCALES[1]) == "0.13"
    assert joint.format_scale(8.0) == "8 (the largest tried)"


def test_who_shares_a_scale():
    shape = (1 + len(joint.SCALES), 4, 5)
    curves = np.random.default_rng(0).standard_normal(shape)
    by_head = joint.best(curves, "head")
    assert np.ptp(by_head, axis=1).any()
    by_layer = joint.best(curves, "layer")
    assert by_layer.shape == (4, 5)
    assert not np.ptp(by_layer, axis=1).any()
    assert np.ptp(by_layer[:, 0]) > 0
    of_the_model = joint.best(curves, "model")
    assert np.ptp(of_the_model) == 0


@pytest.mark.parametrize("distance", joint.DISTANCES)
def test_a_fine_grid_finds_no_scale_beyond_the_next(pair, distance):
    q, k = pair
    curves = scanned(q, k, distance)[:, None]
    curves[0] = 1  # as if nothing could stay as it is
    number = joint.best(curves, "head")
    chosen_scale = joint.SCALES[number[0] - 1]
    steps = 8 * (len(joint.SCALES) - 1)
    fine = 2.0 ** np.linspace(-3, 3, steps + 1)
    values = np.zeros((steps + 1, H))
    for i, c in enumerate(fine):
        new_q, new_k = scaled(q, k, c, distance)
        s = joint.centred(products_of(new_q, new_k), ALL)
        distances = joint.distances(new_q, new_k, distance)
        for h in range(H):
            C = np.corrcoef(s[h].ravel(), distances[h].ravel())
            values[i, h] = C[0, 1]
    best = fine[values.argmin(axis=0)]
    one_step = 1 / 16 + 1e-9  # of the search
    steps_away = np.log2(best / chosen_scale)
    assert abs(steps_away).max() <= one_step
    worse = values_at(curves, number)[0] - values.min(axis=0)
    assert worse.max() < 2e-3  # measured 1.4e-3, at a sharp bend, and less


@pytest.mark.parametrize("ratio", [0.2, 0.5, 4])
def test_a_planted_scale_comes_back(ratio):
    """At c = ratio each query lies on its own key.

    Keys are the queries in another order, `ratio`**2 times as long and moved far away. As they
    are, the own key is seldom the nearest, and the translation alone does not do it.
    """
    draw = np.random.default_rng(1)
    directions = draw.standard_normal((1, T, D))
    q = directions * draw.uniform(0.5, 2, (T, 1))
    q -= q.mean(axis=1, keepdims=True)
    order = draw.permutation(T)
    away = 5 * ratio * draw.standard_normal(D)
    k = q[:, order] * ratio**2 + away
    curve = scanned(q, k, "euclidean")
    number = joint.best(curve[:, None], "head")[0, 0]
    c = joint.SCALES[number - 1]
    # half a step of the search is 2.2%: measured 0.2013, 0.5, 4
    assert c == pytest.approx(ratio, rel=0.03)
    own = np.argsort(order)[None]
    at_one = scaled(q, k, 1, "euclidean")
    at_c = scaled(q, k, c, "euclidean")
    _, unmoved = near(q, k, own, "euclidean")
    _, moved = near(*at_one, own, "euclidean")
    _, moved_and_scaled = near(*at_c, own, "euclidean")
    # measured 0.3 0.65, 0.1 0.85, 0.05 0.1
    assert unmoved < 0.9
    assert moved < 0.9
    assert moved_and_scaled == 1
    assert curve[1:].min() < curve[0, 0] - 0.3  # measured -0.52 to -0.54 against -0.11 and more


# nearness


def near(q, k, numbers, distance, seen=ALL):
    """Mean of 1 / rank of these keys, and share of rank 1: [2 H]."""
    distances = joint.distances(q, k, distance)
    ranks = joint.ranks(distances, seen)
    return joint.nearness(ranks, numbers, seen) / len(seen)


def test_ranks_count_what_is_nearer_and_share_ties():
    seen = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)
    row = [3.0, 1.0, 2.0, 2.0]
    ranks = joint.ranks(np.array([row, row]), seen)
    assert ranks[0].tolist() == [4, 1, 2.5, 2.5]
    assert ranks[1, :2].tolist() == [2, 1]


def test_points_on_one_spot_are_not_near():
    seen = np.ones((9, 9), bool)
    ranks = joint.ranks(np.zeros((1, 9, 9)), seen)
    first_key = np.zeros((1, 9), int)
    inverse_ranks, of_rank_1 = joint.nearness(ranks, first_key, seen)
    assert inverse_ranks == 9 / 5  # each has rank 5
    assert of_rank_1 == 0


def test_a_query_that_sees_one_key_tells_nothing():
    seen = np.tri(3, dtype=bool)
    distances = np.array([[1.0, 0, 0], [1, 2, 0], [1, 2, 3]])
    ranks = joint.ranks(distances[None], seen)
    keys = np.array([[0, 0, 2]])
    inverse_ranks, of_rank_1 = joint.nearness(ranks, keys, seen)
    assert inverse_ranks == pytest.approx(1 + 1 / 3)
    assert of_rank_1 == pytest.approx(1)


@pytest.mark.parametrize("sight", SIGHT)
def test_shuffled_keys_are_a_permutation_of_those_that_a_query_sees(sight):
    seen = SIGHT[sight]
    shuffles = joint.shuffled_keys(seen, 3, np.random.default_rng(0))
    for shuffle in shuffles:
        for row, visible in zip(shuffle, seen):
            keys = np.sort(row[visible])
            assert np.array_equal(keys, np.flatnonzero(visible))
        assert sight == "causal" or (shuffle == shuffle[0]).all()
    assert not np.array_equal(shuffles[0], shuffles[1])


@pytest.mark.parametrize("sight", SIGHT)
def test_shuffled_keys_have_the_rank_of_chance(pair, sight):
    """Mean of 1/rank over random keys is the harmonic number of n over n.

    Only queries that see n > 1 keys count.
    """
    q, k = pair
    seen = SIGHT[sight]
    attention = joint.attention(q, k, 1, seen)
    strongest = attention.argmax(axis=-1)
    distances = joint.distances(q, k, "cosine")
    ranks = joint.ranks(distances, seen)
    rng = np.random.default_rng(0)
    totals = []
    for shuffle in joint.shuffled_keys(seen, 1000, rng):
        keys = shuffle[np.arange(T), strongest]
        totals.append(joint.nearness(ranks, keys, seen))
    counts = [n for n in seen.sum(axis=1) if n > 1]
    inverse_ranks, of_rank_1 = np.mean(totals, axis=0) / len(counts)
    chance = np.mean([np.mean(1 / np.arange(1, n + 1)) for n in counts])
    chance_of_rank_1 = np.mean([1 / n for n in counts])
    # of 1,000 shuffles: measured 0.008
    assert max_error(inverse_ranks, chance) < 0.02
    assert max_error(of_rank_1, chance_of_rank_1) < 0.02


def test_without_a_limit_to_the_scale_every_strongest_key_would_be_the_nearest(pair):
    """Why nearness alone cannot choose c: |c q - k/c|^2 = c^2 |q|^2 - 2 q.k + |k|^2 / c^2."""
    q, k = pair
    strongest = products_of(q, k).argmax(axis=-1)
    huge = joint.normalised(q, k, 1e4)
    _, nearest = near(*huge, strongest, "euclidean")
    assert (nearest == 1).all()
    _, nearest = near(q, k, strongest, "euclidean")
    assert (nearest < 1).all()


def test_the_plane_is_that_of_principal_components(pair):
    x = pair[0][0] * np.linspace(1, 3, D)
    U = joint.plane(np.cov(x.T))
    _, _, directions = np.linalg.svd(x - x.mean(axis=0))
    cosines = (U * directions[:2].T).sum(axis=0)
    assert max_error(abs(cosines), 1) < 1e-12  # measured 2e-16
    largest = values_at(U, abs(U).argmax(axis=0))
    assert (largest > 0).all()


# words


def decode(ids):
    """A text as WordPiece decodes it: ## goes on, a blank otherwise; 9 is special."""
    pieces = ["the", "cap", "##y", "##bara", ".", "now", "\ufffd"]
    text = " ".join(pieces[i] for i in np.ravel(ids) if i != 9)
    text = text.replace(" ##", "")
    text = text.replace(" .", ".")
    return text.replace("\ufffd \ufffd", "é")


def test_pieces_make_words():
    ids = np.array([9, 0, 1, 2, 3, 5, 4, 4, 9])
    numbers = words.numbers(ids, decode)
    assert numbers.tolist() == [0, 1, 2, 2, 2, 3, 4, 5, 6]
    pieces = ["[CLS]", *["-"] * 7, "[SEP]"]
    names = words.names(ids, numbers, decode, pieces)
    assert names == "[CLS] the capybara now . . [SEP]".split()
    matches = words.matches(" Capybara", names)
    assert matches.shape == (7,)
    assert np.flatnonzero(matches).tolist() == [2]


def test_the_bytes_of_one_character_stay_together():
    numbers = words.numbers([0, 6, 6, 5], decode)
    assert numbers.tolist() == [0, 1, 1, 2]


def test_attention_of_words_sums_over_keys_and_averages_over_queries(pair):
    q, k = pair
    word = np.repeat(np.arange(5), [1, 3, 6, 2, 8])
    pattern = joint.attention(q, k, 1, ALL)
    new, new_q, new_k = words.merged(pattern, q, k, word)
    assert max_error(new.sum(axis=-1), 1) < 1e-12
    attention = pattern[1, 4:10, 1:4].sum(axis=1)  # of the third to the second
    assert new[1, 2, 1] == pytest.approx(attention.mean())
    second_q = q[:, 1:4].mean(axis=1)
    fourth_k = k[:, 10:12].mean(axis=1)
    assert max_error(new_q[:, 1], second_q) < 1e-12
    assert max_error(new_k[:, 3], fourth_k) < 1e-12
    same = words.merged(pattern, q, k, np.arange(T))
    assert np.array_equal(same[0], pattern)
    assert np.array_equal(same[1], q)
