"""Greedy and beam search give the reference library's tokens; what beams are by definition.

golden/generated holds a tiny random model of each family and what the library generates from 200
inputs with each setting, all in float64 (tools/make_generated.py).
"""

import json
import shutil
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import tiny
from safetensors.numpy import load_file
from scipy.special import log_softmax

import minitx
from minitx import model as forward_pass
from minitx.config_parts import Generation
from minitx.generation.beams import Width, search
from minitx.generation.constraints import constraints
from minitx.generation.prompts import read_prompts

GENERATED = tiny.GOLDEN / "generated"
FAMILIES = "bart", "marian", "t5", "gpt2"
ENCODER_DECODERS = FAMILIES[:3]
N = 12  # new tokens
SETTINGS = {"greedy": {}} | {
    f"beams-{beams}-{penalty:g}": dict(num_beams=beams, length_penalty=penalty)
    for beams, penalty in product((2, 4), (0.5, 1.0, 2.0))
}
SETTINGS["beams-4-1-early"] = dict(num_beams=4, length_penalty=1.0, early_stopping=True)


def load(family, dtype=np.float64):
    """A family's tiny model."""
    return minitx.load(GENERATED / family, dtype=dtype)


def inputs(family):
    """The 200 golden inputs as arguments of `generate`, and their outputs by setting."""
    arrays = load_file(GENERATED / family / "outputs.safetensors")
    rows = arrays.pop("prompt" if family == "gpt2" else "source")
    ids, valid = np.where(rows < 0, 0, rows).astype(int), rows >= 0
    if family == "gpt2":
        return {"prompt": ids, "valid": valid, "stop": 60}, arrays
    return {"source": ids, "source_valid": valid}, arrays


def new_tokens(family, model, given, **settings):
    """New tokens of each row, up to the end token."""
    rows = minitx.generate(model, n=N, **given, **settings)
    start = given["prompt"].shape[1] if family == "gpt2" else 1
    return [cut(row, stop_of(model, given)) for row in rows[:, start:]]


def stop_of(model, given):
    return given.get("stop", model.config.end_id)


def cut(tokens, stop):
    """Tokens as a list, up to the first `stop`."""
    tokens = list(map(int, tokens))
    return tokens[: [*tokens, stop].index(stop) + 1]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_are_the_reference_librarys(family, setting):
    """All 200, of each setting; at least 30 of them are no repetition of another."""
    given, outputs = inputs(family)
    tokens = new_tokens(family, load(family), given, **SETTINGS[setting])
    wanted = [[token for token in row if token >= 0] for row in outputs[setting].tolist()]
    assert len(wanted) == 200 and len({*map(tuple, wanted)}) > 30
    assert tokens == wanted


# --- what beams are by definition


def few(family, rows=6):
    """The first golden inputs of a family, as arguments of `generate`."""
    given, _ = inputs(family)
    return {name: x if name == "stop" else x[:rows] for name, x in given.items()}


def searched(model, given, n=N, num_beams=4, length_penalty=1.0, early_stopping=False):
    """The Beams that `generate` takes the best from, and the Constraints."""
    names = "prompt", "valid", "source", "source_valid"
    prompts = read_prompts(model, *map(given.get, names))
    stop = stop_of(model, given)
    allowed = constraints(model.config.generation, prompts.batch, n, stop)
    width = Width(num_beams, length_penalty, early_stopping)
    return search(model, prompts, n, stop, allowed, width), prompts, allowed


def log_probabilities(model, allowed, prompts, row, tokens):
    """Of what may come behind none, one, … all of some new tokens: one whole pass, no cache."""
    own = prompts.batch.valid[row]
    source = {}
    if prompts.source is not None:
        source = {"source": prompts.source.tokens[row][prompts.source.valid[row]]}
    text = [*prompts.batch.tokens[row][own], *tokens]
    x = minitx.forward(model, text, **source)[:, own.sum() - 1 :]
    logp = log_softmax(minitx.logits(model, x)[0], axis=1)
    own = allowed._replace(prompts=allowed.prompts[[row]])
    before = [np.array([tokens[:i]], int) for i in range(len(logp))]
    return [own.apply(new, logp[[i]])[0] for i, new in enumerate(before)]


