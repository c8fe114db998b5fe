"""The joint space of a model's heads, against plain computations from the trace."""

import itertools
from functools import partial

import numpy as np
import power
import pytest
from distance import max_error
from outcomes import run, says
from scipy.stats import spearmanr

import minitx
from minitx.analysis import commands
from minitx.analysis.contract import registry
from minitx.analysis.drawing import draw
from minitx.analysis.maths import embed_2d, joint
from minitx.analysis.measures import joint_fit, joint_summary
from minitx.analysis.pages import compare

SENTENCE = "The brown capybara is sleeping now."
PIECES = "[CLS] the br ##own ca ##p ##y ##b ##ar ##a is sl ##e ##ep ##ing now . [SEP]".split()
NOTED = [*itertools.product((2, 3), range(4, 10))]  # pieces of brown and of capybara
space = partial(run, "joint-space")
grid = partial(run, "joint-grid")


@pytest.fixture(scope="module")
def bert():
    return minitx.load("tiny-bert", dtype=np.float64)


@pytest.fixture(scope="module")
def noted(bert):
    return space(bert, sentence=SENTENCE, pairs="brown:capybara", head="L1H2,L3H0")


def traced(model, documents, layer, head):
    """Queries, keys and attention of one head on each document, and the keys seen."""
    for ids in documents:
        trace = minitx.run(model, ids, keep=["q", "k", "pattern"])
        q = trace["q", layer][0, head]
        k = trace["k", layer][0, head]
        pattern = trace["pattern", layer][0, head]
        seen = np.ones(pattern.shape, bool)
        if model.config.causal:
            seen = np.tril(seen)
        yield q, k, pattern, seen


def by_hand(model, documents, layer, head, c, distance, moved):
    """Measures of one head from their definitions, its keys moved to its queries or not."""
    sides = [*traced(model, documents, layer, head)]
    a = translation(sides, c, distance) if moved else 0
    sides = [(c * q, (k + a) / c, pattern, seen) for q, k, pattern, seen in sides]
    points = []
    for q, k, *_ in sides:
        points += [on_sphere(q, distance), on_sphere(k, distance)]
    U = plane_of(np.concatenate(points))
    products = []
    distances = []
    ranks = []
    ranks_plane = []
    by_text = []
    for q, k, pattern, seen in sides:
        d = joint.distances(q, k, distance)
        n = len(products)
        for i, visible in enumerate(seen):
            row = q[i] @ k[visible].T
            products += [*(row - row.mean())]
            distances += [*d[i][visible]]
        by_text.append(spearmanr(products[n:], distances[n:]).statistic)
        ranks += strongest_ranks(d, pattern, seen)
        q_plane = on_sphere(q, distance) @ U
        k_plane = on_sphere(k, distance) @ U
        d_plane = np.linalg.norm(q_plane[:, None] - k_plane, axis=-1)
        ranks_plane += strongest_ranks(d_plane, pattern, seen)
    measures = {"correlation": np.corrcoef(products, distances)[0, 1]}
    measures["spearman"] = np.mean(by_text)
    measures["mrr"], measures["first"] = nearness(ranks)
    measures["mrr_plane"], measures["first_plane"] = nearness(ranks_plane)
    return measures


def translation(sides, c, distance):
    """What brings the mean of the keys of all documents to that of their queries."""
    mean_q = np.concatenate([q for q, *_ in sides]).mean(axis=0)
    mean_k = np.concatenate([k for _, k, *_ in sides]).mean(axis=0)
    power = joint.DISTANCES[distance].power
    return c**power * mean_q - mean_k


def on_sphere(x, distance):
    """Rows as they are drawn: of unit length where only their directions count."""
    if distance == "cosine":
        return x / np.linalg.norm(x, axis=1, keepdims=True)
    return x


def plane_of(points):
    """The first two principal directions: [D 2]."""
    centred = points - points.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return directions[:2].T


def strongest_ranks(d, pattern, seen):
    """By distance [T S], the rank of each query's strongest key, if it sees more keys than one."""
    ranks = []
    for row, strongest, visible in zip(d, pattern.argmax(axis=1), seen):
        if visible.sum() > 1:
            nearer = row[visible] < row[strongest]
            ranks.append(1 + nearer.sum())
    return ranks


