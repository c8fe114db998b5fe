"""Masks by distance: values, theory of each meaning, the reference library's numbers, the search.

Bounds in float64 are those of sums in another order: 1e-12 where 1e-15 to 1e-14 was measured.
Others say what was.
"""

from functools import partial

import numpy as np
import outcomes
import pytest
import tiny
from distance import max_error
from safetensors.numpy import load_file
from scipy.special import softmax

import minitx
from minitx.analysis.contract import registry
from minitx.analysis.experiments import mask_positions
from minitx.analysis.maths import masks
from minitx.analysis.measures import losses, mask_tap
from minitx.analysis.running import stream
from minitx.analysis.texts import corpus

T, H = 9, 3
LIBRARY = load_file(tiny.GOLDEN / "float-masks" / "masks.safetensors")
KINDS = {"causal": "gpt2-causal", "masked": "bert-masked"}
EXPERIMENT = registry.get("mask-positions")
QUICK = {"documents": 6, "tokens": 50, "evaluations": 8}
outcome = partial(outcomes.run, "mask-positions", **QUICK)


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS)
def model(request):
    return tiny.load(request.param)


def seen(model, tokens, condition=None, **inputs):
    """Attention of all layers [L B H T S], and the final features, under a condition."""
    tap = losses.tap(model, condition)
    patterns = []

    def record(name, x, layer=None):
        x = tap(name, x, layer)
        if name == "pattern":
            patterns.append(x.copy())
        return x

    x = minitx.forward(model, tokens, hook=record, **inputs)
    return np.array(patterns), x


def without_content(model):
    """A copy whose queries are zero, so that every score is."""
    zero = {name: np.zeros_like(getattr(model.layers[0], name)) for name in ("W_Q", "b_Q")}
    return tiny.with_weights(model, layers={w.index: zero for w in model.layers})


def visible(causal):
    """Keys that a query sees [T S]."""
    return np.tri(T, dtype=bool) | (not causal)


# families


def test_the_linear_mask_is_the_slides():
    mask = masks.build_mask(masks.family("linear"), 20, H)
    assert mask.shape == (1, 20, 20)
    for t in range(2, 21):
        row = np.append(np.linspace(0.1, 1, t), np.zeros(20 - t))
        assert max_error(mask[0, t - 1], row) < 1e-15  # measured 1e-16
    assert mask[0, 2, :3] == pytest.approx([0.1, 0.55, 1])


def test_masks_of_models_that_see_both_sides_are_symmetric_in_distance():
    mask = masks.build_mask(masks.family("exponential", 1), T, H, causal=False)[0]
    assert np.array_equal(mask, mask.T)
    assert mask[0, 3] == mask[8, 5] == 1 / 8
    linear = masks.build_mask(masks.family("linear"), 5, H, causal=False)[0]
    # the farthest key is three to the right
    assert linear[1] == pytest.approx([0.7, 1, 0.7, 0.4, 0.1])


@pytest.mark.parametrize(
    "name, values, distance, expected",
    [
        ("linear", [0.5], [0, 2, 4, 8], [1, 0.875, 0.75, 0.5]),
        ("exponential", [2], [0, 2, 4, 8], [1, 1 / 2, 1 / 4, 1 / 16]),
        ("exponential", [2, 0.2], [0, 2, 8], [1, 0.6, 0.25]),
        ("power", [2], [0, 1, 3, 8], [1, 1 / 4, 1 / 16, 1 / 81]),
        ("window", [3], [0, 2, 3, 8], [1, 1, 0, 0]),
        ("window", [1, 0.25], [0, 1, 8], [1, 0.25, 0.25]),
    ],
)
def test_families_at_known_distances(name, values, distance, expected):
    mask = masks.build_mask(masks.family(name, *values), T, H)
    assert mask[0, -1, 8 - np.array(distance)] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "n, exponents",
    [
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
        (16, np.arange(1, 17) / 2),
    ],
)
def test_alibis_slopes(n, exponents):
    """Of 12 heads, the 8 of 8 heads and then every second of 16, as in the code of Press et al."""
    assert np.array_equal(masks.slopes(n), 2.0 ** -np.array(exponents))
    mask = masks.build_mask(masks.family("alibi", 2), T, n)
    assert np.log(mask[:, -1, 2]) == pytest.approx(-2 * 6 * masks.slopes(n), rel=1e-12)


