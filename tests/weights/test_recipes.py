"""The recipes of the bundles: gradients of the recurrent ones, and what models begin with."""

import numpy as np
import pytest
import trained

import minitx
from minitx import weights
from minitx.learning.adamw import AdamW
from minitx.learning.gradients import UNCOUNTED
from minitx.learning.parameters import parameters
from minitx.learning.start import start
from minitx.learning.tokens import END
from minitx.loading.families import from_hf
from minitx.loading.files import read_json, read_tensors
from minitx.weights import dates
from minitx.weights.training import (
    recipe,
    train,
    train_dates,
    train_deep,
    train_recurrent,
    train_zoo,
    zoo_cards,
    zoo_measure,
)

SETTINGS = read_json(weights.find("tiny-bart") / "config.json")
SHORT = (recipe.Row(2, 8, 4, 1e-3, 1), recipe.Row(2, 16, 4, 0.0, 2))


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
    loop = train_dates.loop_of(train_dates.build_tokenizer(), SETTINGS, 12, 0)
    while loop.done < 12:
        loop.step()
    assert loop.losses[-1] < loop.losses[0]
    assert loop.rate() == 0


def grown(**changes):
    """The stages of a small recipe, drawn."""
    text = trained.stream(is_masked=True)
    return recipe.Grown(recipe.Recipe("tiny-roberta", SHORT, **changes), text, 0)


def test_a_recipe_begins_with_sizes_and_rows_of_its_own():
    plain, own = grown(), grown(sizes={"W_O": 0.5}, fixed={"W_pos": lambda config: 2.0})
    assert abs(plain.start.arrays["W_Q", 0].std() - recipe.INIT) < 0.002
    assert (own.start.arrays["W_O", 0] == plain.start.arrays["W_O", 0] / 2).all()
    for _ in range(4):
        own.step()
    table = parameters(own.start.model)["W_pos"]
    assert table.shape == (18, 128) and (table == 2.0).all()
    assert own.start.model.config.n_layers == 2


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


def test_dates_are_written_exactly_by_the_bundle():
    written = dates.draw(np.random.default_rng(5), 60, held_out=True)
    tokenizer = train_dates.build_tokenizer()
    assert train_dates.exact(minitx.load("tiny-bart"), tokenizer, written) > 0.98
    fresh = train_dates.loop_of(tokenizer, SETTINGS, 2, 0).start.model
    assert train_dates.exact(fresh, tokenizer, written) == 0


def test_an_input_of_bert_is_one_segment_or_two():
    """The separator belongs to the first, and is not predicted."""
    text = trained.stream(is_masked=True)
    words = train.Pairs(text, 16, 0.3, 1.0)
    tokens, targets, others = words.batch(3, 200, 0)
    is_pair = others["types"].any(axis=1)
    assert 0.05 < is_pair.mean() < 0.2
    for row, target, types in zip(tokens[is_pair], targets[is_pair], others["types"][is_pair]):
        cut = int(np.argmax(types)) - 1
        assert types.tolist() == [0] * (cut + 1) + [1] * (15 - cut) and 2 <= cut < 14
        assert row[cut] == train.SEPARATOR and target[cut] == UNCOUNTED


def test_pieces_of_bert_are_words_in_lower_case(tmp_path):
    lines = ["The dog ran after the cats", "the dogs and the cat"] * 3
    config = from_hf(recipe.sized("tiny-bert", 16, 1))
    stream = recipe.stream_of([lines], config, tmp_path, train.word_pieces)
    pieces = stream.tokenizer.pieces(stream.ids)
    assert pieces[:3] == ["the", "dog", "ran"]
    assert (stream.before.tolist(), stream.after.tolist(), stream.mask_id) == ([2], [3], 4)
    again = recipe.stream_of([lines[:1]], config, tmp_path, None)  # is there already
    assert again.ids.tolist() == stream.ids[: len(again.ids)].tolist()


