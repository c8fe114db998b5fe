"""Experiments in two dimensions, on a model in which their answers were planted, and on tiny-vit.

Planted (tools/planted_patches.py): a table of three waves down and three across a grid of 8 × 8
patches; head 0 looks one patch up, head 1 one to the left; pictures themselves play a small part.
"""

from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import planted_patches
import pytest
import tiny
import untranslated

import minitx
from minitx import analysis
from minitx.analysis import __main__ as cli
from minitx.analysis.contract import registry
from minitx.analysis.maths import grid
from minitx.analysis.measures import pictures as measures
from minitx.weights import shapes

GOLDEN = Path(__file__).parents[1] / "golden/images"
WAVES = planted_patches.WAVES
SIDE = planted_patches.SIDE
planted = planted_patches.model


@cache
def measured(name, **options):
    """What an experiment gives of the model with planted answers."""
    return registry.OF_PICTURES[name].run(planted(), **options)


@pytest.mark.release
@pytest.mark.parametrize("name", registry.OF_PICTURES)
def test_every_figure_of_pictures_is_in_japanese(name):
    experiment = registry.OF_PICTURES[name]
    few = {"documents": max(4, experiment.least_documents), "shuffles": 5}
    given = {key: n for key, n in few.items() if key in experiment.option_names}
    result = measured(name, **given)
    assert untranslated.words(experiment, result) == []


def test_waves_in_two_directions_come_back():
    r = measured("positions", shuffles=100)
    rows, columns = np.nonzero(r["spectrum"] > r["peak_null"])
    cycles = abs(r["down"][rows]).tolist(), r["across"][columns].tolist()
    above = {*zip(*cycles)}
    assert above == {(f, 0) for f in WAVES} | {(0, f) for f in WAVES}
    assert r["n_above"] == 6 and r["n_above_null"] <= 3 and r["n_frequencies"] == 33


def test_a_table_without_an_order_has_no_waves():
    rng = np.random.default_rng(1)
    table = planted().weights.W_pos.copy()
    table[1:] = rng.permutation(table[1:])
    other = tiny.with_weights(planted(), W_pos=table)
    r = registry.OF_PICTURES["positions"].run(other, shuffles=100)
    assert r["peak"] < 1.1 * r["peak_null"]


def test_heads_that_look_one_patch_up_or_to_the_left_come_back():
    r = measured("profiles", documents=12)
    assert r["down"].tolist() == [[-1, 0]] and r["across"].tolist() == [[0, -1]]
    assert r["n_sharp"] == r["n_away"] == 2
    assert r["n_sharp_null"] == 0
    assert r["highest"] > 3 * r["highest_null"]


def test_a_grid_of_few_patches_shows_no_direction():
    """With random weights one of four pairs has twice uniform attention by its positions alone."""
    with pytest.raises(registry.NotApplicable, match="2 rows and 2 columns .* too few pairs"):
        analysis.run("profiles", str(GOLDEN / "deit-bare"))


def test_attention_follows_the_keys_positions():
    r = measured("dial", documents=4)
    assert r["followed"] > 0.8 and r["n_following"] == 2
    assert r["followed"] > r["followed_null"] + 0.3 and r["followed"] > r["stayed"] + 0.3


def test_cosines_of_the_grid_are_read_from_the_stream():
    """A table of the cosines themselves is read whole; places in another order are not."""
    table = np.zeros((65, 24))
    table[1:, :8] = 3 * grid.cosines(SIDE, SIDE, 8)
    other = tiny.with_weights(planted(), W_pos=table)
    r = registry.OF_PICTURES["cca"].run(other, documents=8, shuffles=10)
    assert r["mean"][0] > 0.95 and r["mean_null"][0] < 0.5