def sum_of_log_probabilities(model, allowed, prompts, row, tokens):
    """Of some new tokens, each behind those before it."""
    each = log_probabilities(model, allowed, prompts, row, tokens[:-1])
    return sum(logp[token] for logp, token in zip(each, tokens, strict=True))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("penalty", [-1.0, 0.0, 1.5])
def test_a_score_is_the_sum_of_log_probabilities_over_a_power_of_the_length(family, penalty):
    """Each finished beam's, from whole passes without a cache: measured 2e-15 apart."""
    model, given = load(family), few(family)
    beams, prompts, allowed = searched(model, given, length_penalty=penalty)
    stop = stop_of(model, given)
    assert np.isfinite(beams.done_scores).all()
    assert (np.diff(beams.done_scores, axis=1) <= 0).all()
    for row, (done, scores) in enumerate(zip(beams.done, beams.done_scores)):
        for tokens, score in zip((cut(x, stop) for x in done), scores):
            logp = sum_of_log_probabilities(model, allowed, prompts, row, tokens)
            np.testing.assert_allclose(score, logp / len(tokens) ** penalty, rtol=0, atol=1e-12)


@pytest.mark.parametrize("penalty", [0.5, 2.0])
def test_with_as_many_beams_as_texts_the_best_of_all_texts_is_returned(penalty):
    """61 beams and two new tokens: none is dropped, so every text of up to two is compared."""
    model, given = load("gpt2"), few("gpt2", 3)
    beams, prompts, allowed = searched(model, given, 2, 61, penalty)
    for row in range(3):
        first = log_probabilities(model, allowed, prompts, row, [])[-1]
        texts = {(60,): first[60]}
        for token in range(60):
            second = log_probabilities(model, allowed, prompts, row, [token])[-1]
            texts |= {(token, i): (first[token] + second[i]) / 2**penalty for i in range(61)}
        best = max(texts, key=texts.get)
        assert tuple(cut(beams.done[row, 0], 60)) == best
        np.testing.assert_allclose(beams.done_scores[row, 0], texts[best], rtol=0, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_beam_that_stops_early_is_greedy(family):
    """Without early stopping one beam may go on behind an end token, by its second token."""
    model, given = load(family), few(family, 200)
    beams, _, _ = searched(model, given, num_beams=1, early_stopping=True)
    greedy = new_tokens(family, model, given)
    assert [cut(row, stop_of(model, given)) for row in beams.done[:, 0]] == greedy
    assert new_tokens(family, model, given, num_beams=1) == greedy


@pytest.mark.parametrize("family", FAMILIES)
def test_a_beam_is_mostly_but_not_always_better_than_greedy(family):
    """Greedy's start may fall out of the best: then a lower score than its own is returned."""
    model, given = load(family), few(family, 200)
    beams, prompts, allowed = searched(model, given)
    margins = []
    for row, tokens in enumerate(new_tokens(family, model, given)):
        greedy = sum_of_log_probabilities(model, allowed, prompts, row, tokens) / len(tokens)
        margins.append(beams.done_scores[row, 0] - greedy)
    margins = np.array(margins)
    worse = int((margins < -1e-12).sum())
    assert worse == {"bart": 0, "marian": 0, "t5": 5, "gpt2": 0}[family]
    assert margins.mean() > 0.05  # nats per token; measured 0.07 to 0.17


# --- the source, the cache, the forms


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_the_source_is_encoded_and_its_keys_are_computed_once(family, monkeypatch):
    """For 5 sources and 4 beams: rows are repeated, not computed again."""
    keys, tokens = [], []
    compute, embed = forward_pass.keys_values, forward_pass.embed

    def counted_keys(x, w, *others):
        if hasattr(w, "ln_cross_w"):
            keys.append((w.index, len(x)))
        return compute(x, w, *others)

    def counted_embed(batch, rows, w, cfg, hook):
        tokens.append((cfg.causal, batch.tokens.shape))
        return embed(batch, rows, w, cfg, hook)

    monkeypatch.setattr(forward_pass, "keys_values", counted_keys)
    monkeypatch.setattr(forward_pass, "embed", counted_embed)
    for beams in (1, 4):
        keys.clear(), tokens.clear()
        minitx.generate(load(family), n=6, num_beams=beams, **few(family, 5))
        assert keys == [(0, 5), (1, 5)]
        assert [shape for causal, shape in tokens if not causal] == [(5, 9)]
        steps = [shape for causal, shape in tokens if causal]
        assert steps == [(5, 1)] + [(5 * beams, 1)] * 5


def test_a_cache_takes_rows():
    """A row may be left out or repeated, and goes on as it would have alone."""
    model = load("gpt2")
    tokens = tiny.ids(model, 3, 7)
    cache = minitx.Cache()
    minitx.forward(model, tokens[:, :5], cache=cache)
    rows = [2, 0, 2, 2]
    cache.take(rows)
    assert cache.valid.shape == (4, 5)
    more = minitx.forward(model, tokens[rows, 5:], cache=cache)
    whole = minitx.forward(model, tokens[rows])[:, 5:]
    np.testing.assert_allclose(more, whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("beams", [1, 3])
def test_sources_and_prompts_in_all_their_forms(beams):
    """Rows of several lengths, one row, an array with padding, a prompt of one's own."""
    model = load("t5")
    rows = [tiny.ids(model, n, seed=n).tolist() for n in (4, 7, 2)]
    options = dict(n=6, num_beams=beams)
    alone = [minitx.generate(model, source=row, **options).tolist() for row in rows]
    ragged = minitx.generate(model, source=rows, **options)
    assert [row.tolist() for row in ragged] == [cut(row, 49) for row in alone]
    tokens, valid, _ = tiny.padded(rows, "right")
    array = minitx.generate(model, source=tokens, source_valid=valid, **options)
    assert [cut(row, 49) for row in array] == [cut(row, 49) for row in alone]
    starts = [[0, 5], [0], [0, 3, 4]]
    rows_with_starts = minitx.generate(model, starts, source=rows, **options)
    for start, row, given in zip(starts, rows, rows_with_starts):
        own = minitx.generate(model, start, source=row, **options).tolist()
        assert given.tolist() == start + cut(own[len(start) :], 49)
    assert minitx.generate(model, source=rows[0], n=0, num_beams=beams).tolist() == [0]


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(num_beams=0), "num_beams=0, .*wanted a whole num_beams >= 1"),
        (dict(num_beams=1.5), "num_beams=1.5"),
        (dict(num_beams=2, length_penalty=float("nan")), "length_penalty=nan.*finite"),
        (dict(num_beams=2, length_penalty=1e300), r"length_penalty=1e\+300; wanted .*finite"),
        (dict(num_beams=2, length_penalty=-1e300), r"length_penalty=-1e\+300; wanted .*not 0"),
        (dict(num_beams=2, length_penalty="x"), "length_penalty='x'; wanted"),
        (dict(num_beams="3"), "num_beams='3', .*wanted a whole num_beams"),
        (dict(num_beams=2, early_stopping="no"), "early_stopping='no'; wanted True, False or 'nev"),
        (dict(repetition_penalty=0), "repetition_penalty=0; wanted a number from 0.001 to 1000"),
        (dict(no_repeat_ngram_size=-1), "no_repeat_ngram_size=-1; wanted a whole number of at l"),
        (dict(min_new_tokens=True), "min_new_tokens=True; wanted a whole number"),
        (dict(num_beams=2, temperature=1.0), "beam search does not sample: wanted one of them"),
        (dict(source_valid=[[1, 1], [1, 0]]), "valid goes with an array of token ids"),
        (dict(valid=[[1], [1]]), "valid goes with an array of token ids"),
    ],
)
def test_what_beams_refuse(options, message):
    with pytest.raises(ValueError, match=message):
        minitx.generate(load("t5"), source=[[4, 5], [6]], n=3, **options)