def test_each_book_of_a_causal_model_has_a_beginning(tmp_path):
    config = from_hf(recipe.sized("tiny-gpt2", 16, 1))
    stream = recipe.stream_of([["a dog", "a cat"], ["a bird"]], config, tmp_path)
    end = stream.tokenizer.encode(END)[0]
    assert np.flatnonzero(stream.ids == end).tolist()[0] == 0 and (stream.ids == end).sum() == 2


@pytest.mark.parametrize("name", train_zoo.RECIPES)
def test_models_of_the_zoo_begin_alike(name):
    """And have what the bundles' files have, where what tells no place is 0."""
    kind, _, place = name.partition("-")
    text = trained.stream(kind == "masked")
    own, learned = (
        recipe.Grown(train_zoo.RECIPES[of]._replace(plan=SHORT), text, 0)
        for of in (name, f"{kind}-learned")
    )
    arrays = own.start.arrays
    assert (arrays["W_E"] == learned.start.arrays["W_E"]).all()
    if place != "rotary" or kind == "causal":
        for array in ("W_Q", "W_O", "W_in"):
            assert (arrays[array, 0] == learned.start.arrays[array, 0]).all()
    assert abs(arrays["W_O", 0].std() - 0.2 * recipe.INIT) < 0.001
    stored = read_tensors(weights.find(f"zoo/{name}"))
    assert {key: x.shape for key, x in own.start.tensors().items()}.keys() <= stored.keys()
    table = parameters(own.start.model).get("W_pos")
    if place in ("none", "buckets"):
        assert not table.any() and "W_pos" not in arrays
    if place == "sinusoidal":
        bundle = parameters(minitx.load(f"zoo/{name}"))["W_pos"]
        assert abs(table - bundle[: len(table)]).max() < 1e-4  # float16


def test_losses_of_the_zoo_are_those_of_the_cards():
    """Of 3,000 tokens of the sample; what follows a cut is predicted in a longer window too."""
    folder = weights.find("zoo/causal-rotary")
    zoo = zoo_measure.Zoo(folder, "rotary")
    ids = zoo.encode(recipe.HELD_OUT.read_text(encoding="utf-8")[:9000])
    losses = {}
    for n in (64, 128):
        zoo.lengthen(n, "again")
        losses[n] = zoo.losses(ids, n)
    stated = read_json(folder / "measured.json")["`analysis/texts/sample.txt`"]["loss"]
    assert abs(np.nanmean(losses[64]) - stated) < 0.2
    assert np.isnan(losses[64][64]) and not np.isnan(losses[128][64])


def test_a_table_of_the_zoo_grows_as_the_card_says():
    """Learned rows again, or fresh; sinusoids go on."""
    zoo = zoo_measure.Zoo(weights.find("zoo/masked-learned"), "learned")
    before = parameters(zoo.model)["W_pos"]
    zoo.lengthen(100, "again")
    after = parameters(zoo.model)["W_pos"]
    assert (after[:66] == before).all() and (after[66:] == before[2:38]).all()
    zoo.lengthen(100, "fresh")
    assert abs(parameters(zoo.model)["W_pos"][66:].std() - recipe.FRESH) < 0.002
    zoo = zoo_measure.Zoo(weights.find("zoo/causal-sinusoidal"), "sinusoidal")
    zoo.lengthen(100, "")
    table = parameters(zoo.model)["W_pos"]
    assert abs(np.hypot(table[:, 0], table[:, 1]) - recipe.INIT * 2**0.5).max() < 1e-4


def test_stages_of_the_zoo_are_those_of_the_cards():
    card = (weights.find("zoo/causal-none") / "README.md").read_text(encoding="utf-8")
    assert zoo_cards.stages(train_zoo.PLAN) in card


def test_books_leave_out_what_is_held_out(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.txt").write_text("three\n")
    unseen = tmp_path / "unseen"
    unseen.write_text("two\n")
    assert recipe.lines_of(tmp_path, unseen) == ["one", "three"]
    with pytest.raises(SystemExit, match="no .txt file"):
        recipe.lines_of(tmp_path / "none", unseen)