def nearness(ranks):
    """Mean of 1 / rank, and share of rank 1."""
    ranks = np.array(ranks)
    return (1 / ranks).mean(), (ranks == 1).mean()


def harmonic_number(n):
    return sum(1 / i for i in range(1, n + 1))


@pytest.mark.parametrize("distance", joint.DISTANCES)
@pytest.mark.parametrize("kind", ["bert", "causal64"])
def test_measures_are_those_of_a_plain_computation(kind, distance, request):
    """Two documents of different lengths, a head of each of two layers."""
    model = request.getfixturevalue(kind)
    texts = (SENTENCE, "He went out of the room, and shut the door.")
    documents = [model.tokenizer.encode(text) for text in texts]
    result = joint_fit.fit(model, documents, joint_fit.How(distance), shuffles=2)
    for place in ((0, 0), (1, 2)):
        before = by_hand(model, documents, *place, 1, distance, moved=False)
        moved = not result["kept"][place]
        c = result["c"][place]
        after = by_hand(model, documents, *place, c, distance, moved=moved)
        assert len(before) == len(after) == 6
        for name, value in after.items():  # sums against two-pass formulas: measured 6e-15
            assert result[name][place] == pytest.approx(value, abs=1e-9), name
            expected = pytest.approx(before[name], abs=1e-9)
            assert result[name + "_before"][place] == expected, name


@pytest.mark.parametrize("kind", ["bert", "causal64"])
@pytest.mark.parametrize("distance", joint.DISTANCES)
def test_the_models_own_attention_does_not_change(kind, distance, request):
    model = request.getfixturevalue(kind)
    ids = model.tokenizer.encode(SENTENCE)
    result = joint_fit.fit(model, [ids], joint_fit.How(distance), shuffles=1)
    for layer, head in np.ndindex(result["c"].shape):
        ((q, k, pattern, seen),) = traced(model, [ids], layer, head)
        c = result["c"][layer, head]
        a = result["a"][layer, head]
        new_q, new_k = joint.normalised(q, k, c, a)
        scale = model.config.attn_scale(layer)
        other = joint.attention(new_q, new_k, scale, seen)
        assert max_error(other, pattern) < 1e-12  # float64 model: measured 1.1e-15
    assert 0 < result["attention_change"].max() < 1e-12
    assert result["products_change"].max() < 1e-12


@pytest.mark.parametrize("scope, weighted", [("head", True), *((x, False) for x in joint.SCOPES)])
def test_heads_share_a_scale_that_is_never_worse_than_none(bert, scope, weighted):
    """Euclidean, where moving alone does harm in some heads: these are left as they are."""
    options = {"scope": scope, "weighted": weighted}
    result = grid(bert, documents=2, tokens=24, distance="euclidean", **options)
    axes = joint.SCOPES[scope]
    kept = result["kept"]
    assert (result["correlation_moved"] > result["correlation_before"] + 0.01).any()
    assert not np.ptp(result["c"], axis=axes).any()
    after = result["correlation"].mean(axis=axes)
    moved = result["correlation_moved"].mean(axis=axes)
    before = result["correlation_before"].mean(axis=axes)
    assert (after <= moved + 1e-12).all()
    assert (after < moved - 1e-3).any()
    assert (after <= before + 1e-12).all()
    assert (result["c"][kept] == 1).all()
    assert result["n_kept"] == kept.sum()
    for name in ("correlation", "mrr", "first_plane"):
        before = result[name + "_before"]
        assert np.array_equal(result[name][kept], before[kept])


def test_closer_farther_and_as_before_are_all_heads(bert):
    result = grid(bert, documents=2, tokens=24, distance="euclidean")
    for place in ("", "_plane"):
        gain = result["mrr" + place] - result[f"mrr{place}_before"]
        heads = {"closer": gain >= 0.05, "farther": gain <= -0.05, "same": abs(gain) < 0.05}
        for name, members in heads.items():
            assert result[name + place] == pytest.approx(members.mean())
            assert 0 <= result[f"{name}{place}_null"] <= 1
        assert sum(result[name + place] for name in heads) == pytest.approx(1)


