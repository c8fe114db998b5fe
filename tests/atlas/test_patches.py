"""An atlas of pictures: its points are those of a plain computation, planted heads, chance, files.

Planted (tools/planted_patches.py): head 0 looks one patch up, head 1 one to the left.
"""

from functools import cache

import numpy as np
import planted_patches
import pytest

import minitx
from minitx.analysis import __main__ as cli
from minitx.analysis.atlas import How, compute, heads, patches, shapes
from minitx.analysis.maths import grid, joint
from minitx.analysis.measures import joint_fit, pictures
from minitx.weights import shapes as drawn


@cache
def tiny_vit():
    """The bundled model of pictures."""
    return minitx.load("tiny-vit")


@pytest.fixture(scope="module")
def computed():
    """Its atlas of four pictures."""
    return compute(tiny_vit(), "sample", How(sentences=4))


def test_points_are_the_patches_queries_and_keys(computed):
    """Without the class token, in the plane of an SVD; attention is what is left among patches."""
    side, model = computed.sides[0], tiny_vit()
    tokens = pictures.sample(model, "sample", 4, 0).tokens
    traces = [minitx.run(model, x, ["q", "k", "pattern"]) for x in tokens]
    documents = patches.album(model, "sample", 4, 0).documents
    settings = joint_fit.How(among=documents[0].grid.patches)
    moves, *_ = joint_fit.moved(model, documents, settings)
    layer, head = 2, 1
    q, k = (np.concatenate([x[name, layer][0, head, 1:] for x in traces]) for name in "qk")
    pair = joint.normalised(q, k, moves["c"][layer, head], moves["a"][layer, head])
    x = np.concatenate([each / np.linalg.norm(each, axis=1, keepdims=True) for each in pair])
    x -= x.mean(axis=0)
    expected = x @ np.linalg.svd(x, full_matrices=False)[2][:2].T
    own = side.xy["pca"][layer, head]
    np.testing.assert_allclose(own, expected * np.sign((expected * own).sum(axis=0)), atol=1e-5)
    pattern = traces[1]["pattern", layer][0, head, 1:, 1:]
    pattern = pattern / pattern.sum(axis=-1, keepdims=True)
    rows = side.queries.sentence == 1
    best = np.argsort(-pattern, kind="stable")[:, : heads.STRONGEST]
    np.testing.assert_array_equal(side.strongest.index[layer, head, rows], best + 64)
    weight = np.take_along_axis(pattern, best, 1)
    np.testing.assert_allclose(side.strongest.weight[layer, head, rows], weight, atol=1e-3)


def test_what_is_known_of_patches_and_pictures(computed):
    side = computed.sides[0]
    assert side.queries is side.keys and len(side.queries.token) == 4 * 64
    assert side.queries.vocabulary[side.queries.token[64 + 8 * 3 + 5]] == "3,5"
    shown, classes = drawn.draw(4, (0, 1))
    np.testing.assert_array_equal(side.queries.word_class, np.repeat(classes, 64))
    assert computed.titles == [drawn.CLASSES[i] for i in classes]
    assert abs(side.pictures.pixels.astype(int) - shown).max() <= 1  # of rounding, twice
    assert (side.pictures.rows, side.pictures.columns) == (8, 8)
    assert computed.sampled == (512, 512, "All 4 pictures are drawn; points are their patches.")
    assert computed.settings["pictures"] == 4 and computed.settings["patches"] == 256


@pytest.mark.usefixtures("chance")
def test_heads_that_look_one_patch_up_or_to_the_left_are_named():
    side = compute(planted_patches.model(), "sample", How(sentences=6)).sides[0]
    offsets = {x.head: x for x in side.flags if x.kind == "offset"}
    assert {*offsets} == {0, 1}
    for head, where in enumerate(("the patch 1 up", "the patch 1 to the left")):
        assert f"of its attention to {where} (chance" in offsets[head].words
        assert offsets[head].value > 0.6 and offsets[head].null < 0.1


@pytest.mark.usefixtures("chance")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_weights_have_no_head_that_stands_out(seed):
    model = planted_patches.untrained(seed)
    assert compute(model, "sample", How(sentences=8, seed=seed)).sides[0].flags == []