def test_a_grid_of_four_patches_has_three_cosines():
    """The usual eight were asked for, and raised an error."""
    small = minitx.load(GOLDEN / "deit-bare")
    r = registry.OF_PICTURES["cca"].run(small, shuffles=5)
    assert r["components"] == 3 and r["correlations"].shape[1] == 3
    with pytest.raises(ValueError, match="components is 5; wanted 1 to 3"):
        registry.OF_PICTURES["cca"].run(small, components=5)


def test_a_stream_of_fewer_directions_than_waves_has_none_of_the_others():
    """Its layers had different numbers of correlations, and the run failed."""
    wide = minitx.load(GOLDEN / "deit-wide")
    r = registry.OF_PICTURES["cca"].run(wide, shuffles=10)
    assert r["correlations"].shape == (3, 8)
    assert r["correlations"][0, -1] != 0 and r["correlations"][-1, -1] == 0


def test_without_positions_the_features_are_others():
    r = measured("remove-positions", documents=6)
    assert r["cosine"] < 0.5 and r["cosine_shuffled"] < 0.5
    flat = tiny.with_weights(planted(), W_pos=np.zeros((65, 24)))
    r = registry.OF_PICTURES["remove-positions"].run(flat, documents=4)
    assert r["cosine"] == pytest.approx(1, abs=1e-12) and r["stays"] == 1


def test_heads_that_look_by_place_keep_their_offset_on_one_patch_and_lose_it_without_positions():
    r = measured("conditions", documents=6)
    assert r["n_directed"] == 2 and r["n_kept"].tolist() == [2, 2, 2, 0]
    assert not r["n_kept_null"].any()
    assert (r["down"].tolist(), r["across"].tolist()) == ([[-1, 0]], [[0, -1]])
    assert registry.OF_PICTURES["conditions"].answer(r).verdict == "yes"
    table = planted().weights.W_pos.copy()
    table[1:] = np.random.default_rng(1).permutation(table[1:])  # pairs of places, but no offset
    r = registry.OF_PICTURES["conditions"].run(tiny.with_weights(planted(), W_pos=table))
    assert r["n_directed"] == 0
    assert registry.OF_PICTURES["conditions"].answer(r).verdict == "undecided"


def test_patches_are_dealt_or_repeated_and_the_class_token_stays():
    module = import_module("minitx.analysis.experiments.pictures.conditions")
    tokens = measures.sample(planted(), "sample", 1, 0).tokens[0]
    tokens[1:, 0] = np.arange(64)
    places, rng = measures.grid_of(planted()), np.random.default_rng(0)
    by_name = {
        name: module._input(tokens, places, condition, rng)[0]
        for name, condition in module.CONDITIONS.items()
    }
    for rows in by_name.values():
        np.testing.assert_array_equal(rows[0], tokens[0])
    order = by_name["dealt"][1:, 0]
    assert sorted(order) == [*range(64)] and (order != np.arange(64)).sum() > 50
    assert len({*by_name["repeated"][1:, 0]}) == 1
    np.testing.assert_array_equal(by_name["alone"], tokens)


def by_row_and_by_column(far):
    """The model with head 0 that compares rows, head 1 columns; its keys stand `far` away."""
    W = np.zeros((24, 24))
    W[:2, :2], W[6:8, 12:14] = 2 * np.eye(2), 2 * np.eye(2)  # the slowest waves down and across
    arrays = {"W_Q": W, "W_K": W, "b_K": np.full(24, far)}
    return tiny.with_weights(planted(), {0: arrays})


@pytest.mark.parametrize("far", [0.0, 3.0])
def test_keys_lie_by_row_or_by_column_and_come_back_from_afar(far):
    options = {"documents": 3, "head": "L0H0,L0H1", "distance": "euclidean"}
    r = registry.OF_PICTURES["joint-space"].run(by_row_and_by_column(far), **options)
    assert r["n"] == 64 and r["k_plane"].shape == (2, 2, 64, 2)
    np.testing.assert_allclose(r["by_row"], [1, 0], atol=0.1)
    np.testing.assert_allclose(r["by_column"], [0, 1], atol=0.1)
    assert (r["by_row_null"] < 0.5).all() and (r["by_column_null"] < 0.5).all()
    assert (r["mrr"] > 0.9).all() and (r["mrr_before"] < 0.4).all() and (r["mrr_null"] < 0.1).all()
    assert r["changed"] < 1e-12


