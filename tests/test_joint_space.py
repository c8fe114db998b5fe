"""The joint space of a model's heads: what is reported is what a plain computation from the trace gives."""
import numpy as np
import pytest
from analysis_models import gpt2

import minitx
import weights
from analysis import compare, draw, experiments, flatten, joint, joint_fit, registry  # noqa: F401  (it registers)

SENTENCE = "The brown capybara is sleeping now."
PIECES = ["[CLS]", "the", "br", "##own", "ca", "##p", "##y", "##b", "##ar", "##a", "is", "sl", "##e", "##ep", "##ing",
          "now", ".", "[SEP]"]
space, grid = registry.get("joint-space").run, registry.get("joint-grid").run


@pytest.fixture(scope="module")
def bert():
    return minitx.load(weights.find("tiny-bert"), dtype=np.float64)


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    return minitx.load(gpt2(tmp_path_factory.mktemp("gpt2")), dtype=np.float64)


@pytest.fixture(scope="module")
def noted(bert):
    return space(bert, sentence=SENTENCE, pairs="brown:capybara", head="L1H2,L3H0")


def traced(model, documents, layer, head):
    """Queries, keys and attention of one head on each document, and the keys seen."""
    for ids in documents:
        trace = minitx.run(model, ids, keep=["q", "k", "pattern"])
        seen = np.ones((len(ids), len(ids)), bool)
        own = (trace[name, layer][0, head] for name in ("q", "k", "pattern"))
        yield *own, np.tril(seen) if model.config.causal else seen


def by_hand(model, documents, layer, head, c, distance, moved):
    """Correlation, mean 1/rank and share of rank 1 in the full space and in the plane, from the definitions."""
    sides = [*traced(model, documents, layer, head)]
    mean_q, mean_k = (np.concatenate([side[i] for side in sides]).mean(axis=0) for i in (0, 1))
    a = (c ** joint.DISTANCES[distance].power * mean_q - mean_k) if moved else 0
    sides = [(c * q, (k + a) / c, pattern, seen) for q, k, pattern, seen in sides]
    flat = [(x / np.linalg.norm(x, axis=1, keepdims=True) if distance == "cosine" else x) for s in sides for x in s[:2]]
    every = np.concatenate(flat)
    U = np.linalg.svd(every - every.mean(axis=0), full_matrices=False)[2][:2].T
    products, far, near = [], [], {"full": [], "plane": []}
    for (q, k, pattern, seen), drawn in zip(sides, zip(flat[::2], flat[1::2])):
        apart = {"full": joint.distances(q, k, distance),
                 "plane": np.linalg.norm((drawn[0] @ U)[:, None] - (drawn[1] @ U)[None], axis=-1)}
        for i in range(len(q)):
            row = q[i] @ k[seen[i]].T
            products += [*(row - row.mean())]
            far += [*apart["full"][i][seen[i]]]
            if seen[i].sum() > 1:
                for name, d in apart.items():
                    near[name].append(1 + (d[i][seen[i]] < d[i][pattern[i].argmax()]).sum())
    ranks = [np.array(near[name]) for name in ("full", "plane")]
    return np.corrcoef(products, far)[0, 1], *((1 / x).mean() for x in ranks), *((x == 1).mean() for x in ranks)


@pytest.mark.parametrize("distance", joint.DISTANCES)
@pytest.mark.parametrize("kind", ["bert", "causal"])
def test_measures_are_those_of_a_plain_computation(kind, distance, request):
    """Two documents of different lengths; a head each of two layers; tolerance: sums against two-pass formulas."""
    model = request.getfixturevalue(kind)
    read = [model.tokenizer.encode(text) for text in (SENTENCE, "He went out of the room, and shut the door.")]
    found = joint_fit.fit(model, read, joint_fit.how(distance, "head", "centred", 0), shuffles=2)
    for place in ((0, 0), (1, 2)):
        for stage, c in (("_before", 1), ("", found["c"][place])):
            direct = by_hand(model, read, *place, c, distance,
                             moved=stage == "" and not found["kept"][place])
            keys = [name + stage for name in ("correlation", "mrr", "mrr_plane", "first", "first_plane")]
            for key, value in zip(keys, direct):
                assert found[key][place] == pytest.approx(value, abs=1e-9), key  # measured 6e-15


