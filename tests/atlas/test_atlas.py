"""The numbers of an atlas: plain computations, planted heads, chance, what is drawn, resumption."""

from types import SimpleNamespace

import constructed
import null_models
import numpy as np
import pytest
import tiny

import minitx
from minitx.analysis.atlas import (
    How,
    compute,
    flags,
    heads,
    projections,
    sentences,
    shapes,
    trust,
)
from minitx.analysis.maths import joint
from minitx.analysis.measures import joint_fit
from minitx.analysis.pages import atlas as page
from minitx.analysis.running import executor, stream
from minitx.analysis.texts import formats

FEW = How(sentences=12)


@pytest.fixture(scope="module")
def ids(tmp_path_factory):
    """A file of token ids for models without a tokenizer."""
    rng = np.random.default_rng(0)
    rows = [rng.integers(5, 20, size=n) for n in rng.integers(5, 8, size=6)]
    return written(tmp_path_factory.mktemp("ids"), rows)


def written(folder, rows):
    """A file of these ids."""
    path = folder / "ids.txt"
    path.write_text("\n".join(" ".join(map(str, row)) for row in rows))
    return formats.of(path, is_ids=True)


@pytest.mark.parametrize(
    "variant", ["bert-masked", "gpt2-causal", "llama-grouped", "modernbert-masked"]
)
def test_points_are_those_of_a_plain_computation(variant, ids):
    """Queries and keys as they are compared, after the turn and for each head, by an SVD."""
    model = tiny.load(variant)
    computed = compute(model, ids, How(sentences=6)).sides[0]
    documents = sentences.sentences(model, ids, 6)
    moves, *_ = joint_fit.moved(model, documents, joint_fit.How())
    traces = [minitx.run(model, x[None], ["q", "k", "pattern"]) for x in documents]
    cfg, layer, head = model.config, 1, 1
    group = cfg.n_heads // cfg.n_kv
    q = np.concatenate([x["q", layer][0, head] for x in traces])
    k = np.concatenate([x["k", layer][0, head // group] for x in traces])
    for side, x in ("query", q), ("key", k):
        norms = computed.norms[side][layer, head]
        np.testing.assert_allclose(norms, np.linalg.norm(x, axis=1), 1e-5)
    pair = joint.normalised(q, k, moves["c"][layer, head], moves["a"][layer, head])
    x = np.concatenate([side / np.linalg.norm(side, axis=1, keepdims=True) for side in pair])
    x -= x.mean(axis=0)
    _, _, V = np.linalg.svd(x, full_matrices=False)
    expected, own = x @ V[:2].T, computed.xy["pca"][layer, head]
    turned = np.sign((expected * own).sum(axis=0))
    np.testing.assert_allclose(own, expected * turned, atol=1e-5)
    pattern = traces[0]["pattern", layer][0, head]
    n = min(len(pattern), 5)
    for query, row in enumerate(pattern):
        seen = query + 1 if cfg.causal else len(pattern)
        best = np.argsort(-row[:seen], kind="stable")[:n]
        index = computed.strongest.index[layer, head, query]
        assert index[: len(best)].tolist() == best.tolist()
        assert (index[len(best) :] == -1).all()
        weight = computed.strongest.weight[layer, head, query, : len(best)]
        np.testing.assert_allclose(weight, row[best], atol=1e-3)  # of float16: 5e-4


ROWS = [("A man plays.", "He makes music."), ("The dog sleeps in it.", "An animal runs fast.")]


def test_pairs_of_a_table_are_read_together(tmp_path):
    """Norms of queries and the strongest weights are those of a pass with types 0 and 1."""
    path, model = tmp_path / "pairs.csv", minitx.load("tiny-bert")
    path.write_text("\n".join(["a,b", *map(",".join, ROWS)]))
    text = formats.Text(str(path), column="a", label="b")
    space = compute(model, text, How(sentences=2)).sides[0]
    traces = [minitx.run(model, [pair], ["q", "pattern"]) for pair in ROWS]
    q = np.concatenate([x["q", 1][0, 2] for x in traces])
    np.testing.assert_allclose(space.norms["query"][1, 2], np.linalg.norm(q, axis=1), 1e-5)
    largest = np.concatenate([x["pattern", 1][0, 2].max(axis=1) for x in traces])
    np.testing.assert_allclose(space.strongest.weight[1, 2, :, 0], largest, atol=1e-3)
    untyped = minitx.run(model, traces[0].tokens[0], [("q", 1)])["q", 1][0, 2]
    assert abs(untyped - q[: len(untyped)]).max() > 0.01
    path.write_text("a,b\nA man.,\n")
    with pytest.raises(ValueError, match="pairs.csv, row 2: text 1 of the pair, '', has no tokens"):
        compute(model, text)
    with pytest.raises(ValueError, match="has 2 pairs; wanted 3"):
        path.write_text("\n".join(["a,b", *map(",".join, ROWS)]))
        compute(model, text, How(sentences=3))


def test_what_is_near_is_counted_in_the_space_and_in_the_plane(monkeypatch, ids):
    monkeypatch.setattr(heads, "NEAREST", 2)
    model = tiny.load("bert-masked")
    computed = compute(model, ids, How(sentences=6)).sides[0]
    documents = sentences.sentences(model, ids, 6)
    settings = joint_fit.How()
    moves, *_ = joint_fit.moved(model, documents, settings)
    layers = [joint_fit.layers(model, x, settings)[0] for x in documents]
    near, n, start = np.zeros(2), 0, 0
    xy, total = computed.xy["pca"][0, 1].astype(np.float64), sum(map(len, documents))
    for layer in layers:
        T = len(layer.seen)
        own = slice(start, start + T)
        flat = xy[:total][own], xy[total:][own]
        pair = [x[1] for x in joint_fit.stages(layer, moves)[1]]
        far = joint.distances(*flat, "euclidean"), joint.distances(*pair, "cosine")
        for i, table in enumerate(far):
            best = layer.pattern[1].argmax(axis=-1)
            near[i] += sum((row <= row[key]).sum() <= 2 for row, key in zip(table, best))
        n, start = n + T, start + T
    assert (computed.lie.near_plane[0, 1], computed.lie.near_space[0, 1]) == pytest.approx(near / n)
    chance = np.mean([2 / len(x) for x in documents for _ in x])
    assert abs(computed.lie.near_space_null - chance).max() < 0.1  # 19 shuffles; measured: 0.03


def test_heads_that_look_at_an_offset_are_named():
    """The heads of both layers of a model made for it; the last head looks at all keys alike."""
    computed = compute(constructed.waves(), "sample", FEW).sides[0]
    flagged = {(x.layer, x.head): x for x in computed.flags if x.kind == "offset"}
    assert {*flagged} == {*constructed.LAGS}
    for place, (lag, _) in constructed.LAGS.items():
        assert flags.where(lag) in flagged[place].words
        assert flagged[place].value > 0.9
        assert flagged[place].null < 0.3
    spirals = {(x.layer, x.head) for x in computed.flags if x.kind == "spiral"}
    assert not {(1, 3)} & spirals


def test_the_head_that_looks_at_the_same_token_is_named():
    same = constructed.word_head(constructed.WORDS, constructed.WORDS)
    table = np.zeros((128, constructed.HALF))
    computed = compute(constructed.build(table, {(0, 2): same}), "sample", FEW).sides[0]
    flagged = [(x.layer, x.head) for x in computed.flags if x.kind == "same token"]
    assert flagged == [(0, 2)]


ONE_BACK = np.tri(5, k=-1) - np.tri(5, k=-2) + np.diag([1, 0, 0, 0, 0])
REPEATED = {  # name -> (who looks where in 7 8 7 9 8, same token, induction)
    "at itself": (np.eye(5), 0, 0),
    "at the same token": (np.eye(5)[[2, 4, 0, 3, 1]], 4, 0),
    "at what followed": (np.eye(5)[[0, 1, 1, 3, 2]], 0, 2),
    "one back": (ONE_BACK, 0, 1),
}


def looked(pattern):
    """The sums of a head that looks so, without shuffles."""
    layer = SimpleNamespace(pattern=pattern[None], seen=np.ones((5, 5), bool))
    orders = np.broadcast_to(np.arange(5), (1, 5, 5))
    return heads.looks(layer, np.array([7, 8, 7, 9, 8]), joint_fit.How(), orders)


@pytest.mark.parametrize("name", REPEATED)
def test_attention_to_repeated_tokens_is_counted(name):
    """Attention to oneself counts as none of it, nor does what follows a later token."""
    pattern, same, induction = REPEATED[name]
    sums = looked(pattern)
    assert sums["tokens"].tolist() == [[[same, induction]]]
    assert sums["token_queries"].tolist() == [4, 2]


def test_what_a_distance_alone_gives_is_counted_beside():
    """A head that looks one back meets one of the two keys that it would look at by induction."""
    assert looked(ONE_BACK)["as_far"].tolist() == [[0.0, 1.0]]
    assert looked(REPEATED["at what followed"][0])["as_far"][0, 1] == 0


def test_a_head_that_looks_one_back_is_no_induction_head():
    """Though it looks where induction would, as often as it looks there anyway."""
    n = np.array([99, 99])
    sums = {"offsets": np.zeros((1, 3, 1, 17)), "offset_queries": np.full((1, 17), 99)}
    sums |= {"tokens": np.full((1, 3, 1, 2), 2.0), "token_queries": n[None]}
    sums["tokens"][0, 0] = 90
    sums["as_far"] = np.array([[[5.0, 88.0]]])
    assert [x.kind for x in flags.of_counts(sums, [""] * 17)] == ["same token"]


def test_trained_induction_heads_are_named(tmp_path):
    """In rows of letters that come twice: all heads of its second layer, none of the first."""
    rng = np.random.default_rng(0)
    rows = [rng.permutation(24)[:n].tolist() * 2 for n in (5, 6, 7, 9, 11, 12) * 3]
    computed = compute(minitx.load("tiny-induction"), written(tmp_path, rows), How()).sides[0]
    named = {(x.layer, x.head) for x in computed.flags if x.kind == "induction"}
    assert named == {(1, head) for head in range(computed.H)}


def test_other_pictures_are_trusted_as_the_plane_is(monkeypatch, ids):
    """The plane, counted sentence by sentence from its points, as it is counted in the passes."""
    monkeypatch.setattr(heads, "NEAREST", 2)
    for variant in "bert-masked", "gpt2-causal":
        model = tiny.load(variant)
        side = compute(model, ids, How(sentences=6)).sides[0]
        of = [side.queries.sentence] * 2, side.strongest.index[..., 0], model.config.causal
        own, null = trust.of_projection(side.xy["pca"], *of, seed=0)
        np.testing.assert_allclose(own, side.lie.near_plane, atol=0.03)  # of ties in float32
        assert abs(null - side.lie.near_plane_null).max() < 0.1  # 19 shuffles each
        deep = side.lie.others["pca3"][0]
        assert deep.shape == own.shape and abs(deep - own).max() > 0


@pytest.mark.usefixtures("chance")
@pytest.mark.parametrize("kind", ["random-start", "shuffled-matrices"])
@pytest.mark.parametrize("seed, base", [*enumerate(null_models.BASES)])
def test_random_weights_have_no_head_that_stands_out(base, kind, seed, tmp_path):
    model = minitx.load(null_models.write(base, kind, tmp_path, seed))
    computed = compute(model, "sample", How(sentences=24, seed=seed)).sides[0]
    assert computed.flags == []


def test_a_flag_has_to_exceed_its_null_by_the_common_margin():
    assert flags.is_beyond(0.35, 0.2) and not flags.is_beyond(0.29, 0.2)


@pytest.mark.parametrize("r2", [0.41, 0.8])
def test_a_spiral_is_no_line(r2):
    """Positions are a linear function of a spiral's coordinates by 0.41, which chance is not."""
    values = {kind: np.zeros((2, 1, 1)) for kind in flags.SHAPES}
    values["line"] = np.full((2, 1, 1), r2)
    chance = {kind: np.zeros((2, 1, 1)) for kind in flags.SHAPES}
    flagged = [*flags.of_shapes(values, chance)]
    assert [x.kind for x in flagged] == (["line"] if r2 == 0.8 else [])


def turning(n=12, sentences_=6):
    """A spiral by position, and its table: points [n 2]."""
    position = np.tile(np.arange(n), sentences_)
    angle = position * 0.7
    xy = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (1 + position[:, None] / n)
    table = SimpleNamespace(position=position, token=position, type=np.full(len(xy), 1))
    return xy, table


def test_shapes_are_told_apart():
    rng = np.random.default_rng(0)
    xy, table = turning()
    assert shapes.spiral(xy, table) > 0.9 and shapes.by_position(xy, table) > 0.99
    straight = np.stack([table.position, 0 * table.position], axis=1) + 0.01
    assert shapes.line(straight, table) > 0.99 and shapes.spiral(straight, table) == 0
    cloud = rng.standard_normal(xy.shape)
    assert max(of(cloud, table) for of in shapes.KINDS.values()) < 0.3
    table.token, table.type = np.arange(len(xy)), np.arange(len(xy)) % 2 + 1
    groups = cloud + 9 * table.type[:, None]
    assert shapes.by_type(groups, table) > 0.9
    assert shapes.by_type(cloud, table) < 0.2


def test_a_frequent_token_alone_makes_no_type():
    """Half of all points are one token that lies apart; its type has other tokens, too."""
    rng = np.random.default_rng(0)
    token = np.concatenate([np.zeros(200, int), np.arange(200)])
    xy = rng.standard_normal((400, 2)) + 20.0 * (token == 0)[:, None]
    table = SimpleNamespace(token=token, type=token % 2 + 1)
    assert shapes.by_type(xy, table) < 0.1
    assert shapes.explained(xy, token == 0) > 0.9


def test_sentences_are_drawn_by_a_seed_and_all_are_counted(monkeypatch):
    model = minitx.load("tiny-roberta")
    whole = compute(model, "sample", FEW)
    monkeypatch.setattr(sentences, "DRAWN", 150)
    part, again = (compute(model, "sample", FEW._replace(seed=3)) for _ in range(2))
    drawn, total, words = part.sampled
    assert total == whole.sampled[0] == whole.sampled[1] and drawn <= 300 < total
    assert f"Of 12 sentences {len(part.sentences)} are drawn, by seed 3" in words
    side = part.sides[0]
    assert side.xy["pca"].shape[2] == drawn == 2 * len(side.queries.token)
    np.testing.assert_allclose(side.lie.near_space, whole.sides[0].lie.near_space)
    np.testing.assert_array_equal(side.xy["pca"], again.sides[0].xy["pca"])
    assert {*part.titles} < {*whole.titles}
    other = compute(model, "sample", FEW._replace(seed=4))
    assert other.titles != part.titles


def test_a_text_is_read_sentence_by_sentence(tmp_path):
    model = minitx.load("tiny-bert")
    path = tmp_path / "text.txt"
    path.write_text(
        "The cat sat on 1912 mats . Was it a good cat ?\nNo\n\nIt was indeed very good."
    )
    documents = sentences.sentences(model, str(path), None)
    decoded = [model.tokenizer.decode(x) for x in documents]
    assert len(decoded) == 3 and decoded[1].endswith("?")
    (tmp_path / "classes.txt").write_text("cat\tnoun\nwas\tverb\n")
    classes = sentences.classes_of(str(tmp_path / "classes.txt"))
    table = sentences.Words(model, documents).table(documents, classes)
    kinds = [table.types[i] for i in table.type[table.sentence == 0]]
    assert kinds[0] == kinds[-1] == "special" and kinds[-2] == "punctuation"
    assert "number" in kinds and "word start" in kinds
    assert table.word_classes == ["noun", "verb"]
    counts = np.bincount(table.token)
    np.testing.assert_allclose(table.frequency, counts[table.token] / counts.sum())
    second = table.sentence == 1
    assert table.position[second].tolist() == list(range(second.sum()))
    assert (table.length[second] == second.sum()).all()


def test_an_encoder_decoder_has_three_spaces():
    model = minitx.load("tiny-bart")
    computed = compute(model, "dates", How(sentences=4))
    assert [x.name for x in computed.sides] == ["encoder", "decoder", "cross"]
    encoder, decoder, cross = computed.sides
    assert cross.queries.vocabulary == decoder.queries.vocabulary
    np.testing.assert_array_equal(cross.keys.token, encoder.keys.token)
    n = len(cross.queries.token)
    assert cross.xy["pca"].shape[2] == n + len(cross.keys.token)
    first = cross.strongest.index[:, :, cross.queries.sentence == 1, 0]
    assert (cross.keys.sentence[first] == 1).all()
    page.page(computed)


def test_an_interrupted_atlas_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    model = minitx.load("tiny-roberta")
    whole = page.page(compute(model, "sample", FEW))
    strongest, calls = heads.strongest, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 15:
            raise KeyboardInterrupt
        return strongest(*arguments)

    monkeypatch.setattr(stream, "SAVE_SHARE", 1.0)
    monkeypatch.setattr(heads, "strongest", interrupted)
    # on two threads the first document can be the one that is interrupted, with none saved
    with executor.use(executor.Threads(1)), pytest.raises(KeyboardInterrupt):
        compute(model, "sample", FEW, stream.Run(tmp_path, "atlas", "key"))
    layers = model.config.n_layers * FEW.sentences
    calls[:] = [1] * 15  # so that it is interrupted no more
    again = compute(model, "sample", FEW, stream.Run(tmp_path, "atlas", "key", resume=True))
    assert page.page(again) == whole
    assert 15 < len(calls) < 15 + layers  # what was done is not done again


WRONG = {
    "'sample' has .* sentences .*; wanted 900000": {"sentences": 900000},
    "--tokens 900: this model reads at most": {"tokens": 900},
    "--tokens is 1; wanted 4 or more": {"tokens": 1},
    "--projection 'pcb'; available: pca, tsne, tsne3, umap, umap3": {"projection": "pcb"},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_read_or_drawn_is_refused(message):
    with pytest.raises(ValueError, match=message):
        compute(minitx.load("tiny-roberta"), "sample", How(**WRONG[message]))


def test_a_line_without_a_class_is_named(tmp_path):
    path = tmp_path / "classes.txt"
    path.write_text("cat\tnoun\nwas verb\n")
    with pytest.raises(ValueError, match="line 2: 'was verb'; wanted a word, a tab, its class"):
        sentences.classes_of(str(path))


def doubling(monkeypatch):
    """A t-SNE that doubles the first components; what it is called with."""
    seen = []

    def reduce(x, seed, n):
        seen.append((x.shape, seed, n))
        return x[:, :n] * 2

    monkeypatch.setitem(projections.embed_2d.METHODS, "tsne", (reduce, "numpy", "numpy"))
    return seen


@pytest.mark.parametrize("name, of, axes", [("tsne", "pca", 2), ("tsne3", "pca3", 3)])
def test_other_projections_are_computed_of_the_first_components(monkeypatch, name, of, axes):
    seen = doubling(monkeypatch)
    computed = compute(minitx.load("tiny-roberta"), "sample", How(4, projection=name, seed=5))
    side = computed.sides[0]
    np.testing.assert_allclose(side.xy[name], 2 * side.xy[of])
    assert side.lie.others[name].shape == (2, side.L, side.H)
    assert len(seen) == side.L * side.H
    assert {*seen} == {((side.xy["pca"].shape[2], 16), 5, axes)}


POINTS = np.random.default_rng(0).standard_normal((1, 2, 9, 16)).astype(np.float32)


def test_a_projection_is_computed_once_for_all_runs(monkeypatch, tmp_path):
    """Kept under all that it depends on: another seed, method or other points compute it anew."""
    monkeypatch.setenv("MINITX_CACHE", str(tmp_path))
    seen = doubling(monkeypatch)
    first = projections.points("tsne", POINTS, 0, stream.UNSAVED)
    again = projections.points("tsne", POINTS, 0, stream.UNSAVED)
    np.testing.assert_array_equal(again, first)
    assert again.dtype == np.float32 and len(seen) == 2
    for n, other in enumerate((("tsne", POINTS, 1), ("tsne3", POINTS, 0), ("tsne", -POINTS, 0))):
        projections.points(*other, stream.UNSAVED)
        assert len(seen) == 4 + 2 * n


def without_its_end(own, other):
    own.write_bytes(own.read_bytes()[:-40])


def of_another_seed(own, other):
    own.write_bytes(other.read_bytes())


def with_other_points(own, other):
    with np.load(own) as arrays:
        state = dict(arrays)
    np.savez(own, xy=state["xy"] + 1, of=state["of"])


def with_objects(own, other):
    np.savez(own, xy=np.array([{}]), of=np.array("this"))


DAMAGES = without_its_end, of_another_seed, with_other_points, with_objects


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_projection_that_is_kept_badly_is_computed_again(monkeypatch, tmp_path, damage, capsys):
    monkeypatch.setenv("MINITX_CACHE", str(tmp_path))
    seen = doubling(monkeypatch)
    right = projections.points("tsne", POINTS, 0, stream.UNSAVED)
    (own,) = tmp_path.rglob("*.npz")
    projections.points("tsne", POINTS, 1, stream.UNSAVED)
    (other,) = {*tmp_path.rglob("*.npz")} - {own}
    damage(own, other)
    np.testing.assert_array_equal(projections.points("tsne", POINTS, 0, stream.UNSAVED), right)
    assert f"{own} is damaged, or of another atlas; it is replaced" in capsys.readouterr().err
    projections.points("tsne", POINTS, 0, stream.UNSAVED)
    assert len(seen) == 6 and capsys.readouterr().err == ""


def test_a_projection_that_cannot_be_kept_is_shown_all_the_same(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINITX_CACHE", str(tmp_path / "file"))
    doubling(monkeypatch)
    assert projections.points("tsne", POINTS, 0, stream.UNSAVED).shape == (1, 2, 9, 2)
    assert "is not kept: " in capsys.readouterr().err


def test_a_title_before_a_name_ends_no_sentence():
    text = "Mrs. Long came. He left St. Ives! So?"
    assert sentences.ENDS.split(text) == ["Mrs. Long came.", "He left St. Ives!", "So?"]
