"""None, or another thing, in place of a model or a text: one sentence, from every call."""

import pytest
import tiny

import minitx
from minitx import analysis, circuits, weights


@pytest.fixture(scope="module")
def model():
    return minitx.load("tiny-bert")


@pytest.mark.parametrize("given", [None, 7])
@pytest.mark.parametrize(
    "call",
    [
        minitx.load,
        weights.find,
        lambda given: minitx.explore(given, "a dog"),
        lambda given: analysis.run("positions", given),
    ],
)
def test_what_names_no_model_is_refused_as_such(call, given):
    with pytest.raises(ValueError, match=rf"the model is {given} .*wanted a bundled name"):
        call(given)


@pytest.mark.parametrize("given", [None, 7])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (minitx.explore, "the text is"),
        (lambda model, given: model.encode(given), "reads texts|texts is"),
        (lambda model, given: model.tokenizer.encode(given), "text is"),
        (lambda model, given: model.tokenizer.word_numbers(given), "expected a list of words"),
        (lambda model, given: circuits.logit_attribution(model, given, "a"), "texts are"),
        (lambda model, given: circuits.patch(model, given, given, ("a", "b")), "texts are"),
        (lambda model, given: analysis.run("profiles", model, text=given), "text is"),
    ],
)
def test_what_is_no_text_is_refused_as_such(model, call, message, given):
    with pytest.raises(ValueError, match=message):
        call(model, given)


def test_what_are_no_ids_have_no_pieces(model):
    with pytest.raises(ValueError, match="does not decode"):
        model.tokenizer.pieces(None)


def test_a_target_is_a_text():
    with pytest.raises(ValueError, match="target is 5; wanted a text, or None"):
        minitx.explore("tiny-bart", "3 May 1912", target=5)


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        ("bart-causal", "is an encoder-decoder; expected a single stack"),
        ("images/vit-image", "reads pictures; expected a model that reads texts"),
    ],
)
def test_models_that_read_no_single_text_are_refused(variant, message, tmp_path):
    model, texts, point = tiny.load(variant), [[1, 2]], ("resid_post", 0)
    for call in (
        lambda: minitx.collect(model, texts, out=tmp_path),
        lambda: minitx.fit_probe(model, texts * 8, [0, 1] * 4, at=point),
        lambda: minitx.top_examples(model, texts, point, 1),
        lambda: minitx.steering_vector(model, texts, texts, layer=1),
    ):
        with pytest.raises(ValueError, match=message):
            call()