# --- what a folder says of generating


def settings(tmp_path, config, generation=None):
    """The golden Marian with these settings in its config.json and generation_config.json."""
    folder = tmp_path / "marian"
    shutil.copytree(GENERATED / "marian", folder, dirs_exist_ok=True)
    own = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(own | config))
    (folder / "generation_config.json").unlink()
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    return minitx.load(folder)


def test_generation_config_stands_before_config(tmp_path):
    """A token that only config.json forces is not forced; start and end tokens stay."""
    forced = dict(forced_bos_token_id=7, forced_eos_token_id=3, bad_words_ids=[[4], [5]])
    own = settings(tmp_path, forced).config.generation
    words = {"bad_words_ids": ((4,), (5,))}
    assert own == Generation(forced_bos_token_id=7, forced_eos_token_id=3, **words)
    cfg = settings(tmp_path, forced, {"eos_token_id": 9, "forced_bos_token_id": 8}).config
    assert cfg.generation == Generation(forced_bos_token_id=8)
    assert (cfg.start_id, cfg.end_id) == (60, 9)
    cfg = settings(tmp_path, {}, {"decoder_start_token_id": 2}).config
    assert (cfg.start_id, cfg.end_id) == (2, 0)


def test_suppressed_and_forced_tokens(tmp_path):
    """A suppressed token never comes, unless it is forced; the end token is not suppressed."""
    every = dict(bad_words_ids=[[i] for i in range(61) if i != 9], forced_bos_token_id=4)
    model = settings(tmp_path, {}, every)
    source = [11, 12, 13]
    for options in ({}, {"num_beams": 3}, {"temperature": 5.0, "seed": 0}):
        row = minitx.generate(model, source=source, n=5, **options)[1:].tolist()
        assert row[0] == 4 and set(row[1:]) <= {9, 0}
    last = settings(tmp_path, {}, every | {"forced_eos_token_id": 3, "eos_token_id": 2})
    rows = [minitx.generate(last, source=source, n=5, num_beams=k)[1:].tolist() for k in (1, 3)]
    assert all(row == [4, 2] or row[-1] == 3 for row in rows)
    assert minitx.generate(last, source=source, n=1).tolist() == [60, 3]  # the end wins
    assert minitx.generate(last, [60, 9], source=source, n=1).tolist() == [60, 9, 3]
    # behind more than the start token nothing is forced to come first
    assert minitx.generate(model, [60, 9], source=source, n=1).tolist()[2] in (9, 0)


