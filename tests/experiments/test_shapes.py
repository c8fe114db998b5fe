"""Every shape that `shapes` says is that of its array, in every family and on both sides."""

from dataclasses import replace

import numpy as np
import pytest
from outcomes import run

import minitx
from minitx.analysis.contract import registry
from minitx.analysis.experiments import shapes

SHAPES = registry.get("shapes")

MODELS = "tiny-roberta", "tiny-bert", "tiny-gpt2", "classifier", "of tokens"


def sizes_of(r):
    """{letter: size} of the axes of all boxes: one letter, one size."""
    sizes = {}
    for letters, shape in zip(r["axes"].tolist(), r["shapes"].tolist()):
        if letters != "characters":
            for letter, size in zip(letters.split(), shape.split(" × "), strict=True):
                assert sizes.setdefault(letter, size) == size
    return sizes


def test_start_and_end_of_an_answer_are_no_distribution(models):
    """Each is one over tokens, not over the two: nothing is called likeliest."""
    classifier = models["classifier"]
    model = replace(classifier, config=replace(classifier.config, task_head="question"))
    r = run("shapes", model)
    axes = dict(zip(r["names"].tolist(), r["axes"].tolist()))
    assert axes["logits"] == "T C" and "distribution" not in axes and "likeliest" not in r
    assert "where the answer lies" in str(r["trained"])
    assert "has no output that is a distribution" in SHAPES.says(r)


@pytest.mark.parametrize("name", MODELS)
def test_every_shape_is_that_of_its_array(name, models):
    model = models[name]
    r = run("shapes", model, sentence="The dog ran.")
    trace = minitx.run(model, "The dog ran.")
    by_name = dict(zip(r["names"].tolist(), r["shapes"].tolist()))
    for key, x in trace.items():
        point = key if isinstance(key, str) else key[0]
        if x.ndim > 2 or point == "logits":
            assert by_name[point] == " × ".join(map(str, x.shape[1:])), key
    T, V = int(r["T"]), model.config.n_vocab
    assert by_name["pieces"] == by_name["ids"] == str(T) and by_name["text"] == "12"
    assert by_name["one-hot"] == f"{T} × {V}" and r["one_hot"] == T * V
    assert by_name["distribution"] == by_name["logits"]
    assert r["made"] == sum(x.size for x in trace.values())
    assert r["row_sum"] == pytest.approx(1, abs=1e-12)
    sizes, cfg = sizes_of(r), model.config
    assert sizes["D"] == str(cfg.d_model) and sizes["H"] == str(cfg.n_heads)
    assert sizes["M"] == str(cfg.d_mlp) and sizes["d"] == str(cfg.d_head)


@pytest.mark.parametrize("name", MODELS)
def test_boxes_are_in_the_order_of_the_pass(name, models):
    r = run("shapes", models[name])
    columns = [shapes.COLUMNS.index(column) for column in r["columns"].tolist()]
    assert columns == sorted(columns)
    names = r["names"].tolist()
    assert names[:5] == ["text", "pieces", "ids", "one-hot", "embed"]
    assert names[-2:] == ["logits", "distribution"]
    norm_first = names.index("ln1") < names.index("q")
    assert norm_first == models[name].config.pre_norm
    with_norm = "ln_final" in names and columns[names.index("ln_final")] == 2
    assert with_norm == models[name].config.pre_norm


def test_no_vector_is_that_of_the_sentence(models):
    r = run("shapes", models["tiny-bert"])
    assert r["vectors"] == r["T"] == len(r["pieces"]) == 21 and r["width"] == 128
    assert SHAPES.answer(r).verdict == "no" and "'[CLS]', one among 21" in SHAPES.says(r)
    assert SHAPES.answer(r | {"vectors": np.array(1)}).verdict == "yes"
    r = run("shapes", models["classifier"])
    assert SHAPES.answer(r).verdict == "partly" and "reads a single one" in SHAPES.says(r)
    assert r["probability_null"] == pytest.approx(1 / 3)


def test_the_likeliest_piece_is_that_of_the_last_row(models):
    """Of a causal model it is the first piece that it would write."""
    model = models["tiny-gpt2"]
    sentence = "He looked at her for a"
    r = run("shapes", model, sentence=sentence)
    tokens = model.tokenizer.encode(sentence)
    [written] = minitx.generate(model, tokens, 1)[-1:]
    assert r["likeliest"] == model.tokenizer.pieces(np.ravel(written)[-1:])[0]
    assert r["probability"] > 20 * r["probability_null"]  # measured 0.065 against 0.001


def test_a_checkpoint_without_output_ends_with_its_stream(models):
    model = models["tiny-roberta"]
    bare = replace(model, config=replace(model.config, task_head=None))
    r = run("shapes", bare)
    assert r["names"][-1] == "resid_post" and "probability" not in r
    assert "has no output" in SHAPES.says(r)


def test_every_shape_of_an_encoder_decoder_is_that_of_its_array(pair):
    """The source's boxes are the points that begin with enc_; those of other layers fit too."""
    r = run("shapes", pair, sentence="The dog ran.", target="It was quite late.")
    source, said = (pair.tokenizer.encode(text) for text in ("The dog ran.", "It was quite late."))
    S, T, V = len(source), len(said), pair.config.n_vocab
    assert S != T and r["S"] == S == r["vectors"] and r["T"] == T == r["target_vectors"]
    trace = minitx.run(pair, [pair.config.start_id, *said[:-1]], source=source)
    assert r["made"] == sum(x.size for x in trace.values()) and r["one_hot"] == (S + T) * V
    by_place = dict(zip(zip(r["stacks"].tolist(), r["names"].tolist()), r["shapes"].tolist()))
    for key, x in trace.items():
        point = key if isinstance(key, str) else key[0]
        stack = shapes.STACKS[not point.startswith("enc_")]
        if x.ndim > 2:
            shape = " × ".join(map(str, x.shape[1:]))
            assert by_place[stack, point.removeprefix("enc_")] == shape, key
    assert by_place[shapes.SOURCE, shapes.OUTPUT] == f"{S} × {pair.config.d_model}"
    assert by_place[shapes.TARGET, "distribution"] == f"{T} × {V}"
    shifted = dict(zip(r["names"].tolist(), r["meanings"].tolist()))["shifted right"]
    assert shifted.startswith(pair.tokenizer.pieces([pair.config.start_id])[0])
    sizes = sizes_of(r)
    assert sizes["S"] == str(S) and sizes["T"] == str(T)
    stacks = [shapes.STACKS.index(stack) for stack in r["stacks"].tolist()]
    columns = [shapes.COLUMNS.index(column) for column in r["columns"].tolist()]
    places = [*zip(stacks, columns)]
    assert places == sorted(places)


def test_without_a_target_the_shapes_are_those_of_what_the_model_says(pair):
    r = run("shapes", pair, sentence="The dog ran.")
    row = minitx.generate(pair, n=64, source=pair.tokenizer.encode("The dog ran."))
    assert r["T"] == len(row) - 1 and r["pieces"].tolist() == pair.tokenizer.pieces(row[1:])
    assert SHAPES.answer(r).verdict == "no"
    assert SHAPES.answer(r | {"vectors": np.array(1)}).verdict == "yes"
    assert f"its {r['T']} output tokens shifted right by one" in SHAPES.says(r)


def test_a_single_stack_says_nothing_of_a_target(models):
    with pytest.raises(registry.NotApplicable, match=r"'It', but this model \(bert\) has a single"):
        registry.get("shapes").run(models["tiny-bert"], target="It")