def test_what_is_compared_is_named(bert):
    """All that has a number for each head, but nulls, rounding, and which heads were left alone."""
    result = grid(bert, documents=2, tokens=24)
    per_head = {name for name, x in result.items() if np.shape(x) == (4, 4)}
    per_head = {name for name in per_head if not name.endswith("_null")}
    assert per_head - set(joint_fit.PER_HEAD) == {"kept", "attention_change", "products_change"}
    assert set(joint_fit.PER_HEAD) <= per_head
    # 4 pieces with the special ones, as layers and heads
    short = space(bert, sentence="the now", head="L0H0")
    assert short["seen"].shape == (4, 4)
    compared = compare.per_head(registry.get("joint-space"), short, (4, 4))
    assert set(compared) == set(joint_fit.PER_HEAD)


def test_weights_change_what_is_looked_for(bert):
    plain = grid(bert, documents=2, tokens=24, weighted=False)
    weighted = grid(bert, documents=2, tokens=24, weighted=True)
    assert not np.array_equal(plain["c"], weighted["c"])
    assert np.array_equal(plain["mrr_before"], weighted["mrr_before"])


def test_another_seed_gives_another_null(bert):
    first = grid(bert, documents=3, tokens=20, seed=1)
    other = grid(bert, documents=3, tokens=20, seed=2)
    assert not np.array_equal(first["mrr_null"], other["mrr_null"])
    assert np.array_equal(first["mrr"], other["mrr"])


def test_shuffled_keys_are_near_by_chance_only(bert):
    """Expected mean 1/rank: harmonic number of the keys over their number."""
    result = grid(bert, documents=4, tokens=30)
    lengths = [len(ids) for ids in joint_fit.documents(bert, "sample", 4, 30)]
    chance = sum(map(harmonic_number, lengths)) / sum(lengths)
    for name in ("mrr_null", "mrr_plane_before_null"):
        assert result[name].mean() == pytest.approx(chance, rel=0.05)  # measured within 2%
    assert result["mrr"].min() > 2 * chance


def test_every_point_is_in_the_picture(bert):
    result = grid(bert, documents=3, tokens=20)
    n = sum(len(ids) for ids in joint_fit.documents(bert, "sample", 3, 20))
    density = result["density"]
    assert (density.sum(axis=(-2, -1)) == n).all()
    assert density.shape == (4, 2, 2, 4, joint_fit.BINS, joint_fit.BINS)


def test_where_a_point_falls_in_the_picture():
    """Right is to the right, up is up, and what lies outside falls into the edge."""
    assert joint_fit.BINS == 40

    def cell_of(point):
        counts = joint_fit.density(np.array([[point]]), np.array([1.0]))[0]
        return np.argwhere(counts).tolist()

    assert cell_of([0.875, 0.875]) == [[2, 37]]
    assert cell_of([0.875, -0.875]) == [[37, 37]]
    assert cell_of([-9.0, -9.0]) == [[39, 0]]


def test_the_sentence_of_the_note(noted):
    assert noted["pieces"].tolist() == PIECES
    assert [*map(tuple, noted["pairs"].tolist())] == NOTED
    assert noted["heads"].tolist() == ["L1H2", "L3H0"]
    assert noted["papers_heads"].tolist() == ["head(2,3)", "head(4,1)"]
    assert noted["q_plane"].shape == noted["k_plane"].shape == (2, 2, 18, 2)
    assert noted["others_q"].shape == (2, 2, 0, 2)


def test_what_is_drawn_is_what_the_trace_has(bert, noted):
    ids = bert.tokenizer.encode(SENTENCE)
    for i, place in enumerate(((1, 2), (3, 0))):
        ((q, k, pattern, seen),) = traced(bert, [ids], *place)
        assert max_error(noted["pattern"][i], pattern) < 1e-12  # measured 0
        queries, keys = noted["lines"][i].T
        assert np.array_equal(queries, np.arange(18))
        assert np.array_equal(keys, pattern.argmax(axis=1))
        products, products_after = noted["product"][i]
        assert max_error(products, joint.centred(q @ k.T, seen)) < 1e-9  # measured 0
        assert max_error(products_after, products) < 1e-9  # measured 2e-14
        distances = noted["distances"][i, 0]
        correlation = np.corrcoef(products.ravel(), distances.ravel())[0, 1]
        expected = noted["correlation_before"][place]
        assert correlation == pytest.approx(expected, abs=1e-9)
        before, after = noted["near_drawn"][i]
        assert before == pytest.approx(noted["mrr_plane_before"][place])
        assert after == pytest.approx(noted["mrr_plane"][place])
    assert noted["near_chance"] == pytest.approx(harmonic_number(18) / 18)