CHOSEN = json.loads((GENERATED / "settings.json").read_text())


@pytest.mark.parametrize("name", [*FAMILIES, "../llama-grouped"])
def test_with_any_settings_tokens_are_the_reference_librarys(name, tmp_path):
    """60 random texts, settings of a folder and arguments each, samples among them."""
    changed, own = 0, [case for case in CHOSEN if case["model"] == name]
    plain = minitx.load(GENERATED / name, dtype=np.float64)
    for i, case in enumerate(own):
        folder = shutil.copytree(GENERATED / name, tmp_path / str(i))
        place_settings(folder, case["folder"], case["in_config"])
        model, text = minitx.load(folder, dtype=np.float64), case["text"]
        given, start = {"source": text}, 1
        if model.encoder is None:
            stop = json.loads((folder / "config.json").read_text())["eos_token_id"]
            given, start = {"prompt": text, "stop": stop}, len(text)
        new = minitx.generate(model, n=N, **given, **case["how"])[start:].tolist()
        assert new == case["new"], case
        changed += minitx.generate(plain, n=N, **given)[start:].tolist() != case["new"]
    assert len(own) == 60 and changed >= 40


def place_settings(folder, own, in_config):
    """Settings in config.json, without the other file, or in generation_config.json."""
    config, file = folder / "config.json", folder / "generation_config.json"
    raw = json.loads(config.read_text())
    if in_config:
        config.write_text(json.dumps(raw | own))
        file.unlink(missing_ok=True)
    else:
        ends = {key: raw[key] for key in ("eos_token_id", "decoder_start_token_id") if key in raw}
        file.write_text(json.dumps(ends | own))


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}])
def test_each_row_of_a_batch_has_what_it_has_alone(options):
    """Padding is no repetition and no length."""
    model = load("gpt2")
    own = Generation(1.3, 2, ((5, 5), (27,)), min_length=7, forced_bos_token_id=9)
    model = replace(model, config=replace(model.config, generation=own))
    rows = [tiny.ids(model, n, seed=n).tolist() for n in (1, 6, 3)]
    batch = minitx.generate(model, rows, N, stop=60, **options)
    for row, text in zip(batch, rows):
        assert row.tolist() == minitx.generate(model, text, N, stop=60, **options).tolist()


