"""The recipes of the bundles: gradients of the recurrent ones, and what models begin with."""

import json

import numpy as np
import pytest
import trained

from minitx import weights
from minitx.parameters import parameters
from minitx.training.adamw import AdamW
from minitx.training.start import start
from minitx.weights import dates
from minitx.weights.training import recipe, train_dates, train_deep, train_recurrent


@pytest.mark.parametrize("mechanism", ["fixed", "bahdanau", "additive", "dot"])
def test_slopes_of_a_recurrent_model_are_those_of_its_loss(mechanism):
    """By differences of the loss in float64, along one random direction of all weights at once."""
    rng = np.random.default_rng(3)
    w = {name: x.astype(float) for name, x in train_recurrent.initial(mechanism, 6, rng).items()}
    source = rng.integers(0, train_recurrent.SYMBOLS, (3, 5))
    target = source[:, ::-1]
    _, slopes = train_recurrent.loss_of(mechanism, w, source, target)
    for name, x in w.items():
        direction = 1e-6 * rng.standard_normal(x.shape)
        ends = []
        for side in (1, -1):
            moved = w | {name: x + side * direction}
            ends.append(train_recurrent.loss_of(mechanism, moved, source, target)[0])
        expected = 2 * (slopes[name] * direction).sum()
        assert abs(ends[0] - ends[1] - expected) < 1e-14 + 1e-6 * abs(expected), name


def test_a_recurrent_model_learns():
    w = train_recurrent.initial("dot", 16, np.random.default_rng(0))
    optimizer, losses = AdamW(w), []
    for i in range(25):
        source, target = train_recurrent.sequences("copy", np.random.default_rng([0, i]))
        loss, slopes = train_recurrent.loss_of("dot", w, source, target)
        optimizer.step(slopes, 0.02)
        losses.append(loss)
    assert losses[-1] < losses[0] - 0.3


def test_dates_are_read_and_written_one_place_late():
    """Padding is hidden from the decoder, and no target is left out."""
    tokenizer = train_dates.build_tokenizer()
    written = dates.draw(np.random.default_rng(0), 5)
    inputs, target, others = train_dates.batch_of(tokenizer, written)
    assert [tokenizer.decode(row.tolist()) for row in target] == [x.iso for x in written]
    assert (inputs[:, 1:] == target[:, :-1]).all() and (inputs[:, 0] == train_dates.END).all()
    lengths = [len(x.text) + 2 for x in written]
    assert others["source_valid"].sum(axis=1).tolist() == lengths
    assert others["source"].shape == (5, max(lengths))


def test_dates_are_learned():
    settings = json.loads((weights.find("tiny-bart") / "config.json").read_text())
    loop = train_dates.loop_of(train_dates.build_tokenizer(), settings, 12, 0)
    while loop.done < 12:
        loop.step()
    assert loop.losses[-1] < loop.losses[0]
    assert loop.rate() == 0


def grown(**changes):
    """The stages of a small recipe, drawn."""
    plan = (recipe.Row(2, 8, 4, 1e-3, 1), recipe.Row(2, 16, 4, 0.0, 2))
    text = trained.stream(is_masked=True)
    return recipe.Grown(recipe.Recipe("tiny-roberta", plan, **changes), text, 0)


def test_a_recipe_begins_with_sizes_and_rows_of_its_own():
    plain, own = grown(), grown(sizes={"W_O": 0.5}, fixed={"W_pos": lambda config: 2.0})
    assert abs(plain.start.arrays["W_Q", 0].std() - recipe.INIT) < 0.002
    assert (own.start.arrays["W_O", 0] == plain.start.arrays["W_O", 0] / 2).all()
    for _ in range(4):
        own.step()
    table = parameters(own.start.model)["W_pos"]
    assert (
        table.shape == (18, 128) and (table == 2.0).all() and own.start.model.config.n_layers == 2
    )


def test_models_begin_alike_where_a_recipe_says_so():
    """Also where the config has other arrays, whose draws would come between."""
    other = grown(like="zoo/masked-disentangled").start.arrays
    settings = recipe.sized("zoo/masked-disentangled", 8, 1) | {"initializer_range": recipe.INIT}
    expected = start(settings, 0, "float32").arrays
    assert (other["W_Q", 0] == expected["W_Q", 0]).all()
    assert (other["W_Q", 0] != grown().start.arrays["W_Q", 0]).any()


def test_a_layer_that_is_left_out_gets_no_gradient():
    plan = (recipe.Row(5, 8, 4, 1e-3, 4),)
    text = trained.stream(is_masked=True)
    loop = train_deep.Skipping(train_deep.RECIPE._replace(plan=plan), text, 0)
    loop.used = lambda: [0, 2]
    grads = loop.slopes_of(loop.words.batch(0, 4, 0))
    moved = [layer for layer in range(4) if grads["W_Q", layer].any()]
    assert moved == [0, 2] and grads["W_E"].any()


def test_books_leave_out_what_is_held_out(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.txt").write_text("three\n")
    unseen = tmp_path / "unseen"
    unseen.write_text("two\n")
    assert recipe.lines_of(tmp_path, unseen) == ["one", "three"]
    with pytest.raises(SystemExit, match="no .txt file"):
        recipe.lines_of(tmp_path / "none", unseen)