def test_ranks_of_the_chosen_pairs(bert, noted):
    ids = bert.tokenizer.encode(SENTENCE)
    closer = []
    for layer, head in np.ndindex(4, 4):
        ((q, k, _, _),) = traced(bert, [ids], layer, head)
        order = joint.distances(q, k, "cosine").argsort(axis=1)
        ranks = order.argsort(axis=1) + 1
        before, after = noted["pair_ranks"][layer, :, head]
        queries, keys = noted["pairs"].T
        assert np.array_equal(before, ranks[queries, keys])
        closer.append(after < before)
    assert noted["pair_closer"] == pytest.approx(np.mean(closer))
    assert noted["pair_rank_null"] == 9.5


def test_top_pairs_are_the_strongest(bert):
    result = space(bert, sentence=SENTENCE, top=7, head="L2H1")
    pattern = result["pattern"][0]
    queries, keys = result["lines"][0].T
    drawn = pattern[queries, keys]
    strongest = np.sort(pattern, axis=None)[-7:]
    assert np.array_equal(drawn, strongest[::-1])


def test_words_take_the_place_of_pieces(bert):
    result = space(bert, sentence=SENTENCE, words=True, pairs="Brown:capybara", head="L1H2")
    words = "[CLS] the brown capybara is sleeping now . [SEP]".split()
    assert result["pieces"].tolist() == words
    assert result["pairs"].tolist() == [[2, 3]]
    trace = minitx.run(bert, SENTENCE, keep=["pattern"])
    brown_to_capybara = trace["pattern", 1][0, 2, 2:4, 4:10].sum(axis=1)
    of_words = result["pattern"][0]
    assert of_words[2, 3] == pytest.approx(brown_to_capybara.mean())
    assert of_words.sum(axis=1) == pytest.approx(1)


def test_a_causal_models_queries_see_no_key_to_the_right(causal64):
    result = space(causal64, sentence=SENTENCE, pairs="sleeping:capybara", head="L0H1")
    n = len(result["pieces"])
    seen = result["seen"]
    assert np.array_equal(seen, np.tri(n, dtype=bool))
    assert not result["pattern"][0][~seen].any()
    assert result["pair_rank_null"] < n / 2


def test_further_documents_are_drawn_behind(bert):
    result = space(bert, sentence=SENTENCE, documents=3, tokens=20, head="L1H2,L0H0")
    n = sum(len(ids) for ids in joint_fit.documents(bert, "sample", 3, 20))
    assert result["others_q"].shape == result["others_k"].shape == (2, 2, n, 2)
    alone = space(bert, sentence=SENTENCE, head="L1H2,L0H0")
    assert not np.array_equal(result["c"], alone["c"])  # they have their say
    with draw.style():
        picture = draw.svg(registry.get("joint-space").draw(result))
    assert "pale: other documents" in picture


def test_the_heads_of_auto_are_the_extremes(bert):
    result = space(bert, sentence=SENTENCE)
    gain = result["mrr"] - result["mrr_before"]
    ends = [gain[tuple(place)] for place in result["places"]]
    assert ends[0] == gain.max()
    assert ends[-1] == gain.min()
    assert len(ends) == 3


@pytest.mark.parametrize("method", ["tsne", "umap"])
def test_other_methods_flatten_what_the_distances_are_of(bert, monkeypatch, method):
    """The package itself is replaced: the first two columns stand in for it."""
    points = []

    def first_two(x, seed):
        points.append(x)
        return x[:, :2]

    monkeypatch.setitem(embed_2d.METHODS, method, (first_two, None, ""))
    options = {"head": "L1H2", "method": method, "documents": 2, "tokens": 20}
    result = space(bert, sentence=SENTENCE, **options)
    n = 18 + result["others_q"].shape[2]
    before, after = points
    for x in points:
        assert x.shape == (2 * n, 32)
        assert np.linalg.norm(x, axis=1) == pytest.approx(1)  # cosine: unit length
    assert np.array_equal(result["q_plane"][0, 0], before[:18, :2])
    assert np.array_equal(result["k_plane"][0, 1], after[n : n + 18, :2])