@pytest.mark.parametrize("kind", ["bert", "causal"])
@pytest.mark.parametrize("distance", joint.DISTANCES)
def test_the_models_own_attention_does_not_change(kind, distance, request):
    model = request.getfixturevalue(kind)
    ids = model.tokenizer.encode(SENTENCE)
    found = joint_fit.fit(model, [ids], joint_fit.how(distance, "head", "centred", 0), shuffles=1)
    for layer, head in np.ndindex(found["c"].shape):
        (q, k, pattern, seen), = traced(model, [ids], layer, head)
        new = joint.normalised(q, k, found["c"][layer, head], found["a"][layer, head])
        other = joint.attention(*new, model.config.attn_scale(layer), seen)
        assert abs(other - pattern).max() < 1e-12  # float64 model: measured 1.1e-15
    assert 0 < found["attention_change"].max() < 1e-12 and found["products_change"].max() < 1e-12


@pytest.mark.parametrize("scope", joint.SCOPES)
def test_heads_share_a_scale_that_is_never_worse_than_none(bert, scope):
    found = grid(bert, documents=2, tokens=24, scope=scope, distance="euclidean")
    axes = joint.SCOPES[scope]
    assert (found["c"] == found["c"].max(axis=axes, keepdims=True)).all()
    after, moved, before = (found["correlation" + stage].mean(axis=axes) for stage in ("", "_moved", "_before"))
    assert (after <= moved + 1e-12).all() and (after < moved - 1e-3).any()
    assert (after <= before + 1e-12).all() and found["n_kept"] == found["kept"].sum()


@pytest.mark.parametrize("options", [{}, {"weighted": 1}, {"scope": "layer"}])
def test_the_correlation_never_gets_worse_for_those_who_share_a_scale(bert, options):
    """Euclidean, where moving alone does harm in some heads: these are left as they are, and say so."""
    found = grid(bert, documents=2, tokens=24, distance="euclidean", **options)
    axes, kept = joint.SCOPES[options.get("scope", "head")], found["kept"]
    assert (found["correlation_moved"] > found["correlation_before"] + 0.01).any()
    assert (found["correlation"].mean(axis=axes) <= found["correlation_before"].mean(axis=axes) + 1e-12).all()
    assert (found["c"][kept] == 1).all() and found["n_kept"] == kept.sum()
    for name in ("correlation", "mrr", "first_plane"):
        assert np.array_equal(found[name][kept], found[name + "_before"][kept])


def test_closer_farther_and_as_before_are_all_heads(bert):
    found = grid(bert, documents=2, tokens=24, distance="euclidean")
    for place in ("", "_plane"):
        gain = found["mrr" + place] - found[f"mrr{place}_before"]
        shares = [found[name + place] for name in ("closer", "farther", "same")]
        assert shares == pytest.approx([(gain > 1e-12).mean(), (gain < -1e-12).mean(), (abs(gain) <= 1e-12).mean()])
        assert sum(shares) == pytest.approx(1)
        assert all(0 <= found[f"{name}{place}_null"] <= 1 for name in ("closer", "farther", "same"))


def test_what_is_compared_is_named(bert):
    """All that has a number for each head, but nulls, rounding, and whether the head was left as it is."""
    found = grid(bert, documents=2, tokens=24)
    every = {name for name, x in found.items() if np.shape(x) == (4, 4) and not name.endswith("_null")}
    assert every - set(joint_fit.PER_HEAD) == {"kept", "attention_change", "products_change"}
    assert set(joint_fit.PER_HEAD) <= every
    tiny = space(bert, sentence="the now", head="L0H0")  # 4 pieces with the special ones, as layers and heads
    assert tiny["seen"].shape == (4, 4)
    assert set(compare.per_head(registry.get("joint-space"), tiny, (4, 4))) == set(joint_fit.PER_HEAD)