def test_offsets_are_counted_in_two_directions():
    """A head that looks one up: all that queries give that have a patch there; none to the side."""
    places = pictures.Grid(3, 3, 0)
    up = np.zeros((9, 9))
    up[np.arange(3, 9), np.arange(6)] = 1
    masks = dict(zip(patches.OFFSETS, patches.at_offsets(places)))
    assert {offset for offset, mask in masks.items() if (up * mask).sum()} == {(-1, 0)}
    assert (up * masks[-1, 0]).sum() == masks[-1, 0].sum() == 6
    assert masks[0, 1].sum() == 6 and masks[2, 2].sum() == 1 and masks[3, 0].sum() == 0


def test_rows_and_columns_are_told_apart():
    rng = np.random.default_rng(0)
    y, x = (np.tile(part.ravel(), 4) for part in np.indices((6, 8)))
    table = patches.Album(None, [], [], np.full(4, -1), [""] * 48).table(range(4))
    kinds = shapes.of_grid(8)
    by_row = np.stack([y, y], axis=1) + 0.1 * rng.standard_normal((192, 2))
    assert kinds["row"](by_row, table) > 0.95 and kinds["column"](by_row, table) < 0.05
    by_column = np.stack([x % 3, x // 3], axis=1) + 0.1 * rng.standard_normal((192, 2))
    assert kinds["column"](by_column, table) > 0.95 and kinds["row"](by_column, table) < 0.05


def test_large_pictures_are_shown_smaller():
    """By means of whole pixels: 224 become 112, 518 become 104; the mean stays."""
    rng = np.random.default_rng(0)
    for side, shown in ((224, 112), (518, 104), (32, 32)):
        pixels = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
        small = patches.shrunk(pixels)
        assert small.shape == (shown, shown, 3)
        assert abs(small.mean() - pixels.mean()) < 1
    assert np.array_equal(small, pixels)


def test_files_are_read_by_name_and_known_by_content(tmp_path):
    images = pytest.importorskip("PIL.Image")
    shown, _ = drawn.draw(3, 7)
    for n, pixels in enumerate(shown):
        images.fromarray(pixels).save(tmp_path / f"picture{n}.png")
    computed = compute(tiny_vit(), str(tmp_path), How(sentences=0))
    assert computed.titles == [f"picture{n}.png" for n in range(3)]
    assert abs(computed.sides[0].pictures.pixels.astype(int) - shown).max() <= 1
    assert computed.sides[0].queries.word_classes == []
    before = patches.described(str(tmp_path))
    images.fromarray(shown[0]).save(tmp_path / "picture2.png")
    after = patches.described(str(tmp_path))
    assert {name for name in before if before[name] != after[name]} == {"picture2.png"}
    with pytest.raises(ValueError, match="has 3 pictures; wanted 5"):
        compute(tiny_vit(), str(tmp_path), How(sentences=5))


WRONG = {
    "tiny-vit reads pictures: --text 'none' is no picture and no folder of them": "--text=none",
    "tiny-vit reads pictures, and --ids takes token ids": "--ids=nowhere",
    "has 0 pictures; wanted at least 1": "--text=.",
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_no_picture_is_refused(message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["atlas", "tiny-vit", WRONG[message]]) == 2
    assert message in capsys.readouterr().err


def test_a_page_of_pictures_is_written(tmp_path, capsys):
    command = ["atlas", "tiny-vit", "--sentences", "2", "--out", str(tmp_path)]
    assert cli.main(command) == 0
    assert "tiny-vit: All 2 pictures are drawn" in capsys.readouterr().out
    assert (tmp_path / "atlas.html").stat().st_size > 100_000


def test_offsets_in_words_name_both_directions():
    assert patches.where((3, 0)) == "the patch 3 down"
    assert patches.where((-1, 2)) == "the patch 1 up and 2 to the right"
    down, across = grid.pairs(2, 2)
    assert (down[0, 2], across[0, 1]) == (1, 1)  # as offsets are: of the key from its query