@pytest.mark.parametrize("given", [[], ["--pairs", "brown:capybara"], ["--pairs", "brown:now"]])
def test_the_command_marks_pairs(tmp_path, given):
    """They are words of the sentence, no file; those of the note are marked by default."""
    command = ["run", "joint-space", "tiny-bert", "--sentence", SENTENCE, "--head", "L0H0"]
    assert commands.run_command([*command, "--out", str(tmp_path), *given]) == 0
    marked = [*map(tuple, np.load(tmp_path / "joint-space.npz")["pairs"].tolist())]
    assert (marked == NOTED) == ("brown:now" not in given) and marked
    assert "pairs chosen" in (tmp_path / "joint-space.svg").read_text(encoding="utf-8")


def test_no_pairs_are_marked_in_another_sentence_or_where_no_query_sees_its_key(bert, causal64):
    assert not len(space(bert, sentence="The brown bear is sleeping now.")["pairs"])
    assert not len(space(bert, pairs="")["pairs"])
    assert not len(space(causal64)["pairs"])


@pytest.mark.parametrize("method, package", [("tsne", "scikit-learn"), ("umap", "umap-learn")])
def test_a_missing_package_is_named(bert, monkeypatch, method, package):
    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(embed_2d.importlib, "import_module", missing)
    message = rf"--method {method} needs {package} \(No module.*minitx\[{method}\]"
    with pytest.raises(ValueError, match=message):
        space(bert, sentence=SENTENCE, method=method)


def test_what_is_said_follows_from_the_numbers(noted):
    said = says("joint-space", noted)
    verbs = {
        "closer": "come closer, by 0.05 of mean 1/rank or more,",
        "farther": "go as much farther",
        "same": "stay about as near",
    }
    for place, text in zip(("", "_plane"), said.split("In the ")[1:]):
        for name, verb in verbs.items():
            assert f"{verb} in {noted[name + place]:.0%}" in text
            assert f"up to {noted[f'{name}{place}_null']:.0%})" in text
        beyond = []
        for name in ("closer", "farther"):
            if noted[name + place] > noted[f"{name}{place}_null"]:
                beyond.append(name)
        assert f": {' and '.join(beyond) or 'neither'} beyond chance;" in text
    assert f"The 12 chosen pairs come closer in {noted['pair_closer']:.0%}" in said


@pytest.mark.parametrize("size, verdict", [(0, "no"), (1, "yes")])
def test_keys_that_are_queries_moved_by_one_vector_come_closer(size, verdict):
    model = power.with_moved_keys(size, 256, np.random.default_rng(0))
    result = grid(model, documents=8, distance="euclidean")
    assert joint_summary.answer(result).verdict == verdict


def test_closer_in_the_plane_alone_is_no_answer():
    """Of random weights, 6 layers of 12 heads: queries and keys lie apart until they are moved."""
    result = {"closer": 0.29, "closer_null": 0.67, "closer_plane": 0.76, "closer_plane_null": 0.64}
    result |= {"c": np.ones((6, 12)), "n_rows": 1000, "n_features": 65}
    result = {name: np.array(value) for name, value in result.items()}
    assert joint_summary.answer(result).verdict == "undecided"


def test_where_rows_are_too_few_it_is_said_how_many_would_do(causal64):
    d = causal64.config.d_head
    r = space(causal64, sentence="He went out of the room.")
    T = r["pattern"].shape[-1]
    assert (r["n_rows"], r["n_features"]) == (T - 1, d + 1)  # the first query sees one key
    few = {"closer": 0.1, "closer_null": 0.3, "c": np.ones((2, 5)), "n_rows": 20, "n_features": 9}
    answer = joint_summary.answer({name: np.array(x) for name, x in few.items()})
    assert answer.verdict == "undecided"
    assert answer.value == "1 of 10; 20 rows for 9 features, 90 would do"
    enough = few | {"n_rows": 90}
    answer = joint_summary.answer({name: np.array(x) for name, x in enough.items()})
    assert (answer.verdict, answer.value) == ("no", "1 of 10")
