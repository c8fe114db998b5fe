"""Who wrote a guess: parts are those of logit attribution, words what a head writes."""

import numpy as np
import pytest

import minitx
from minitx import circuits
from minitx.analysis.measures import decoder_texts, document_features, kinds
from minitx.analysis.pages import logit_attribution

TEXTS = {
    "tiny-gpt2": "The old man said that he",
    "tiny-roberta": "The old man<mask> down the road.",
    "tiny-bert": "The old man [MASK] down the road.",
}
LONG = (
    "The old man said that he had never seen such a thing in all his life, and that he would go to "
    "the sea in the morning."
)
EXACT = 1e-9  # float64; measured 2e-14 of logits of up to 12


@pytest.fixture(scope="module", params=TEXTS)
def seen(request):
    """A model in float64, tokens of a text, a place, and the Place there."""
    model = minitx.load(request.param, dtype="float64")
    tokens = model.tokenizer.encode(TEXTS[request.param])
    column = len(tokens) - 2
    (place,) = logit_attribution.of_text(model, tokens, [column])
    return model, tokens, column, place


def test_parts_of_heads_are_those_of_logit_attribution(seen):
    model, tokens, column, place = seen
    numbers = {name: i for i, name in enumerate(logit_attribution.components(model))}
    for guess, parts, logit in zip(place.guesses, place.parts, place.logits):
        table = circuits.logit_attribution(model, tokens, int(guess), place=column)
        is_head = table.component == "head"
        order = [numbers["head", layer, head] for layer, head in np.ndindex(table.heads.shape)]
        assert parts[order] == pytest.approx(table.logits[is_head], abs=EXACT)
        assert parts.sum() == pytest.approx(table.logits.sum(), abs=EXACT)
        assert logit == pytest.approx(table.logit, abs=EXACT)


def test_chance_is_that_of_all_components_tried(seen):
    """No component of a drawn token exceeds it, one reaches it; each counts by its own quantile."""
    model, tokens, column, place = seen
    numbers = {name: i for i, name in enumerate(logit_attribution.components(model))}
    is_computed = [name in logit_attribution.COMPUTED for name, _, _ in numbers]
    for guess, null, most_null in zip(place.guesses, place.null, place.most_null):
        table = circuits.logit_attribution(model, tokens, int(guess), place=column)
        drawn = np.zeros((len(numbers), table.drawn.shape[1]))
        for *key, row in zip(table.component, table.layer, table.head, table.drawn):
            drawn[numbers.get(tuple(key), numbers["biases", key[1], -1])] += row
        drawn = abs(drawn)
        writes = null > 0
        assert (drawn[writes] / null[writes, None]).max() == pytest.approx(1)
        times = null[writes] / np.quantile(drawn[writes], 0.99, axis=-1)
        assert times == pytest.approx(times[0]) and times[0] > 1
        most = drawn[is_computed].max(axis=0) / drawn[is_computed].sum(axis=0)
        assert most_null == pytest.approx(np.quantile(most, 0.99))


CLEAR = 1.1  # as the page has it


@pytest.mark.parametrize("name", TEXTS)
def test_few_guesses_of_random_weights_have_a_part_that_stands_out(name):
    """At most a tenth; beside each part's own chance up to half of them had one: 22 were tried."""
    model = minitx.load(name)
    tokens = model.tokenizer.encode(LONG)
    is_computed = [
        kind in logit_attribution.COMPUTED for kind, _, _ in logit_attribution.components(model)
    ]
    counts = []
    for seed in range(2):
        random = document_features.untrained(model, np.random.default_rng(seed))
        places = range(2, len(tokens) - 1)
        for place in logit_attribution.of_text(random, tokens, places, most=1, n_guesses=1):
            stands_out = abs(place.parts[0]) > CLEAR * place.null[0]
            counts.append(stands_out[is_computed].any())
    assert np.mean(counts) <= 0.1


