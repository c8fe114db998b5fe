"""Who wrote a guess, kinds of heads and patching, as the live page asks for them."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import served
from elements import Elements

import minitx
from minitx import circuits
from minitx.analysis.contract import verdict
from minitx.analysis.live import patching, second_text
from minitx.analysis.live.changes import Changes
from minitx.analysis.live.runs import Runs
from minitx.analysis.measures import decoder_texts, kinds
from minitx.analysis.pages import explore, logit_attribution, packing, pushes

TEXT = "The old man said that he"
OTHER = "The old man went so she"  # as many tokens, another guess
NAMES = "tiny-gpt2", "tiny-roberta", "tiny-bart", "tiny-induction"


@pytest.fixture(scope="module")
def live():
    """The models, and a client of their page."""
    models = {name: minitx.load(name) for name in NAMES}
    return SimpleNamespace(models=models, client=served.client(Runs(models), TEXT))


def ask(live, path, **values):
    """The JSON of an answer."""
    answer = live.client.post(f"/api/{path}", json={"text": TEXT} | values)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(live, path, **values):
    """What a refusal says."""
    answer = live.client.post(f"/api/{path}", json={"text": TEXT} | values)
    assert answer.status_code == 400
    return answer.json()["error"]


# who wrote a guess


@pytest.mark.parametrize("name, changes", [("as is", {}), ("changed", {"heads_off": [[2, 2]]})])
def test_writers_are_those_of_the_run_that_is_looked_at(live, name, changes):
    model = live.models["tiny-gpt2"]
    shown = ask(live, "writers", place=4, run=name, changes=changes)
    tokens = model.tokenizer.encode(TEXT)
    edits = Changes.of(changes).edits(model, tokens) if changes else {}
    (place,) = logit_attribution.of_text(model, tokens, [4], edits=edits)
    parts = packing.unpack(shown["parts"])[0]
    assert shown["at"] == [4]
    assert abs(parts - place.parts).max() <= 1.01 * shown["parts"]["error"]
    number = shown["components"].index(["head", 2, 2])
    assert (abs(parts[:, number]).max() < shown["parts"]["error"] * 1.01) == bool(changes)


def test_the_words_of_all_heads_are_there(live):
    shown = ask(live, "writers", place=4)
    heads = np.rint(packing.unpack(shown["heads"])[0]).astype(int)
    assert sorted(heads) == [*range(16)]
    words = np.rint(packing.unpack(shown["words"])[0]).astype(int)
    assert words.max() < len(shown["pieces"])


def test_a_page_that_stands_alone_holds_the_same(live):
    """Of every place, with the words of 16 heads."""
    model = live.models["tiny-gpt2"]
    tokens = explore.readable(model, TEXT)
    run = explore.with_writers(explore.data(model, "m", TEXT, tokens), model, tokens)
    whole, shown = run["outputs"]["written"], ask(live, "writers", place=4)
    assert whole["at"] == [*range(len(tokens))]
    for name in "parts", "raised", "taken":
        kept = packing.unpack(whole[name])[4]
        assert kept == pytest.approx(packing.unpack(shown[name])[0], abs=2 * whole[name]["error"])
    saved = live.client.post("/api/save", json={"text": TEXT}).text
    assert Elements(saved).data["runs"][0]["outputs"]["written"] == json.loads(json.dumps(whole))


@pytest.mark.parametrize(
    "values, reason",
    [
        ({"place": 99}, "place is 99; this text has the tokens 0 to"),
        ({"place": -1}, "place is -1; wanted a whole number"),
        ({"run": "changed"}, "run is 'changed'; this request has: as is"),
    ],
)
def test_a_place_or_run_that_is_not_there_is_refused(live, values, reason):
    assert reason in refused(live, "writers", **values)


PAIR = {"layer": 1, "head": 2, "query": 4, "key": 1}


@pytest.mark.parametrize("name, changes", [("as is", {}), ("changed", {"positions": "zero"})])
def test_elements_are_those_of_the_run_that_is_looked_at(live, name, changes):
    model = live.models["tiny-gpt2"]
    shown = ask(live, "neurons", run=name, changes=changes, **PAIR)
    tokens = model.tokenizer.encode(TEXT)
    edits = Changes.of(changes).edits(model, tokens) if changes else {}
    trace = minitx.run(model, tokens, edits=edits)
    assert shown["q"] == pytest.approx(trace["q", 1][0, 2, 4].tolist())
    assert shown["k"] == pytest.approx(trace["k", 1][0, 2, 1].tolist())
    assert shown["score"] == pytest.approx(trace["scores", 1][0, 2, 4, 1])


@pytest.mark.parametrize(
    "values, reason",
    [
        (PAIR | {"head": 4}, "head is 4; wanted a whole number from 0 to 3"),
        (PAIR | {"key": 5}, "query 4 does not see key 5"),
        (PAIR | {"words": True}, "elements are those of tokens in a single stack"),
        (PAIR | {"model": "tiny-bart"}, "elements are those of tokens in a single stack"),
    ],
)
def test_elements_that_are_not_there_are_refused(live, values, reason):
    assert reason in refused(live, "neurons", **values)


def test_a_run_says_which_heads_are_off(live):
    changes = {"heads_off": [[1, 2]], "layers_off": [3]}
    plain, changed = ask(live, "run", changes=changes)["runs"]
    assert "off" not in plain
    assert changed["off"] == [6, 12, 13, 14, 15]
    pair = {"model": "tiny-bart", "text": "3 May 1912"}
    changes = {"heads_off": [[1, 0]], "stack": "cross"}
    parts = ask(live, "run", changes=changes, **pair)["runs"][1]["parts"]
    assert {name: part.get("off") for name, part in parts.items()} == {
        "encoder": None,
        "decoder": None,
        "cross": [4],
    }


# kinds of heads


def test_kinds_are_computed_once_for_a_model(live, monkeypatch):
    first = ask(live, "kinds", model="tiny-induction")
    wanted = kinds.labels(live.models["tiny-induction"])
    assert first == json.loads(json.dumps({"": wanted}))
    monkeypatch.setattr(kinds.circuits, "detect_heads", None)
    assert ask(live, "kinds", model="tiny-induction") == first


def test_an_encoder_decoder_has_kinds_of_both_stacks(live):
    assert ask(live, "kinds", model="tiny-bart").keys() == {"encoder", "decoder"}


# patching


def test_patches_are_those_of_circuits_in_both_directions(live):
    model = live.models["tiny-gpt2"]
    shown = ask(live, "patch", other=OTHER)
    texts = [model.tokenizer.encode(text) for text in (TEXT, OTHER)]
    best = [int(minitx.run(model, ids, "logits")["logits"][0, -1].argmax()) for ids in texts]
    effects = circuits.patch(model, [texts[0]], [texts[1]], best)
    heads = shown["parts"][""]["heads"]
    assert shown["guesses"] == [x.replace(" ", "␣") for x in model.tokenizer.pieces(best)]
    assert heads["into_second"]["shares"] == pytest.approx(effects.effects, abs=1e-4)
    assert heads["into_first"]["shares"] == pytest.approx(effects.lost, abs=1e-4)
    largest = abs(effects.null).max()
    assert np.array(heads["into_second"]["null"]) == pytest.approx(largest, abs=1e-4)
    stream = shown["parts"][""]["stream"]
    assert np.shape(stream["into_first"]["shares"]) == (4, len(texts[0]))
    where = [i for i, (a, b) in enumerate(zip(*texts)) if a == b]
    assert not np.array(stream["into_second"]["shares"])[0, where].any()  # the same tokens


@pytest.mark.parametrize(
    "values",
    [
        {"other": OTHER},
        {"model": "tiny-bart", "text": "3 May 1912", "other": "4 May 1912"},
        {
            "model": "tiny-roberta",
            "text": "He looked at her",
            "other": "She looked at her",
            "hidden": [3],
        },
    ],
    ids=lambda values: values.get("model", "tiny-gpt2"),
)
def test_the_python_of_a_patch_computes_its_map(live, values, capsys):
    shown, names = ask(live, "patch", **values), {}
    exec(shown["code"], names)
    (heads, *_) = (part["heads"] for part in shown["parts"].values())
    effects = names["effects"]
    assert heads["into_second"]["shares"] == pytest.approx(effects.effects, abs=1e-4)
    assert heads["into_first"]["shares"] == pytest.approx(effects.lost, abs=1e-4)
    both = (effects.effects, effects.null), (effects.lost, effects.lost_null)
    says = [f"{effect.round(2)}\n{abs(null).max().round(2)}\n" for effect, null in both]
    assert capsys.readouterr().out == "".join(says)  # each map beside chance


def test_tokens_of_both_texts_are_counted_and_texts_that_fit_are_told(live):
    encode = live.models["tiny-gpt2"].tokenizer.encode
    longer = TEXT.replace("man", "woman")
    answer = ask(live, "lengths", other=longer)
    assert answer["lengths"] == [len(encode(TEXT)), len(encode(longer))] == [6, 7]
    assert answer["differ"] == [[" man"], [" wom", "an"]]
    assert len(answer["fits"]) == 3
    for text in answer["fits"]:
        assert [*np.flatnonzero(encode(text) != encode(TEXT))] == [2]  # the word that was another
    shorter = ask(live, "lengths", other=TEXT.replace(" that", ""))  # no word for another
    assert shorter["fits"] == ask(live, "lengths", other="")["fits"]
    equal = ask(live, "lengths", other=answer["fits"][0])
    assert equal == {"lengths": [6, 6], "differ": None, "fits": shorter["fits"]}
    rows = np.array([encode(text) for text in shorter["fits"]])  # to begin with
    assert ((rows != encode(TEXT)).sum(axis=1) == 1).all()
    of_pair = {"model": "tiny-bart", "text": "3 May 1912", "other": "31 May 1912"}
    assert ask(live, "lengths", **of_pair)["lengths"] == [12, 13]


def test_names_are_exchanged_first_then_words_behind_an_article():
    text = "When Mary and John went to the park"
    fits = second_text.fitting(minitx.load("tiny-stories"), text)[:3]  # of each place the first
    others = [[a for a in other.split() if a not in text.split()] for other in fits]
    places = [other.split().index(words[0]) for other, words in zip(fits, others, strict=True)]
    assert places == [1, 3, 7] and [words[0].istitle() for words in others] == [True, True, False]


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"text": TEXT}, -1),
        ({"model": "tiny-roberta", "text": "He looked at her and said", "hidden": [3]}, 3),
    ],
)
def test_texts_that_change_the_guess_are_offered_where_there_are_some(live, given, place):
    model = live.models[given.get("model", "tiny-gpt2")]

    def guess(text):
        ids = model.tokenizer.encode(text)
        if place >= 0:
            ids[place] = patching.mask_id(model.tokenizer)
        return minitx.run(model, ids, "logits")["logits"][0, place].argmax()

    own, fits = guess(given["text"]), ask(live, "lengths", other="", **given)["fits"]
    tried = second_text.fitting(model, given["text"], hidden=given.get("hidden", ()))
    changing = [text for text in tried if guess(text) != own]
    assert fits == (changing or tried)[:3] and changing


def test_what_a_guess_depends_on_is_that_of_the_place(live):
    model = live.models["tiny-roberta"]
    ids = model.tokenizer.encode(TEXT)
    answer = ask(live, "pushes", model="tiny-roberta", place=3)
    assert answer["place"] == 3 and answer["hidden"]
    assert answer == json.loads(json.dumps(pushes.of_text(model, ids, place=3)))
    assert "place is 9; wanted a whole number from 0 to 5" in refused(live, "pushes", place=9)
    assert "this model is an encoder-decoder" in refused(live, "pushes", model="tiny-bart")


def test_a_text_that_is_too_long_comes_with_its_beginning(live):
    answer = live.client.post("/api/run", json={"text": "the old man " * 200}).json()
    assert "this model reads at most 256" in answer["error"]
    assert len(live.models["tiny-gpt2"].tokenizer.encode(answer["cut"])) == 256
    pair = {"text": "the old man " * 200, "second": "a dog"}
    assert live.client.post("/api/run", json=pair).json()["cut"] == ""


def test_a_saved_page_says_what_a_patch_has_shown(live):
    page = live.client.post("/api/save", json={"text": TEXT, "other": OTHER}).text
    heads = ask(live, "patch", other=OTHER)["parts"][""]["heads"]
    said = {
        "into_second": "Of all heads {} carries most of the difference into the second text",
        "into_first": "Into the first text {} carries most",
    }
    for way, words in said.items():
        effects, null = (np.array(heads[way][name]) for name in ("shares", "null"))
        layer, head = np.unravel_index(effects.argmax(), (4, 4))
        is_clear = effects.max() > null[layer, head] + verdict.MARGIN
        name, share = f"L{layer}H{head}", f"{100 * effects.max():.0f}%"
        chance = f"{100 * null[layer, head]:.0f}%"
        none = patching.NO_HEAD[way].format(name=name, share=share, chance=chance)
        mine = f"{words.format(name)}, {share}"
        assert (mine in page, none in page) == (is_clear, not is_clear)


def test_texts_that_do_not_align_are_refused_with_their_lengths(live):
    tokens = [len(live.models["tiny-gpt2"].tokenizer.encode(text)) for text in (TEXT, TEXT + " is")]
    wanted = f"the first text has {tokens[0]} tokens, the second {tokens[1]}; they are exchanged"
    assert wanted in refused(live, "patch", other=TEXT + " is")


def test_texts_that_say_the_same_are_refused(live):
    assert "both texts are the same" in refused(live, "patch", other=TEXT)
    same = {"model": "tiny-bart", "text": "3 May 1912", "other": "3 may 1912"}
    assert "the model predicts the same for both texts" in refused(live, "patch", **same)


def test_a_masked_model_is_asked_where_both_texts_hide_a_token(live):
    given = {"model": "tiny-roberta", "text": "He looked at her", "other": "She looked at her"}
    assert "hide a token, or write a mask into both texts" in refused(live, "patch", **given)
    assert ask(live, "patch", hidden=[3], **given)["guesses"]
    both = {"model": "tiny-roberta", "text": "He<mask> at her", "other": "He at<mask> her"}
    assert "hides token 3, the second 4; wanted the same position" in refused(live, "patch", **both)


def test_an_encoder_decoder_is_asked_where_its_outputs_part(live):
    first, second = "3 May 1912", "4 May 1912"
    shown = ask(live, "patch", model="tiny-bart", text=first, other=second)
    model = live.models["tiny-bart"]
    said = [decoder_texts.greedy(model, text) for text in (first, second)]
    assert shown["guesses"] == ["3", "4"]
    assert "".join(shown["prefix"]).endswith("1912-05-0")
    assert shown["parts"].keys() == {"encoder", "decoder", "cross"}
    stream = np.array(shown["parts"]["encoder"]["stream"]["into_second"]["shares"])
    assert stream[0].argmax() == 1 and stream[0, 1] > 0.99  # the digit that differs
    assert len(said[0].outputs) == len(said[1].outputs)


def test_where_both_guess_the_same_another_guess_tells_them_apart(live):
    shown = ask(live, "patch", text="He looked at him", other="She looked at him")
    assert shown["same"] == "." and shown["guesses"][0] != shown["guesses"][1]
    clean, corrupt = shown["parts"][""]["heads"]["differences"]
    assert clean > corrupt


def test_patches_between_pairs_read_both_with_the_second_text_and_its_types():
    model, second = minitx.load("tiny-bert"), "The cat lay on the rug."
    texts = "He was [MASK].", "She was [MASK]."
    own = SimpleNamespace(client=served.client(Runs({"tiny-bert": model}), TEXT))
    shown = ask(own, "patch", text=texts[0], second=second, other=texts[1])
    sides = [model.encode([(text, second)]) for text in texts]
    assert all(side.types.any() for side in sides)
    place = int(circuits.measure.places(model, circuits.texts.read_texts(model, sides[0]))[0])
    logits = [minitx.run(model, *x[:1], "logits", types=x.types)["logits"][0, place] for x in sides]
    best = [int(y.argmax()) for y in logits]
    effects = circuits.patch(model, *sides, best, "resid_pre")
    stream = shown["parts"][""]["stream"]
    assert shown["guesses"] == model.tokenizer.pieces(best)
    assert np.array(stream["into_second"]["shares"]) == pytest.approx(effects.effects, abs=1e-4)
    untyped = circuits.patch(model, *(x.tokens for x in sides), best, "resid_pre")
    assert abs(untyped.effects - effects.effects).max() > 1e-3  # measured: 0.006