def test_scores_are_made_of_positions():
    """Shares sum to the scores' own variance, also behind CLIP's two norms, whatever the biases."""
    r = measured("sources", documents=4)
    assert (r["position"] > 0.9).all() and abs(r["position_null"]).max() < 0.2
    model = minitx.load(tiny.GOLDEN / "images" / "clip-both", dtype="float64")
    pixels = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), np.uint8)
    tokens = model.encode(images=list(pixels)).tokens
    module = import_module("minitx.analysis.experiments.pictures.sources")
    q, k = module._parts(model, tokens[0], measures.grid_of(model))
    trace = minitx.run(model, tokens[0], [("q", 0), ("k", 0)])
    np.testing.assert_allclose(sum(q), trace["q", 0][0][:, 1:], rtol=0, atol=1e-12)
    keys = trace["k", 0][0][:, 1:]
    differences = [x - x[:, :1] for x in (sum(k), keys)]
    np.testing.assert_allclose(*differences, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", registry.OF_PICTURES)
def test_each_runs_by_name_and_shows_itself(tmp_path, name):
    result = analysis.run(name, "tiny-vit", **({"documents": 8} if name != "positions" else {}))
    result.save(tmp_path, format="png")
    assert (tmp_path / f"{name}.json").is_file() and result.says and "nan" not in result.says
    assert result.title.startswith(registry.OF_PICTURES[name].question)


@pytest.mark.usefixtures("empty_figures")
def test_the_command_line_asks_the_question_of_pictures(tmp_path, capsys):
    cli.main(["run", "conditions", "tiny-vit", "--documents", "2", "--out", str(tmp_path)])
    assert capsys.readouterr().out.startswith("Do heads keep their offset when one patch is")


def test_pictures_are_those_of_a_folder(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    for i, picture in enumerate(shapes.draw(3, 5)[0]):
        image_module.fromarray(picture).save(tmp_path / f"{i}.png")
    result = analysis.run("profiles", "tiny-vit", text=str(tmp_path))
    assert result.numbers["documents"].value == 3
    with pytest.raises(ValueError, match="has 3 pictures; wanted 4, whose names end in .bmp"):
        analysis.run("profiles", "tiny-vit", text=str(tmp_path), documents=4)


def test_tiny_vit_tells_where_the_circle_is():
    """Its card: 98% or more of pictures that it has not seen; at most 40% without positions."""
    model = minitx.load("tiny-vit")
    pictures, classes = shapes.draw(200, (1 << 40, 0))
    tokens = model.encode(images=list(pictures)).tokens
    y = minitx.run(model, tokens, "logits")["logits"]
    assert (y.argmax(axis=1) == classes).mean() >= 0.98
    y = minitx.run(model, tokens, "logits", {"pos_embed": np.zeros_like})["logits"]
    assert (y.argmax(axis=1) == classes).mean() <= 0.4


@pytest.mark.parametrize("folder", ["vit-bare", "deit-wide", "clip-pictures"])
def test_drawn_pictures_come_in_the_size_of_a_model_that_resizes_none(folder):
    model = minitx.load(GOLDEN / folder)
    sample = measures.sample(model, "sample", 6, 0)
    height, width = model.config.picture.size
    assert (height, width) != (shapes.SIDE, shapes.SIDE)
    pictures = shapes.draw(6, (0, 1))[0]
    rows, columns = (np.arange(n) * shapes.SIDE // n for n in (height, width))
    for drawn, tokens in zip(pictures, sample, strict=True):
        # bytes come back from what the preprocessor normalised
        assert np.array_equal(measures.shown(model, tokens), drawn[rows][:, columns])