def test_settings_that_leave_no_token_are_named():
    message = "the settings of generation forbid all 61 tokens as new token 61 of a text"
    with pytest.raises(ValueError, match=message):
        minitx.generate(load("t5"), source=[4], n=70, no_repeat_ngram_size=1, stop=-1)


@pytest.mark.parametrize(
    "config,generation,message",
    [
        (dict(suppress_tokens=[3]), None, r"^config.json: suppress_tokens is \[3\]; only None is"),
        ({}, dict(begin_suppress_tokens=[3]), r"^generation_config.json: begin_suppress_tokens is"),
        ({}, dict(encoder_no_repeat_ngram_size=2), "2; .*; ignore_settings=True, or --ignore-set"),
        ({}, dict(typical_p=0.5), "typical_p is 0.5; only 1.0 is supported where text is"),
    ],
)
def test_settings_of_generation_are_refused_unless_at_their_default(
    tmp_path, config, generation, message
):
    model = settings(tmp_path, config, generation)
    assert minitx.run(model, [60], "logits", source=[11])["logits"].shape == (1, 1, 61)
    with pytest.raises(ValueError, match=message):
        minitx.generate(model, source=[11], n=9)
    ignored = minitx.generate(model, source=[11], n=9, ignore_settings=True)
    without = settings(tmp_path, {}, generation and {})
    assert (ignored == minitx.generate(without, source=[11], n=9)).all()


def test_settings_without_effect_are_not_refused(tmp_path):
    """Arguments, null, defaults, what only the library's cache asks, and what nobody knows."""
    said = dict(num_beams=4, early_stopping="never", do_sample=True, temperature=0.6, max_length=9)
    said |= dict(use_cache=False, min_length=None, repetition_penalty=1.0, my_own=3)
    model = settings(tmp_path, {"no_repeat_ngram_size": 3}, said)
    assert model.config.generation == Generation()


def test_settings_that_are_refused(tmp_path):
    """Ids that are none at once, a number when it matters."""
    model = settings(tmp_path, {}, {"no_repeat_ngram_size": "3"})
    with pytest.raises(ValueError, match="no_repeat_ngram_size='3'; wanted a whole number"):
        minitx.generate(model, source=[11], n=2)
    for values, message in (
        ({"eos_token_id": [0, 1]}, r"eos_token_id has \[0, 1\]; wanted one whole number from 0"),
        ({"bad_words_ids": [[61]]}, "bad_words_ids has 61; wanted one whole number from 0 to 60"),
        ({"bad_words_ids": [[]]}, "bad_words_ids has an empty word; expected ids"),
        ({"forced_bos_token_id": -1}, "forced_bos_token_id has -1; wanted"),
    ):
        with pytest.raises(ValueError, match=message):
            settings(tmp_path, {}, values)