def test_the_sum_is_the_logit_where_nothing_stands_before_the_vocabulary(seen):
    model, _, _, place = seen
    assert logit_attribution.is_linear(model) == (model.config.model_type == "gpt2")
    assert (place.gap < EXACT) == logit_attribution.is_linear(model)


def test_a_head_raises_the_guess_by_its_part(seen):
    """What is written, pushed forward through the norms, against the gradient carried back."""
    model, tokens, column, place = seen
    writers = logit_attribution.Writers(model, tokens)
    for k, i in enumerate(place.heads):
        by_key = writers.written(column, i)
        y = logit_attribution.raised(model, writers.last(column), by_key.sum(axis=0)[None])[0]
        # of a head that is not linear the slope is a difference: measured 2e-7
        assert y[place.guesses] == pytest.approx(place.parts[:, i], abs=1e-5)
        assert y[place.words[k]] == pytest.approx(place.raised[k], abs=EXACT)
        assert place.raised[k, 0] == pytest.approx(y.max(), abs=EXACT)
        assert place.raised[k, logit_attribution.WORDS] == pytest.approx(y.min(), abs=EXACT)


def test_what_a_head_took_is_split_as_logit_attribution_splits_it(seen):
    model, tokens, column, place = seen
    guess = int(place.guesses[0])
    table = circuits.logit_attribution(model, tokens, guess, place=column, by_place=True)
    k = 0
    name, layer, head = logit_attribution.components(model)[place.heads[k]]
    mine = (table.component == name) & (table.layer == layer) & (table.head == head)
    by_key = dict(zip(table.place[mine].tolist(), table.logits[mine]))
    largest = sorted(by_key.values(), key=abs)[::-1][: logit_attribution.READS]
    assert place.taken[k] == pytest.approx(largest, abs=1e-5)
    assert [by_key[int(s)] for s in place.sources[k]] == pytest.approx(largest, abs=1e-5)


def test_a_head_that_is_off_writes_nothing(seen):
    model, tokens, column, place = seen
    layer, head = divmod(int(place.heads[0]), model.config.n_heads)

    def off(z):
        z[:, head] = 0
        return z

    for edits in ({("z", layer): off}, {("attn_out", layer): np.zeros_like}):
        (changed,) = logit_attribution.of_text(model, tokens, [column], edits=edits)
        assert not changed.parts[:, place.heads[0]].any()
        assert (changed.gap < EXACT) == logit_attribution.is_linear(model)


def test_a_decoder_has_the_heads_that_read_its_source():
    model = minitx.load("tiny-bart", dtype="float64")
    said = decoder_texts.greedy(model, "3 May 1912")
    places = logit_attribution.of_text(model, said.inputs, [2, 5], source=said.source)
    names = logit_attribution.components(model)
    for place in places:
        assert place.gap < EXACT
        assert names[place.heads[0]][0] == "cross_head"  # it copies digits from the source


def test_heads_are_labelled_where_they_exceed_what_chance_gives():
    labels = kinds.labels(minitx.load("tiny-induction"))
    scores = circuits.detect_heads(minitx.load("tiny-induction"), "induction", n_texts=4)
    flat = np.ravel(scores["induction"])
    wanted = [i for i, x in enumerate(flat) if x >= kinds.CLEARLY]
    assert list(labels["induction"]["heads"]) == wanted == [*range(8, 16)]  # all of layer 1
    assert labels["induction"]["null"] < 0.1
    assert labels["previous"]["heads"].keys() == {3, 7}


def test_no_head_is_labelled_by_what_any_head_does_by_chance(monkeypatch):
    model = minitx.load("tiny-induction")
    scores = circuits.detect_heads(model, [*kinds.KINDS], n_texts=4)
    for score in scores.values():
        score.null[0, 0] = 0.97  # one head, on other words
    monkeypatch.setattr(kinds.circuits, "detect_heads", lambda *_, **__: scores)
    assert not any(kind["heads"] for kind in kinds.labels(model).values())