def test_permuted_distances_are_the_same_for_each_query():
    for causal in (True, False):
        plain = masks.distances(T, causal)
        permuted = masks.distances(T, causal, seed=0)
        assert not np.diagonal(permuted).any()
        assert not permuted[~visible(causal)].any()
        assert np.array_equal(np.sort(plain, axis=1), np.sort(permuted, axis=1))
        assert (plain != permuted).any()
        assert np.array_equal(permuted, masks.distances(T, causal, seed=0))
        assert (permuted != masks.distances(T, causal, seed=1)).any()
    mean = np.mean([masks.distances(T, seed=i)[-1] for i in range(2000)], axis=0)
    # distances 1 to 8, anywhere: four deviations of the mean are 0.21
    assert max_error(mean[:-1], 4.5) < 0.25


def test_a_users_function_is_a_mask(model):
    def nearer_in_later_heads(distance, head):
        return 1 / (1 + head * distance)

    mask = masks.build_mask(nearer_in_later_heads, T, H, model.config.causal)
    assert mask.shape == (H, T, T)
    assert mask[2, 5, 2] == pytest.approx(1 / 7)
    tokens = tiny.ids(model, T)
    patterns, _ = seen(without_content(model), tokens, mask_tap.condition(nearer_in_later_heads))
    assert max_error(patterns, mask / mask.sum(-1, keepdims=True)) < 1e-12
    of_array, _ = seen(without_content(model), tokens, mask_tap.condition(mask))
    assert np.array_equal(patterns, of_array)


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: masks.family("linaer"),
            "'linaer' is not a family of masks; available: linear, exponential, power, alibi, wi",
        ),
        (lambda: masks.family("linear", 0.1, 2), "2 parameters for linear; it has 1: low"),
        (lambda: masks.family("linear", 1.5), "low of linear is 1.5; wanted 0 to 1"),
        (lambda: masks.family("linear", float("nan")), "low of linear is nan; wanted 0 to 1"),
        (
            lambda: masks.family("window", 2.5),
            "n of window is 2.5; wanted a whole number from 1 to 1024",
        ),
        (
            lambda: masks.family("exponential", 0),
            "half_life of exponential is 0; wanted 0.25 to 1024",
        ),
        (
            lambda: masks.build_mask(lambda d, h: d[0, :4], T, H),
            r"the mask is \[4, 9\]; wanted one that broadcasts to \[H T S\] = \[3, 9, 9\]",
        ),
        (
            lambda: masks.build_mask(lambda d, h: -d, T, H),
            "the mask has values from -8 to 0; wanted 0 to 1",
        ),
        (
            lambda: masks.build_mask(lambda d, h: d / d, T, H),
            "the mask has values from nan to nan; wanted 0 to 1",
        ),
        (
            lambda: mask_tap.condition(None, "weight"),
            "'weight' is an unknown mask meaning; available: scores, weights",
        ),
        (lambda: mask_tap.condition(positions="off"), "positions are 'off'; wanted: kept, zero"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_is_no_mask_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_cache_is_refused(causal):
    tap = mask_tap.tap(causal, masks.family("linear"))
    cache = minitx.Cache()
    minitx.forward(causal, [1, 2, 3], cache=cache)
    message = "1 queries and 4 keys: a mask by distance needs the whole text in one pass"
    with pytest.raises(ValueError, match=message):
        minitx.forward(causal, [4], cache=cache, hook=tap)


# meanings: what theory says


@pytest.mark.parametrize("name", masks.MEANINGS)
def test_a_mask_of_ones_changes_nothing(model, name):
    """Not a bit, but library-now shows causal models later keys and adds 1 to others' scores."""
    tokens = tiny.ids(model, T)
    plain, _ = seen(model, tokens)
    masked, _ = seen(model, tokens, mask_tap.condition(np.ones(T), name))
    if name != "library-now":
        assert np.array_equal(plain, masked)
    elif not model.config.causal:
        assert max_error(plain, masked) < 1e-12
    else:
        trace = minitx.run(model, tokens, keep=["q", "k"])
        q, k = (trace[point, 0] for point in "qk")
        free = softmax(q @ k.swapaxes(-1, -2) * model.config.attn_scale(0), axis=-1)
        assert max_error(masked[0], free) < 1e-12


@pytest.mark.parametrize(
    "name, expected",
    [
        ("scores", lambda m, seen: seen / seen.sum(-1, keepdims=True)),
        ("weights", lambda m, seen: m / m.sum(-1, keepdims=True)),
        ("weights_raw", lambda m, seen: m / seen.sum(-1, keepdims=True)),
        ("embedding", lambda m, seen: m / seen.sum(-1, keepdims=True)),
        ("library-2023", lambda m, seen: (m == 1) / (m == 1).sum(-1, keepdims=True)),
        ("library-now", lambda m, seen: np.exp(m) / np.exp(m).sum(-1, keepdims=True)),
        ("library-now-2d", lambda m, seen: (m > 0) / (m > 0).sum(-1, keepdims=True)),
    ],
)
@pytest.mark.parametrize("family", ["exponential", "window"])
def test_uniform_attention_under_a_mask(model, name, expected, family):
    mask = masks.family(family, 4)
    m = masks.build_mask(mask, T, H, model.config.causal)
    patterns, _ = seen(without_content(model), tiny.ids(model, T), mask_tap.condition(mask, name))
    difference = patterns - expected(m, visible(model.config.causal))
    assert np.abs(difference).max() < 1e-12


@pytest.mark.parametrize("family", masks.FAMILIES)
def test_weights_are_those_times_m_brought_to_one(model, family):
    """log m added before the softmax; here m multiplied after it, and rows divided by their sum."""
    tokens = tiny.ids(model, 2, T)
    mask = masks.family(family)
    m = masks.build_mask(mask, T, H, model.config.causal)
    edit = {"pattern": lambda p: p * m / (p * m).sum(-1, keepdims=True)}
    trace = minitx.run(model, tokens, keep=["pattern", "logits"], edits=edit)
    patterns, x = seen(model, tokens, mask_tap.condition(mask, "weights"))
    assert max_error(patterns, trace.stack("pattern")) < 1e-12
    assert max_error(minitx.logits(model, x), trace["logits"]) < 1e-12  # measured 1e-14


def test_a_mask_without_positions_does_what_scores_and_raw_weights_say(model):
    tokens = tiny.ids(model, T)
    mask = masks.family("linear")
    m = masks.build_mask(mask, T, H, model.config.causal)
    zero = {"pos_embed": np.zeros_like}
    trace = minitx.run(model, tokens, keep=["scores", "pattern"], edits=zero)
    scores = trace["scores", 0]
    unseen = np.isneginf(scores)
    scaled = np.where(unseen, 0, scores) * m
    scaled[unseen] = -np.inf
    of_scores = softmax(scaled, axis=-1)
    of_weights = trace["pattern", 0] * m
    for name, expected in (("scores", of_scores), ("weights_raw", of_weights)):
        patterns, _ = seen(model, tokens, mask_tap.condition(mask, name, "zero"))
        assert max_error(patterns[0], expected) < 1e-12


@pytest.mark.parametrize("family", ["linear", "window", "alibi"])
def test_keys_and_values_times_the_mask_by_hand(model, family):
    """softmax(m s) m v, query by query and key by key: what multiplies keys multiplies scores."""
    tokens = tiny.ids(model, T)
    mask = masks.family(family)
    m = np.broadcast_to(masks.build_mask(mask, T, H, model.config.causal), (H, T, T))
    tap = losses.tap(model, mask_tap.condition(mask, "embedding"))
    kept = {}

    def record(name, x, layer=None):
        x = tap(name, x, layer)
        if layer == 0:
            kept[name] = x.copy()
        return x

    minitx.forward(model, tokens, hook=record)
    q, k, v = (kept[point][0] for point in "qkv")
    z = np.zeros_like(q)
    for h, i in np.ndindex(H, T):
        keys = [j for j in range(T) if visible(model.config.causal)[i, j]]
        masked_keys = [m[h, i, j] * k[h, j] for j in keys]
        scores = [q[h, i] @ key * model.config.attn_scale(0) for key in masked_keys]
        for weight, j in zip(softmax(scores), keys):
            z[h, i] += weight * m[h, i, j] * v[h, j]
    assert max_error(kept["z"][0], z) < 1e-12  # measured 2e-15
    plain = minitx.run(model, tokens, keep=["z"])["z", 0]
    assert max_error(z, plain[0]) > 0.01


def test_positions_at_zero_are_a_table_of_zeros(model):
    flat = tiny.with_weights(model, W_pos=np.zeros_like(model.weights.W_pos))
    tokens = tiny.ids(model, T)
    expected = seen(flat, tokens)
    without = seen(model, tokens, mask_tap.condition(positions="zero"))
    assert all(map(np.array_equal, expected, without))


def test_without_positions_a_mask_alone_tells_order():
    """Every key seen, no positions: order is lost but for a mask by distance."""
    model = tiny.load("bert-masked")
    tokens = tiny.ids(model, T)
    order = np.random.default_rng(1).permutation(T)
    for mask, same in ((None, True), (masks.family("exponential", 2), False)):
        condition = mask_tap.condition(mask, positions="zero")
        _, moved = seen(model, tokens[order], condition)
        _, x = seen(model, tokens, condition)
        assert (max_error(moved, x[:, order]) < 1e-12) == same  # measured 1e-15 and 0.18


# meanings: the reference library


@pytest.mark.parametrize(
    "kind, name", [("keys", "library-now-2d"), ("rows", "library-now"), ("linear", "library-now")]
)
@pytest.mark.parametrize("variant", KINDS.values())
def test_library_now_is_what_the_library_returns(variant, kind, name):
    """2-D: whatever is not zero counts as one. 4-D: added, in place of the causal mask."""
    model = tiny.load(variant)
    tokens = LIBRARY[f"{variant}.tokens"]
    mask = LIBRARY[f"{variant}.{kind}"]
    expected = [LIBRARY[f"{variant}.{kind}.pattern.{n}"] for n in range(model.config.n_layers)]
    patterns, x = seen(model, tokens, mask_tap.condition(mask, name))
    assert max_error(patterns[:, 0], expected) < 1e-10  # measured 1e-15
    logits = LIBRARY[f"{variant}.{kind}.logits"]
    assert max_error(minitx.logits(model, x)[0], logits) < 1e-10  # measured 1e-14
    if kind == "keys":
        assert 0 < mask[mask > 0].min() < 1
        whole, _ = seen(model, tokens, mask_tap.condition((mask > 0) * 1.0, name))
        assert np.array_equal(whole, patterns)


def test_the_families_linear_mask_is_the_librarys_input():
    mask = masks.build_mask(masks.family("linear"), T, H)
    assert max_error(mask, LIBRARY["gpt2-causal.linear"]) < 1e-15


@pytest.mark.parametrize("variant", KINDS.values())
def test_library_2023_leaves_of_a_linear_mask_each_token_itself(variant):
    """In float32: equal to window(1), and to each token alone at its place.

    Releases of that time return the latter.
    """
    model = tiny.load(variant, np.float32)
    tokens = tiny.ids(model, T)
    linear = masks.family("linear")
    own = masks.family("window", 1)
    for positions in ("kept", "zero"):
        patterns, x = seen(model, tokens, mask_tap.condition(linear, "library-2023", positions))
        assert np.array_equal(patterns, np.broadcast_to(np.eye(T), patterns.shape))
        _, window = seen(model, tokens, mask_tap.condition(own, "weights", positions))
        assert max_error(x, window) < 1e-6 * np.abs(x).max()  # float32 rounding; measured 0
    alone = [minitx.forward(model, [token], positions=[i])[0, 0] for i, token in enumerate(tokens)]
    _, x = seen(model, tokens, mask_tap.condition(linear, "library-2023"))
    # products of another shape; measured 4e-7
    assert max_error(x[0], alone) < 1e-5 * np.abs(alone).max()


def test_library_2023_forgets_the_scores_where_nothing_has_a_whole_one(model):
    """Next to (1 - m) times the lowest number a score rounds away: equal masks, equal attention."""
    condition = mask_tap.condition(np.full(T, 0.5), "library-2023")
    patterns, _ = seen(model, tiny.ids(model, T), condition)
    rows = visible(model.config.causal)
    assert max_error(patterns, rows / rows.sum(-1, keepdims=True)) < 1e-12


@pytest.mark.parametrize("name", masks.MEANINGS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_stays_hidden(name, side):
    model = tiny.load("gpt2-causal")
    rows = [tiny.ids(model, n, seed=n) for n in (9, 5)]
    condition = mask_tap.condition(masks.family("exponential", 3), name)
    tokens, valid, where = tiny.padded(rows, side, fill=7)
    _, x = seen(model, tokens, condition, valid=valid)
    for i, row in enumerate(rows):
        assert max_error(x[i, where[i]], seen(model, row, condition)[1][0]) < 1e-12


def test_masks_keep_the_models_precision():
    model = tiny.load("gpt2-causal", np.float32)
    for name in masks.MEANINGS:
        condition = mask_tap.condition(masks.family("alibi"), name, "zero")
        patterns, x = seen(model, tiny.ids(model, T), condition)
        assert patterns.dtype == x.dtype == np.float32
        assert np.isfinite(x).all()


# search


def test_the_search_finds_a_planted_optimum():
    tried = []

    def by_half_life(half_life):
        tried.append(half_life)
        return np.log(half_life / 20) ** 2

    result = masks.search(by_half_life, [masks.BOUNDS["half_life"]], 20)
    assert result.best[0] == pytest.approx(20, rel=0.05)  # measured 0.011
    assert result.loss == by_half_life(*result.best) == result.losses.min()
    assert len(result.tried) == len(set(tried)) <= 20

    def by_exponent(exponent, low):
        return np.log(exponent / 2) ** 2 + 4 * (low - 0.3) ** 2

    two = masks.search(by_exponent, [masks.BOUNDS["exponent"], masks.BOUNDS["low"]], 60)
    assert two.best == pytest.approx([2, 0.3], abs=0.01)  # measured 0.0036 and 0.0053
    whole = masks.search(lambda n: abs(n - 5), [masks.BOUNDS["n"]], 20)
    assert whole.best[0] == 5
    edge = masks.search(lambda low: low, [masks.BOUNDS["low"]], 20)
    assert 0 <= edge.best[0] < 0.02  # measured 0


def test_the_search_is_the_same_every_time_and_needs_a_few_evaluations():
    def loss(exponent, low):
        return np.sin(exponent) + low

    bounds = [masks.BOUNDS["exponent"], masks.BOUNDS["low"]]
    first, again = (masks.search(loss, bounds, 15) for _ in range(2))
    assert np.array_equal(first.tried, again.tried)
    with pytest.raises(ValueError, match="5 evaluations; 2 parameters need 6 or more"):
        masks.search(loss, bounds, 5)


# the experiment


@pytest.fixture(scope="module")
def result(causal):
    return outcome(causal)


def kept_documents(model):
    """Documents that are not searched but reported on: two of three."""
    texts = corpus.texts(model, "sample", 6, QUICK["tokens"])
    return [document for i, document in enumerate(texts) if i % 3]


def test_losses_are_those_of_each_condition(causal, result):
    """Per token over documents of unequal lengths, longer than the model's window."""
    kept = kept_documents(causal)
    assert len({len(document) for document in kept}) > 1
    names = result["conditions"].tolist()
    window = mask_tap.condition(masks.family("window", 8), "weights", "zero")
    conditions = {
        "positions kept, no mask": None,
        "window(n=8, low=0) as weights": window,
        "positions zero, no mask": mask_tap.condition(positions="zero"),
    }
    for name, condition in conditions.items():
        expected = token_losses(causal, kept, condition)
        assert result["losses"][names.index(name)] == pytest.approx(expected.mean(), rel=1e-12)
        assert result["n_tokens"] == len(expected)
    means = [result[name] for name in ("loss", "loss_off", "loss_best")]
    assert result["perplexity"] == pytest.approx(np.exp(means))
    assert result["bits"][0] == pytest.approx(result["loss"] / np.log(2))
    meaning = [*masks.MEANINGS].index("library-now-2d")
    assert result["loss_by_meaning"][meaning] == result["loss_off"]
    low, high = result["intervals"].T
    assert (low <= result["losses"]).all()
    assert (result["losses"] <= high).all()


def token_losses(model, documents, condition):
    parts = [losses.causal(model, document, condition=condition) for document in documents]
    return np.concatenate(parts)


def test_the_null_is_the_best_mask_with_its_distances_permuted(causal, monkeypatch):
    best = masks.family("exponential", 2)
    monkeypatch.setattr(mask_positions, "_sought", lambda *a: (best, {"documents_searched": 2}))
    result = outcome(causal, seed=3)
    kept = kept_documents(causal)
    plain = mask_tap.condition(best, "weights", "zero", None)
    permuted = mask_tap.condition(best, "weights", "zero", 3)
    order = token_losses(causal, kept, permuted).mean() - token_losses(causal, kept, plain).mean()
    assert result["order"] == pytest.approx(order, rel=1e-9)
    assert abs(order) > 0.001
    assert result["gain"] - result["gain_null"] == pytest.approx(result["order"], rel=1e-9)
    assert result["order_interval"][0] < result["order"] < result["order_interval"][1]


def test_the_hypothesis_is_put_to_the_losses(result):
    assert result["hypothesis"] < 1e-5  # float32 rounding: measured 0
    assert result["hypothesis_null"] > 0.1
    assert "is confirmed: no token's loss differs" in EXPERIMENT.says(result)
    assert "is not confirmed" in EXPERIMENT.says(result | {"hypothesis": np.array(0.1)})
    assert "cannot be told here" in EXPERIMENT.says(result | {"hypothesis_null": np.array(0.0)})


def test_a_loss_of_what_is_seen_is_no_prediction(causal, result):
    """library-now lifts the causal mask: the list flags it, and under it no gain is stated."""
    said = EXPERIMENT.says(result)
    assert said.count(mask_positions.SEES) == 1
    assert f"(library-now{mask_positions.SEES})" in said
    assert "so the order of the keys is worth" in said
    alone = EXPERIMENT.says(outcome(causal, family="linear", meaning="library-now"))
    assert alone.count(mask_positions.SEES) == 2
    for words in ("a gain of", "is worth", "of the loss due to missing positions"):
        assert words not in alone


def test_a_share_is_said_of_a_gain_above_chance_alone(result):
    numbers = {"loss": np.array(4.0), "loss_off": np.array(6.0), "gain": np.array(0.5)}

    def says(low, high):
        return EXPERIMENT.says(result | numbers | {"gain_interval": np.array((low, high))})

    assert "25% of the loss due to missing positions" in says(0.1, 0.9)
    assert "an interval that holds 0" in says(-0.1, 0.9)
    assert "due to missing positions" not in says(-2, -1)
    assert "The mask with the least loss on the 2 search documents is" in EXPERIMENT.says(result)


def test_the_mask_is_sought_on_other_documents(causal, monkeypatch):
    searched = []
    reported = []
    real = mask_positions._measured

    def watched(model, documents, conditions, *arguments):
        calls = reported if len(conditions) > 1 else searched
        calls.append({tuple(document) for document in documents})
        return real(model, documents, conditions, *arguments)

    monkeypatch.setattr(mask_positions, "_measured", watched)
    outcome(causal, family="window")
    assert len(reported) == 1
    assert len(searched) <= QUICK["evaluations"]
    assert len(searched[0]) == 2
    assert len(reported[0]) == 4
    assert not searched[0] & reported[0]


def test_without_a_search_all_documents_are_reported_on_and_the_mask_shown_is_the_best(causal):
    """As published numbers need it: every document, one mask."""
    options = {"family": "linear", "meaning": "library-2023", "evaluations": 0}
    result = outcome(causal, **options)
    everything = [*corpus.texts(causal, "sample", 6, QUICK["tokens"])]
    assert (result["documents"], result["documents_searched"]) == (6, 0)
    assert result["best"] == "linear(low=0.1) as library-2023"
    zero = mask_tap.condition(positions="zero")
    by_document = [losses.causal(causal, x, condition=zero) for x in everything]
    column = result["conditions"].tolist().index("positions zero, no mask")
    costs = np.concatenate(by_document)
    expected = []
    for base in (np.e, 2):
        of_documents = np.mean([base ** x.mean() for x in by_document])
        expected += [base ** costs.mean(), of_documents, (base**costs).mean()]
    assert result["perplexities"][:, column] == pytest.approx(expected, rel=1e-12)
    assert "No mask was sought; of linear(low=0.1) as library-2023" in EXPERIMENT.says(result)


@pytest.mark.parametrize(
    "gain, low, order, verdict, words",
    [
        (0.5, 0.4, 0.3, "partly", ("50%", "20%")),
        (0.95, 0.9, 0.3, "yes", ("95%", "65%")),
        (0.5, -0.1, 0.3, "undecided", ("50%", "20%")),  # an interval on both sides
        (0.5, 0.4, -0.1, "no", ("50%", "60%")),  # the order of the keys is worth nothing
        (0.5, 0.4, 0.02, "undecided", ("50%", "48%")),  # or may be
    ],
)
def test_a_mask_stands_in_if_it_gives_back_what_was_lost(result, gain, low, order, verdict, words):
    numbers = {"loss": 4.0, "loss_off": 5.0, "gain": gain, "gain_interval": (low, 2.0)}
    numbers |= {"gain_null": gain - order, "order": order}
    numbers["order_interval"] = order - 0.05, order + 0.05
    answer = EXPERIMENT.answer(result | numbers)
    assert answer.verdict == verdict
    own = f"{words[0]} (worse than frequency)"  # as its losses have it
    assert (answer.value, answer.chance.partition(",")[0]) == (own, words[1])
    worse = {"loss": result["loss_null"] + 1, "loss_off": result["loss_null"] + 2}
    assert EXPERIMENT.answer(result | numbers | worse).verdict == "undecided"


def test_no_mask_stands_in_where_nothing_was_lost_or_nothing_is_predicted(result):
    assert EXPERIMENT.answer(result).verdict == "undecided"  # random weights use no positions
    lost = result | {"loss_off": result["loss"] + 1}
    assert "not a prediction" in EXPERIMENT.answer(lost | {"best_sees": True}).measure
    assert EXPERIMENT.answer(lost | {"best_sees": True}).verdict == "undecided"


def test_a_model_without_positions_loses_nothing_without_them(causal):
    flat = tiny.with_weights(causal, W_pos=np.zeros_like(causal.weights.W_pos))
    result = outcome(flat, family="linear")
    assert result["loss"] == result["loss_off"]
    assert "due to missing positions" not in EXPERIMENT.says(result)


def test_one_family_with_parameters_in_one_meaning(causal):
    options = {"family": "exponential", "parameter": "4,0.1", "meaning": "weights"}
    result = outcome(causal, positions="kept", **options)
    assert result["shown"] == "exponential(half_life=4, low=0.1)"
    assert result["meanings"].tolist() == ["weights"]
    assert result["loss"] == result["loss_off"]
    half = masks.build_mask(masks.family("exponential", 4, 0.1), len(result["pieces"]), 1)[0]
    assert np.array_equal(result["mask"], half)
    assert result["effective"].shape == (1, *half.shape)


def test_a_masked_models_tokens_are_hidden_one_at_a_time():
    model = minitx.load("tiny-roberta")
    options = {"documents": 3, "tokens": 18, "every": 5}
    result = outcome(model, family="linear", meaning="library-2023", **options)
    # of 16 ordinary tokens each, from the first and from the second on
    assert result["n_tokens"] == 4 + 3
    assert result["hypothesis"] < 1e-4
    assert "Pseudo-perplexity" in EXPERIMENT.says(result)


def test_the_search_hides_a_masked_models_tokens_together(monkeypatch):
    """An eighth of them at most, whatever is asked for: with none in sight nothing is predicted."""
    searched, gaps = [], losses.gaps

    def watched(model, document, every, start, condition):
        searched.append((every, start))
        return gaps(model, document, every=every, start=start, condition=condition)

    monkeypatch.setattr(losses, "gaps", watched)
    model = minitx.load("tiny-roberta")
    options = {"documents": 3, "tokens": 10, "every": 1, "evaluations": 8}
    result = outcome(model, family="window", **options)
    assert set(searched) == {(8, 0)} and len(searched) <= 8
    assert result["n_tokens"] == 8 * (3 - 1)  # each of those that are reported on
    assert "search documents (whose tokens are hidden together)" in EXPERIMENT.says(result)


def test_an_interrupted_run_goes_on_to_the_same_numbers(causal, result, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(mask_positions, "_results", lambda *a: 1 / 0)
        with stream.resumable(tmp_path, "mask-positions", "key", False) as open_run:
            outcome(causal, run=open_run)
    monkeypatch.setattr(losses, "causal", None)  # nothing is left to be measured
    with stream.resumable(tmp_path, "mask-positions", "key", True) as open_run:
        again = outcome(causal, run=open_run)
    np.testing.assert_equal(again, result)