def test_weights_change_what_is_looked_for(bert):
    plain, weighted = (grid(bert, documents=2, tokens=24, weighted=w) for w in (0, 1))
    assert not np.array_equal(plain["c"], weighted["c"])
    assert np.array_equal(plain["mrr_before"], weighted["mrr_before"])


def test_the_same_seed_gives_the_same_numbers(bert):
    one, same, other = (grid(bert, documents=3, tokens=20, seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert not np.array_equal(one["mrr_null"], other["mrr_null"])
    assert np.array_equal(one["mrr"], other["mrr"])


def test_shuffled_keys_are_near_by_chance_only(bert):
    """Expected mean 1/rank: harmonic number of the keys over their number."""
    found = grid(bert, documents=4, tokens=30)
    n = [len(ids) for ids in joint_fit.documents(bert, "sample", 4, 30)]
    chance = np.average([(1 / np.arange(1, m + 1)).mean() for m in n], weights=n)
    for name in ("mrr_null", "mrr_plane_before_null"):
        assert found[name].mean() == pytest.approx(chance, rel=0.05)  # measured within 2 %
    assert found["mrr"].min() > 2 * chance


def test_every_point_is_in_the_picture(bert):
    found = grid(bert, documents=3, tokens=20)
    n = sum(len(ids) for ids in joint_fit.documents(bert, "sample", 3, 20))
    assert (found["density"].sum(axis=(-2, -1)) == n).all()
    assert found["density"].shape == (4, 2, 2, 4, joint_fit.BINS, joint_fit.BINS)


def test_where_a_point_falls_in_the_picture():
    """Right is to the right, up is up, and what lies outside falls into the edge."""
    cells = joint_fit.density(np.array([[[0.875, 0.875], [-9.0, -9.0], [0.875, -0.875]]]), np.array([1.0]))[0]
    assert joint_fit.BINS == 40
    assert np.argwhere(cells).tolist() == [[2, 37], [37, 37], [39, 0]]


# one sentence

def test_the_sentence_of_the_note(noted):
    assert noted["pieces"].tolist() == PIECES
    assert {tuple(pair) for pair in noted["pairs"].tolist()} == {(q, k) for q in (2, 3) for k in range(4, 10)}
    assert noted["heads"].tolist() == ["L1H2", "L3H0"] and noted["papers_heads"].tolist() == ["head(2,3)", "head(4,1)"]
    assert noted["q_plane"].shape == noted["k_plane"].shape == (2, 2, 18, 2)
    assert noted["others_q"].shape == (2, 2, 0, 2)


def test_what_is_drawn_is_what_the_trace_has(bert, noted):
    ids = bert.tokenizer.encode(SENTENCE)
    for i, place in enumerate(((1, 2), (3, 0))):
        (q, k, pattern, seen), = traced(bert, [ids], *place)
        assert abs(noted["pattern"][i] - pattern).max() < 1e-12  # measured 0
        assert noted["lines"][i].tolist() == [[t, pattern[t].argmax()] for t in range(18)]
        assert abs(noted["product"][i, 0] - joint.centred(q @ k.T, seen)).max() < 1e-9  # measured 0
        assert abs(noted["product"][i, 1] - noted["product"][i, 0]).max() < 1e-9       # measured 2e-14
        assert np.corrcoef(noted["product"][i, 0].ravel(), noted["distances"][i, 0].ravel())[0, 1] == \
            pytest.approx(noted["correlation_before"][place], abs=1e-9)
        assert noted["near_drawn"][i].tolist() == pytest.approx(
            [noted["mrr_plane_before"][place], noted["mrr_plane"][place]])
    assert noted["near_chance"] == pytest.approx((1 / np.arange(1, 19)).mean())


def test_ranks_of_the_chosen_pairs(bert, noted):
    ids = bert.tokenizer.encode(SENTENCE)
    closer = []
    for layer, head in np.ndindex(4, 4):
        (q, k, pattern, _), = traced(bert, [ids], layer, head)
        before = joint.distances(q, k, "cosine").argsort(axis=1).argsort(axis=1) + 1
        pairs = noted["pairs"]
        assert noted["pair_ranks"][layer, 0, head].tolist() == before[tuple(pairs.T)].tolist()
        closer.append(noted["pair_ranks"][layer, 1, head] < noted["pair_ranks"][layer, 0, head])
    assert noted["pair_closer"] == pytest.approx(np.mean(closer))
    assert noted["pair_rank_null"] == 9.5


def test_top_pairs_are_the_strongest(bert):
    found = space(bert, sentence=SENTENCE, top=7, head="L2H1")
    weights_of_lines = found["pattern"][0][tuple(found["lines"][0].T)]
    assert weights_of_lines.tolist() == np.sort(found["pattern"][0], axis=None)[::-1][:7].tolist()


def test_words_take_the_place_of_pieces(bert):
    found = space(bert, sentence=SENTENCE, words=1, pairs="Brown:capybara", head="L1H2")
    assert found["pieces"].tolist() == ["[CLS]", "the", "brown", "capybara", "is", "sleeping", "now", ".", "[SEP]"]
    assert found["pairs"].tolist() == [[2, 3]]
    pattern = minitx.run(bert, SENTENCE, keep=["pattern"])["pattern", 1][0, 2]
    assert found["pattern"][0, 2, 3] == pytest.approx(pattern[2:4, 4:10].sum(axis=1).mean())
    assert found["pattern"][0].sum(axis=1) == pytest.approx(1)


def test_a_causal_models_queries_see_no_key_to_the_right(causal):
    found = space(causal, sentence=SENTENCE, pairs="sleeping:capybara", head="L0H1")
    assert np.array_equal(found["seen"], np.tri(len(found["pieces"]), dtype=bool))
    assert not found["pattern"][0][~found["seen"]].any()
    assert found["pair_rank_null"] < len(found["pieces"]) / 2
    with pytest.raises(ValueError, match="--top is 137; wanted 0 to 136"):
        space(causal, sentence=SENTENCE, top=137)


def test_pairs_that_are_never_seen_are_refused_before_any_work(causal, monkeypatch):
    monkeypatch.setattr(joint_fit, "fit", lambda *_: pytest.fail("the work had begun"))
    with pytest.raises(ValueError, match="these keys stand to the right of the queries, where this model does"):
        space(causal, sentence=SENTENCE, pairs="capybara:sleeping")


def test_further_documents_are_drawn_behind(bert):
    found = space(bert, sentence=SENTENCE, documents=3, tokens=20, head="L1H2,L0H0")
    n = sum(len(ids) for ids in joint_fit.documents(bert, "sample", 3, 20))
    assert found["others_q"].shape == found["others_k"].shape == (2, 2, n, 2)
    alone = space(bert, sentence=SENTENCE, head="L1H2,L0H0")
    assert not np.array_equal(found["c"], alone["c"])  # they have their say
    with draw.style():
        assert "pale: other documents" in draw.svg(registry.get("joint-space").draw(
            {name: np.asarray(x) for name, x in found.items()}))


def test_the_heads_of_auto_are_the_extremes(bert):
    found = space(bert, sentence=SENTENCE)
    gain = found["mrr"] - found["mrr_before"]
    ends = [gain[tuple(place)] for place in found["places"]]
    assert ends[0] == gain.max() and ends[-1] == gain.min() and len(ends) == 3


@pytest.mark.parametrize("method", ["tsne", "umap"])
def test_other_methods_flatten_what_the_distances_are_of(bert, monkeypatch, method):
    """The package itself is replaced: the first two columns stand in for it."""
    given = []

    def first_two(x, seed):
        given.append(x)
        return x[:, :2]
    monkeypatch.setitem(flatten.METHODS, method, (first_two, "", ""))
    found = space(bert, sentence=SENTENCE, head="L1H2", method=method, documents=2, tokens=20)
    n = 18 + found["others_q"].shape[2]
    assert [x.shape for x in given] == [(2 * n, 32)] * 2  # before and after
    assert all(np.linalg.norm(x, axis=1) == pytest.approx(1) for x in given)  # cosine: unit length
    assert np.array_equal(found["q_plane"][0, 0], given[0][:18, :2])
    assert np.array_equal(found["k_plane"][0, 1], given[1][n:n + 18, :2])


@pytest.mark.parametrize("method, package", [("tsne", "scikit-learn"), ("umap", "umap-learn")])
def test_a_missing_package_is_named(bert, monkeypatch, method, package):
    def missing(name):
        raise ImportError(f"No module named {name!r}")
    monkeypatch.setattr(flatten.importlib, "import_module", missing)
    with pytest.raises(ValueError, match=rf"--method {method} needs {package} \(No module.*minitx\[{method}\]"):
        space(bert, sentence=SENTENCE, method=method)


@pytest.mark.parametrize("options, message", [
    ({"distance": "manhattan"}, "--distance 'manhattan': there are cosine, euclidean"),
    ({"scope": "all"}, "--scope 'all': there are head, layer, model"),
    ({"products": "raw"}, "--products 'raw': there are centred, plain"),
    ({"weighted": 2}, "--weighted is 2; wanted 0 to 1"),
    ({"words": -1}, "--words is -1; wanted 0 to 1"),
    ({"method": "lda"}, "--method 'lda': there are pca, tsne, umap"),
    ({"top": -1}, "--top is -1; wanted 0 to 324"),
    ({"documents": -1}, "--documents is -1; wanted 0 or more"),
    ({"documents": 2, "tokens": 999}, "--tokens 999: this model reads at most 256"),
    ({"head": "L9H0"}, "'L9H0' is no head of this model"),
    ({"pairs": "brown:llama"}, r"--pairs: 'llama' is not in the sentence; there are '\[CLS\]', 'the', 'br', '##own'"),
    ({"pairs": "brown"}, "--pairs 'brown': wanted query:key, as in brown:capybara"),
    ({"sentence": "a"}, "--sentence 'a' has 1 token, special ones aside; wanted at least 2"),
    ({"sentence": "capybara", "words": 1}, "--sentence 'capybara' has 1 word, special ones aside; wanted at least 2"),
    ({"pairs": "brown:"}, "--pairs 'brown:': wanted query:key, as in brown:capybara"),
    ({"sentence": "a \udcff\udcfe cat"}, r"--sentence is not valid UTF-8: '\\udcff' at character 2"),
    ({"sentence": ""}, "--sentence '' has 0 tokens"),
    ({"sentence": "word " * 300}, r"--sentence has \d+ tokens; this model reads at most 256")])
def test_bad_options_of_the_sentence_are_noticed(bert, options, message):
    with pytest.raises(ValueError, match=message):
        space(bert, **{"sentence": SENTENCE} | options)


@pytest.mark.parametrize("options, message", [
    ({"distance": ""}, "--distance '': there are cosine, euclidean"), ({"scope": "heads"}, "--scope 'heads'"),
    ({"tokens": 257}, "--tokens 257: this model reads at most 256"), ({"tokens": 3}, "--tokens is 3; wanted 4 or more"),
    ({"documents": -2}, "--documents is -2; wanted 1 or more")])
def test_bad_options_of_the_grid_are_noticed(bert, options, message):
    with pytest.raises(ValueError, match=message):
        grid(bert, **options)


def test_what_is_said_follows_from_the_numbers(bert, noted):
    says = registry.get("joint-space").says({name: np.asarray(x) for name, x in noted.items()})
    for space, text in zip(("", "_plane"), says.split("In the ")[1:]):
        for name, verb in (("closer", "come closer"), ("farther", "go farther"), ("same", "stay as near")):
            assert f"{verb} in {noted[name + space]:.0%}" in text
            assert f"up to {noted[f'{name}{space}_null']:.0%})" in text
        beyond = [name for name in ("closer", "farther") if noted[name + space] > noted[f"{name}{space}_null"]]
        assert f": {' and '.join(beyond) or 'neither'} beyond chance;" in text
    assert f"The 12 pairs chosen come closer in {noted['pair_closer']:.0%}" in says
