"""The live page's server: what it answers, whom it refuses, and that nothing stops or fills it."""

import ast
import contextlib
import gc
import http.client
import json
import re
import socket
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import anyio
import encoder_decoders
import numpy as np
import pytest
import scipy.special
import served
import talking
from elements import Elements
from served import HERE, PORT
from starlette.datastructures import Headers

import minitx
from minitx.analysis.live import guard, positions, server, turns
from minitx.analysis.live.changes import Changes
from minitx.analysis.live.registry import CHANGES
from minitx.analysis.live.requests import LONGEST, RunRequest
from minitx.analysis.live.runs import Runs
from minitx.analysis.maths import masks, profiles
from minitx.analysis.pages import assets, explore
from minitx.sampling import Sampling

TEXT = "The dog ran after the cat, and sat."
SHOWN = {"part": "", "layer": 0, "head": 3, "offset": -1}


@pytest.fixture(scope="module")
def runs(bundled, causal, tmp_path_factory):
    """One model of each kind."""
    pair = minitx.load(talking.folder(tmp_path_factory.mktemp("talking")))
    t5 = minitx.load(encoder_decoders.t5(tmp_path_factory.mktemp("t5") / "t5"))
    return Runs({"tiny-roberta": bundled, "gpt": causal, "pair": pair, "t5": t5})


@pytest.fixture
def client(runs):
    return served.client(runs, TEXT)


def ask(client, path="run", **values):
    """The answer to a request for this text."""
    return client.post(f"/api/{path}", json={"text": TEXT} | values)


def executed(client, folder="", **values):
    """What the Python that answers a request leaves; its model may be one in a folder."""
    code, names = ask(client, "code", **values).json()["code"], {}
    if folder:
        code = code.replace(repr(values["model"]), repr(str(folder)))
    exec(code, names)
    return names


def error(answer, status):
    """What an answer with this status says."""
    assert answer.status_code == status
    assert "Traceback" not in answer.text
    return answer.json()["error"]


# what is answered


def test_the_page_has_its_first_run_and_its_controls(client, bundled):
    page = client.get("/")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    data = Elements(page.text).data
    assert [run["name"] for run in data["runs"]] == ["as is"]
    assert [*data["live"]["server"]["models"]] == ["tiny-roberta", "gpt", "pair", "t5"]
    sizes = data["live"]["server"]["models"]["tiny-roberta"]["stacks"][""]
    cfg = bundled.config
    assert (sizes["layers"], sizes["heads"], sizes["longest"]) == (4, 4, cfg.n_ctx)
    assert 'id="live-text"' in page.text and "function ask()" in page.text
    assert "connect-src 'self'" in page.text


def test_the_page_draws_its_controls_from_the_records(runs):
    """A label stands once, beside what the change does; each kind of control has its function."""
    facts = {change["name"]: change for change in server.facts(runs)["changes"]}
    assert [*facts] == [*CHANGES]
    page = assets.text("live.js")
    drawn = re.search(r"const DRAW = {(.*?)}", page).group(1).split(", ")
    assert {change["kind"] for change in facts.values()} == {*drawn}
    choices = facts["positions"]["options"]
    assert choices == [(name, kind.label) for name, kind in positions.KINDS.items()]
    meanings = facts["mask"]["options"]["meanings"]
    labels = {name: label for name, (label, _) in meanings.items()}
    assert labels == {name: rule.label for name, rule in masks.MEANINGS.items()}
    assert len({*labels.values()}) == len(labels) and all(labels.values())
    words = [*labels.values(), "as they are", "at zero", "shuffled", "shifted", "all of layer"]
    assert not any(word in page for word in words)


def test_a_run_has_the_pages_data_as_it_is_changed_and_by_chance(client, bundled):
    answer = ask(client, changes={"positions": "zero"}, null=True).json()
    assert [run["name"] for run in answer["runs"]] == ["as is", "changed", "by chance"]
    tokens = bundled.tokenizer.encode(TEXT)
    plain, changed, chance = answer["runs"]
    assert plain == {"name": "as is"} | as_json(explore.data(bundled, "tiny-roberta", TEXT, tokens))
    edits = {"pos_embed": lambda x: 0 * x}
    by_hand = explore.data(bundled, "tiny-roberta", TEXT, tokens, edits=edits)
    assert changed == {"name": "changed"} | as_json(by_hand)
    assert chance["arrays"] not in (plain["arrays"], changed["arrays"])
    assert answer["live"]["says"] == "positions at zero"
    assert answer["live"]["tokens"] == len(tokens)


def as_json(value):
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("changes", [{}, {"heads_off": [[0, 1]]}])
def test_save_gives_the_page_of_explore(client, bundled, tmp_path, changes):
    saved = ask(client, "save", changes=changes)
    explore.write(bundled, "tiny-roberta", TEXT, tmp_path / "explore.html")
    page = (tmp_path / "explore.html").read_text(encoding="utf-8")
    copy = re.sub(r'<p class="soft">A saved copy: .*?</p>', "", saved.text)
    assert saved.text != copy and (copy == page) == (not changes)
    policy = saved.text.partition('Policy" content="')[2].partition('"')[0]
    assert "connect-src" not in policy and "live-text" not in saved.text
    assert saved.text.count('"name": "changed"') == bool(changes)


def test_the_python_is_the_changes_own(client, bundled):
    names = executed(client, changes={"layers_off": [2]}, hidden=[3])
    assert names["model"].config == bundled.config
    assert names["trace"].labels[0, 3] == "<mask>"
    assert not names["trace"]["attn_out", 2].any()


def test_the_python_prints_the_mean_attention_of_a_head(client, bundled, capsys):
    executed(client, shown=SHOWN)
    pattern = minitx.run(bundled, bundled.tokenizer.encode(TEXT), ("pattern", 0))["pattern", 0]
    profile = profiles.profile(pattern[0, 3], 1) / (pattern.shape[-1] - 1)
    assert capsys.readouterr().out == f"L0H3, offset -1: {profile[0]:.3f}\n"


@pytest.mark.parametrize("changes", [{}, {"heads_off": [[0, 3]]}])
def test_the_python_ends_with_the_guess_at_a_place(client, bundled, changes, capsys):
    """Its five likeliest tokens, and of a change what it does to them."""
    executed(client, changes=changes, place=3)
    lines = capsys.readouterr().out.splitlines()
    ids = bundled.tokenizer.encode(TEXT)
    edits = Changes.of(changes).edits(bundled, ids) if changes else {}
    y = [minitx.run(bundled, ids, "logits", each)["logits"][0, 3] for each in ({}, edits)]
    before, after = (scipy.special.softmax(x.astype(float)) for x in y)
    best = np.argsort(-after)[:5]
    assert len(lines) == 5
    for line, token, piece in zip(lines, best, bundled.tokenizer.pieces(best)):
        change = f", difference {after[token] - before[token]:+.1%}"
        said = f"as is {before[token]:.1%}, changed {after[token]:.1%}{change}"
        assert line == f"guess {piece!r}: {said if changes else f'{after[token]:.1%}'}"


def test_the_python_of_an_encoder_decoder_ends_with_a_guess(client, runs, capsys):
    changes, folder = (
        {"stack": "encoder", "positions": "zero"},
        runs.models["pair"].tokenizer.folder,
    )
    executed(client, folder, model="pair", changes=changes, place=1)
    assert capsys.readouterr().out.count("difference") == 5


def test_a_saved_page_opens_at_what_was_seen(client):
    page = ask(client, "save", view="head=L0H3&run=difference&token=3").text
    assert '"view": "head=L0H3&run=difference&token=3"' in page


def test_a_saved_page_says_what_was_changed(client):
    for changes, says in (({"mlps_off": [3]}, "MLP 3 off"), ({}, "")):
        page = ask(client, "save", changes=changes).text
        assert f'"says": "{says}"' in page


def test_a_saved_page_has_what_was_asked_of_tokens_and_of_a_second_text(client):
    page = ask(client, "save", place=3, other=TEXT.replace("dog", "cat"), hidden=[2]).text
    content = Elements(page).data
    assert content["runs"][0]["outputs"]["pushes"]["place"] == 3
    assert content["patched"]["sentence"].startswith("Compared with ")
    program = "const {patchedMaps, "  # which draws them, and no page without them has it
    assert program in page and program not in ask(client, "save").text
    assert "place is 99" in error(ask(client, "save", place=99), 400)


def test_the_python_prints_the_strongest_keys_of_cross_attention(client, runs, capsys):
    shown = {"part": "cross", "layer": 1, "head": 0, "offset": None}
    folder = runs.models["pair"].tokenizer.folder
    names = executed(client, folder, model="pair", shown=shown)
    strongest = names["trace"]["cross_pattern", 1][0, 0].max(axis=-1).mean()
    assert capsys.readouterr().out == f"L1H0, strongest key: {strongest:.3f}\n"


def test_a_causal_model_goes_on_with_a_text(client, causal):
    given = {"model": "gpt", "changes": {"positions": "zero"}}
    cold = [ask(client, "next", temperature=0, seed=seed, **given).json() for seed in range(3)]
    assert cold[0] == cold[1] == cold[2]
    tokens = causal.tokenizer.encode(TEXT)
    y = minitx.run(causal, tokens, "logits", {"pos_embed": lambda x: 0 * x})["logits"]
    likeliest = causal.tokenizer.decode([*tokens, y[0, -1].argmax()])
    assert cold[0]["text"] == likeliest
    hot = [ask(client, "next", temperature=2, seed=seed, **given).json() for seed in (1, 2, 2)]
    assert hot[0] != hot[1] == hot[2]


def test_a_chosen_token_is_appended(client, causal):
    text = ask(client, "next", model="gpt", token=300).json()["text"]
    assert text == causal.tokenizer.decode([*causal.tokenizer.encode(TEXT), 300])


def test_temperature_flattens_the_guesses(client):
    best = []
    for temperature in (0.0, 0.5, 1.0, 2.0):
        answer = ask(client, model="gpt", temperature=temperature).json()
        (place,) = answer["live"]["guesses"]["places"]
        best.append(place["best"][0][0][2])
    assert best[0] == 1 and best == sorted(best, reverse=True) and len({*best}) == 4


@pytest.mark.parametrize(
    "drawn", [{"top_k": 3}, {"top_p": 0.1}, {"temperature": 0.7, "top_k": 4, "top_p": 0.9}]
)
def test_top_k_and_top_p_leave_guesses_out(client, causal, drawn):
    """What the page shows are the probabilities by which `minitx.generate` draws."""
    answer = ask(client, model="gpt", **drawn).json()
    (place,) = answer["live"]["guesses"]["places"]
    y = minitx.run(causal, causal.tokenizer.encode(TEXT), "logits")["logits"][:, -1]
    sampling = Sampling(**({"temperature": 1.0} | drawn))
    ids, p = sampling.probabilities(y.astype(float))
    kept = p[0] > 0
    assert 1 <= kept.sum() < 8
    assert [token for token, _, _ in place["best"][0]] == ids[0, kept].tolist()
    shown = [share for _, _, share in place["best"][0]]
    assert shown == pytest.approx(p[0, kept].tolist(), rel=1e-4)
    texts = [ask(client, "next", model="gpt", seed=seed, **drawn).json() for seed in range(6)]
    tokens = causal.tokenizer.encode(TEXT)
    allowed = {causal.tokenizer.decode([*tokens, token]) for token in ids[0, kept]}
    assert {text["text"] for text in texts} <= allowed


def test_what_one_run_expects_has_its_probability_in_all(client, causal):
    """As the model gives it, however the next token is drawn; with one run there is no list."""
    tokens, p = causal.tokenizer.encode(TEXT), []
    for edits in {}, {"pos_embed": lambda x: 0 * x}:
        y = minitx.run(causal, tokens, "logits", edits)["logits"][0, -1].astype(float)
        p.append(scipy.special.softmax(y))
    ids = np.unique(np.argsort(p)[:, -5:])
    pieces = [piece.replace(" ", "␣") for piece in causal.tokenizer.pieces(ids)]
    for drawn in {}, {"top_k": 1}, {"temperature": 0.5}:
        answer = ask(client, model="gpt", changes={"positions": "zero"}, **drawn).json()
        (place,) = answer["live"]["guesses"]["places"]
        assert [piece for piece, _ in place["in_all"]] == pieces
        by_piece = np.array([by_run for _, by_run in place["in_all"]])
        assert by_piece.T == pytest.approx(np.array(p)[:, ids], rel=1e-4)
    (place,) = ask(client, model="gpt").json()["live"]["guesses"]["places"]
    assert "in_all" not in place


def test_the_python_prints_the_guesses_that_are_shown(client, causal, capsys):
    drawn = {"temperature": 0.7, "top_k": 4, "changes": {"positions": "zero"}}
    answer = ask(client, model="gpt", **drawn).json()
    shown = answer["live"]["guesses"]["places"][0]["best"][1]
    code = ask(client, "code", model="gpt", **drawn).json()["code"]
    assert "Sampling(temperature=0.7, top_k=4).probabilities" in code
    executed(client, causal.tokenizer.folder, model="gpt", **drawn)
    printed = ast.literal_eval(capsys.readouterr().out)
    assert printed == [(piece, pytest.approx(p, abs=6e-4)) for _, piece, p in shown]


def test_hidden_tokens_are_guessed(client, bundled):
    guesses = ask(client, hidden=[4, 2]).json()["live"]["guesses"]
    assert guesses["kind"] == "masked"
    assert [place["place"] for place in guesses["places"]] == [2, 4]
    tokens = bundled.tokenizer.encode(TEXT)
    tokens[[2, 4]] = 4
    y = minitx.run(bundled, tokens, "logits")["logits"][0]
    for place in guesses["places"]:
        best = [token for token, _, _ in place["best"][0]]
        assert best == y[place["place"]].argsort()[::-1][: len(best)].tolist()


def test_an_encoder_decoder_is_stepped_through(client, runs):
    changes = {"stack": "encoder", "positions": "zero"}
    answer = ask(client, model="pair", changes=changes).json()
    assert [*answer["runs"][1]["parts"]] == ["encoder", "decoder", "cross"]
    places = answer["live"]["guesses"]["places"]
    pair = runs.models["pair"]
    row = minitx.generate(pair, n=pair.config.n_ctx, source=TEXT)
    assert [place["said"] for place in places] == pair.tokenizer.pieces(row[1:])
    greedy = [place["best"][0][0][1] == place["said"] for place in places]
    assert all(greedy[:-1])  # where it may read no more, the end is forced
    assert any(place["of_said"][0] != place["of_said"][1] for place in places)
    forced = ask(client, model="pair", target="It ran.").json()["live"]["guesses"]["places"]
    target = pair.tokenizer.encode("It ran.")
    assert [place["said"] for place in forced] == pair.tokenizer.pieces(target)


def test_t5_whose_positions_are_no_table(client):
    answer = ask(client, model="t5", changes={"stack": "encoder", "dial": 2}, null=True).json()
    assert len(answer["runs"]) == 3


def test_whole_words(client):
    (run,) = ask(client, words=True).json()["runs"]
    assert run["unit"] == "word" and run["labels"][1] == "The"


# what is refused, with a reason


@pytest.mark.parametrize(
    "values, reason",
    [
        ({"text": ""}, "has 0 tokens"),
        ({"text": 3}, "the text is 3; wanted a text"),
        ({"text": "a" * (LONGEST + 1)}, f"the text has {LONGEST + 1} letters; this page takes at"),
        ({"text": "dog " * 300}, "this model reads at most 256"),
        ({"text": "half \ud83d"}, "half of a character"),
        ({"target": "a" * (LONGEST + 1)}, "the target has"),
        ({"target": "A dog"}, "but this model .roberta. has a single stack"),
        ({"model": "gpt3"}, "no model 'gpt3' here; available: tiny-roberta, gpt"),
        ({"model": ["gpt"]}, "no model"),
        ({"words": 1}, "words is 1; wanted true or false"),
        ({"null": "yes"}, "null is 'yes'"),
        ({"hidden": [-1]}, "hidden is .-1.; wanted a list of at most"),
        ({"hidden": [99]}, "token 99 is to be hidden; wanted 0 to 15"),
        ({"hidden": [1], "model": "gpt"}, "only a masked model predicts hidden tokens"),
        ({"hidden": [1], "model": "pair"}, "hidden tokens are those of a masked model"),
        ({"temperature": 11}, "temperature is 11; wanted a number from 0.0 to 10.0"),
        ({"temperature": "1"}, "temperature is '1'"),
        ({"temperature": 10**400}, "temperature is 1000"),
        ({"top_k": 0}, "top_k is 0; wanted a whole number from 1 to 1000000"),
        ({"top_k": 2.0}, "top_k is 2.0; wanted a whole number"),
        ({"top_p": 0}, "top_p is 0; wanted a number from 0.01 to 1.0"),
        ({"top_p": "1"}, "top_p is '1'"),
        ({"changes": {"positions": "none"}}, "positions is 'none'; wanted one of"),
        ({"changes": []}, "changes are ..; wanted an object"),
        ({"changes": {"heads_off": [[7, 0]]}}, "layer 7 is out of range; wanted 0 to 3"),
        ({"changes": {"stack": "cross"}, "model": "pair", "null": True}, "so it has no null here"),
        ({"heads": []}, "a request has no 'heads'; available: model, text"),
        ({"page": "p" * 65}, "page is .*; wanted at most 64 letters"),
        ({"page": 1}, "page is 1"),
    ],
)
def test_what_cannot_be_run_is_said(client, values, reason):
    body = json.dumps({"text": TEXT} | values)  # with lone surrogates, which httpx would refuse
    answer = client.post("/api/run", content=body, headers={"Content-Type": "application/json"})
    assert re.search(reason, error(answer, 400))


@pytest.mark.parametrize(
    "path, values, reason",
    [
        ("next", {}, "only a causal model without an encoder predicts a next token; this is a"),
        ("next", {"model": "pair"}, "this is an encoder-decoder"),
        ("next", {"model": "gpt", "seed": -1}, "seed is -1; wanted a whole number from 0 to"),
        ("next", {"model": "gpt", "token": 10**6}, "token is 1000000; wanted a whole number"),
        ("code", {"shown": {"head": 1}}, "wanted part, layer, head, offset"),
        ("code", {"place": 99}, "place is 99; wanted a whole number from 0 to "),
        ("code", {"place": "0"}, "place is '0'; wanted a whole number from 0 to "),
        ("save", {"view": 3}, "view is 3; wanted at most 2000 letters"),
        ("save", {"view": "x" * 2001}, "wanted at most 2000 letters"),
        ("code", {"shown": SHOWN | {"layer": 9}}, "layer is 9; wanted a whole number from 0 to 3"),
        ("code", {"shown": SHOWN | {"head": -1}}, "head is -1; wanted a whole number from 0 to 3"),
        ("code", {"shown": SHOWN | {"offset": ")"}}, "offset is ')'; wanted a whole number"),
        ("code", {"shown": SHOWN | {"part": "cross"}}, "stack is 'cross'; this roberta has ''"),
        ("code", {"changes": {"dial": 99}}, "dial is 99; a text of 14 own tokens"),
        ("save", {"changes": {"layers_off": [4]}}, "layer 4 is out of range"),
    ],
)
def test_other_requests_are_refused_alike(client, path, values, reason):
    assert reason in error(ask(client, path, **values), 400)


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'"a"', b"\xff", b"[" * 100_000, b"9" * 9999])
def test_a_body_that_is_no_object_is_refused(client, body):
    answer = client.post("/api/run", content=body, headers={"Content-Type": "application/json"})
    assert "the request is" in error(answer, 400)


def test_other_paths_and_methods_are_refused(client):
    assert "Not Found: GET '/favicon.ico'" in error(client.get("/favicon.ico"), 404)
    assert "Not Found" in error(client.get("/../../etc/passwd"), 404)
    assert "Method Not Allowed: GET '/api/run'" in error(client.get("/api/run"), 405)


def test_a_fault_of_ours_is_said_in_the_terminal_alone(client, runs, monkeypatch, capsys):
    def fails(request, check):
        raise ZeroDivisionError("secret of the house")

    monkeypatch.setattr(runs, "answer", fails)
    assert error(ask(client), 500) == "minitx failed here; the terminal says how"
    assert "ZeroDivisionError: secret of the house" in capsys.readouterr().err


def test_a_hostile_text_comes_back_inert(client):
    text = "</script><script>alert(1)</script> \u202eevil\u2066 <!-- a dog"
    answer = ask(client, text=text)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["runs"][0]["text"] == text
    page = ask(client, "save", text=text).text
    scripts = 4 + len(explore.own_program())  # data, translations, library, colours, program
    assert page.count("</script>") == scripts and "alert(1)</script>" not in page
    assert "<title>tiny-roberta: &lt;/script&gt;" in page
    assert "\u202e" not in ask(client, "code", text=text).json()["code"]


# who may ask


def test_the_headers_keep_a_page_to_itself(client):
    for answer in client.get("/"), client.get("/nothing"), ask(client):
        headers = answer.headers
        for part in "default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'":
            assert part in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",  # a name that was made to lead here: DNS rebinding
        f"127.0.0.1.evil.example:{PORT}",
        "127.0.0.1",
        f"127.0.0.1:{PORT + 1}",
        f"0.0.0.0:{PORT}",
        f"[::1]:{PORT}",
        "",
    ],
)
def test_a_foreign_host_is_refused(client, host):
    for path in "/", "/api/run":
        answer = client.get(path, headers={"Host": host})
        assert f"this page is served only at 127.0.0.1:{PORT} or localhost" in error(answer, 403)
        assert "content-security-policy" in answer.headers


def test_a_second_host_is_refused():
    """Which of two counts is anybody's guess; uvicorn refuses them before, with a status of 400."""
    guarded = guard.Guard(None, PORT)
    here, evil = f"127.0.0.1:{PORT}", f"evil.example:{PORT}"
    guarded.check(Headers({"Host": here}))
    with pytest.raises(guard.Refused, match="the request is for '127.0.0.1:.*', 'evil.example"):
        guarded.check(Headers(raw=[(b"host", here.encode()), (b"host", evil.encode())]))


def test_this_machines_own_names_are_not(client):
    for host in f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}":
        assert client.get("/", headers={"Host": host}).status_code == 200


def test_browsers_leave_out_port_80():
    guard.Guard(None, 80).check(Headers({"Host": "localhost", "Origin": "http://localhost"}))
    with pytest.raises(guard.Refused):
        guard.Guard(None, PORT).check(Headers({"Host": "localhost"}))


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        f"http://evil.example:{PORT}",
        f"https://127.0.0.1:{PORT}",
        "http://localhost:3000",
        "null",
        "",
    ],
)
def test_a_foreign_origin_is_refused(client, origin):
    answer = client.post("/api/run", json={"text": TEXT}, headers={"Origin": origin})
    assert "may send requests; this is from" in error(answer, 403)


def test_the_pages_own_origin_is_not(client):
    for origin in HERE, f"http://localhost:{PORT}":
        answer = client.post("/api/run", json={"text": TEXT}, headers={"Origin": origin})
        assert answer.status_code == 200


def test_what_another_site_embeds_is_refused(client):
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert "from another site" in error(client.get("/", headers=embedded), 403)
    link = embedded | {"Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers=link).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_what_a_form_could_send_is_refused(client, kind):
    body = json.dumps({"text": TEXT})
    answer = client.post("/api/run", content=body, headers={"Content-Type": kind})
    assert "wanted application/json" in error(answer, 415)


def test_a_large_body_is_refused(client):
    answer = ask(client, text="a" * guard.BODY)
    assert error(answer, 413) == f"the request has more than {guard.BODY} bytes"


# a bounded memory, and no more pages than can be served


def test_too_many_pages_are_told_to_wait(client, monkeypatch):
    async def full(*_):
        raise turns.Busy

    monkeypatch.setattr(turns.Turns, "run", full)
    assert "too many pages" in error(ask(client), 503)


def test_memory_is_bounded(bundled):
    """The caches keep the last runs and no more; nothing else grows."""
    kept = 2
    runs = Runs({"tiny-roberta": bundled}, kept)
    sizes = []
    tracemalloc.start()
    for n in range(18):
        values = {"text": f"A dog {n % 10}", "changes": {"layers_off": [1]}}
        runs.answer(RunRequest.of(values, runs.names))
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert {cache.cache_info().currsize for cache in runs.caches} == {kept}
    grown = max(sizes[12:]) - max(sizes[6:12])
    assert grown < 20_000  # bytes; measured 9,000; six runs are 120,000


# over a real socket, where all share one event loop


@pytest.fixture(scope="module")
def port(runs):
    with served.listening(runs, TEXT) as port:
        yield port


def asked(port, body=None, **headers):
    """Status and body of a request over a socket of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    body = json.dumps({"text": TEXT}) if body is None else body
    connection.request("POST", "/api/run", body, {"Content-Type": "application/json"} | headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def head(port, length):
    """The first bytes of a request that promises a body of some length."""
    return (
        f"POST /api/run HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_nothing_but_this_machine_is_listened_on(port):
    assert asked(port)[0] == 200
    listener = server.listening(0)
    assert listener.getsockname()[0] == "127.0.0.1"
    listener.close()


def test_rebinding_and_foreign_origins_over_a_socket(port):
    assert asked(port, Host=f"evil.example:{port}")[0] == 403
    assert asked(port, Origin="http://evil.example")[0] == 403
    with socket.create_connection(("127.0.0.1", port), timeout=20) as two_hosts:
        lines = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n"
        two_hosts.sendall(lines.encode())
        assert two_hosts.recv(100).split()[1] in (b"400", b"403")
    with socket.create_connection(("127.0.0.1", port), timeout=20) as no_host:
        no_host.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert no_host.recv(100).split()[1] == b"403"


def test_twenty_requests_at_once_of_twenty_pages(port):
    assert [status for status, _ in at_once(port, [f"page{n}" for n in range(20)])] == [200] * 20


def test_twenty_requests_at_once_of_one_page(port):
    answers = at_once(port, ["one"] * 20)
    assert {status for status, _ in answers} == {200, 409}  # measured 18 of 409
    assert all(b"superseded" in content for status, content in answers if status == 409)


def at_once(port, pages):
    """The answers to as many requests, each of other changes."""

    def work(n):
        changes = {"positions": "shuffled", "seed": n}
        return asked(port, json.dumps({"text": TEXT, "page": pages[n], "changes": changes}))

    with ThreadPoolExecutor(len(pages)) as pool:
        return [*pool.map(work, range(len(pages)))]


def test_requests_cut_short_and_slow_clients_block_nobody(port):
    slow = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(20)]
    for connection in slow:
        connection.sendall(head(port, 1000) + b'{"text"')
    for _ in range(5):
        short = socket.create_connection(("127.0.0.1", port), timeout=20)
        short.sendall(head(port, 1000) + b"{")
        short.close()
    unread = socket.create_connection(("127.0.0.1", port), timeout=20)
    body = json.dumps({"text": TEXT}).encode()
    unread.sendall(head(port, len(body)) + body)  # and never reads its answer
    start = time.monotonic()
    assert asked(port)[0] == 200
    assert time.monotonic() - start < 5  # measured 0.1 s
    for connection in [*slow, unread]:
        connection.close()
    assert asked(port)[0] == 200


def test_a_body_that_does_not_arrive_is_given_up(port, monkeypatch):
    monkeypatch.setattr(guard, "SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
        slow.sendall(head(port, 1000) + b"{")
        answer = slow.recv(2000)
        while part := slow.recv(2000) if b"seconds" not in answer else b"":
            answer += part
    assert b" 408 " in answer and b"did not arrive within 0.2 seconds" in answer


def test_a_body_without_a_length_is_counted(port):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as endless:
        lines = head(port, 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        endless.sendall(lines)
        part = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
        with contextlib.suppress(ConnectionError):
            for _ in range(8):
                endless.sendall(part)
        assert b" 413 " in endless.recv(2000)


def test_the_body_is_read_as_it_comes():
    """A request of many small parts, within the time: the parts are joined."""

    class Slow:
        headers = {"content-type": "application/json; charset=utf-8"}  # noqa: RUF012

        async def stream(self):
            for part in b"{", b"", b"}":
                await anyio.sleep(0)
                yield part

    assert anyio.run(guard.body_of, Slow()) == b"{}"


# two texts that a model reads together


def test_a_pair_is_read_with_its_types_changed_saved_and_in_the_python():
    model, second = minitx.load("tiny-bert"), "The cat lay on the rug."
    own = served.client(Runs({"tiny-bert": model}), (TEXT, second))
    data = Elements(own.get("/").text).data
    assert (data["live"]["text"], data["live"]["second"]) == (TEXT, second)
    for changes in ({}, {"positions": "shuffled"}, {"dial": 2}, {"heads_off": [[0, 1]]}):
        run = ask(own, second=second, changes=changes).json()["runs"][-1]
        said = explore.readable(model, (TEXT, second))
        explored = explore.data(model, "tiny-bert", (TEXT, second), said)
        assert run["labels"] == explored["labels"] and run["second"] == explored["second"]
        trace = executed(own, second=second, changes=changes)["trace"]
        largest = trace.stack("pattern")[:, 0].astype(float).max(axis=(-2, -1))
        assert run["arrays"]["pattern"]["high"] == largest.ravel().tolist()
    assert second in ask(own, "save", second=second, changes=changes).text
    own_tokens = Changes("shuffled").edits(model, said)
    x = np.arange(run["second"]["query"] + 12.0)[None]
    moved = own_tokens["pos_embed"](x)[0]
    separators = [0, run["second"]["query"] - 1, len(moved) - 1]
    assert moved[separators].tolist() == separators  # they keep their positions


def test_a_typed_separator_is_pointed_out():
    own = served.client(Runs({"tiny-bert": minitx.load("tiny-bert")}), TEXT)
    for text, typed in ((TEXT, ""), ("A dog [SEP] a cat", "[SEP]")):
        assert own.post("/api/run", json={"text": text}).json()["live"]["typed"] == typed


# edits from Python


def halved(x):
    return 0.5 * x


@pytest.mark.parametrize("name, given", [("tiny-roberta", "resid_pre"), ("pair", "enc_resid_pre")])
def test_given_edits_are_in_each_changed_run_and_a_change_comes_on_top(runs, name, given):
    model, edits = runs.models[name], {(given, 1): halved}
    own = Runs({name: model}, given=edits)
    request = own.request({"text": TEXT})
    answer = json.loads(own.answer(request))
    assert [run["name"] for run in answer["runs"]] == ["as is", "changed"]
    assert answer["live"]["says"] == f"edits given: {given}.1"
    said = explore.readable(model, TEXT)
    plain, by_hand = (explore.data(model, name, TEXT, said, **x) for x in ({}, {"edits": edits}))
    runs_by_hand = {"name": "as is"} | plain, {"name": "changed"} | by_hand
    assert answer["runs"] == as_json(runs_by_hand) and plain != by_hand
    stack = {"stack": "decoder"} if name == "pair" else {}
    values = {"text": TEXT, "changes": {"layers_off": [0], **stack}, "null": True}
    assert [*own.requests(own.request(values))] == ["as is", "changed", "by chance"]
    both = own.edits(own.request(values).changed)
    assert both[given, 1] is halved and ("attn_out", 0) in both
    assert own.edits(own.request(values).by_chance)[given, 1] is halved
    assert own.edits(own.request(values).as_is) == {}
    assert own.says(own.request(values)).startswith(f"edits given: {given}.1; ")


def test_a_change_at_the_point_of_a_given_edit_replaces_it_and_a_dial_knows_the_others(bundled):
    own = Runs({"tiny-roberta": bundled}, given={"z": halved, ("mlp_out", 0): 0})
    edits = own.edits(own.request({"text": TEXT, "changes": {"heads_off": [[1, 2]]}}))
    assert edits["z", 0] is halved and edits["mlp_out", 0] == 0
    x = edits["z", 1](np.ones((1, 4, 3, 2)))
    assert x[:, :2].all() and not x[:, 2].any()
    dialled = own.edits(own.request({"text": TEXT, "changes": {"dial": 2}}))
    plain = Changes(dial=2).edits(bundled, bundled.tokenizer.encode(TEXT))
    assert np.array_equal(dialled["k", 0], plain["k", 0])
    assert np.abs(dialled["k", 1] - plain["k", 1]).max() > 0.1


def test_a_steered_model_is_served_from_python():
    vector = minitx.steering_vector("tiny-stories", ["A sad dog"], ["A happy dog"], layer=2)
    edits = minitx.steer(vector, 4.0)
    page = minitx.serve("tiny-stories", "Tom was", edits, browser=False)
    try:
        port = int(page.address.rstrip("/").rpartition(":")[2])
        answer = json.loads(asked(port, json.dumps({"text": "Tom was"}))[1])
        (place,) = answer["live"]["guesses"]["places"]
        model = minitx.load("tiny-stories")
        for best, more in zip(place["best"], ({}, {"edits": edits})):
            y = minitx.run(model, "Tom was", "logits", **more)["logits"][0, -1]
            p = scipy.special.softmax(y.astype(float))
            assert [x[0] for x in best[:3]] == [*np.argsort(-p)[:3]]
            assert best[0][2] == pytest.approx(p.max(), rel=1e-5)
    finally:
        page.close()
    with pytest.raises(OSError):
        asked(port, "{}")


def test_the_python_of_given_edits_computes_what_the_page_shows(bundled, capsys):
    own = Runs({"tiny-roberta": bundled}, given={("resid_pre", 2): halved})
    request = own.request({"text": TEXT, "changes": {"heads_off": [[0, 1]]}})
    names = {"given": own.given}
    exec(own.code(request, place=3), names)
    trace = minitx.run(bundled, names["tokens"], "logits", own.edits(request.changed))
    assert np.array_equal(names["trace"]["logits"], trace["logits"])
    assert "as is" in capsys.readouterr().out  # of the guess, beside the changed one


def test_given_edits_decide_how_a_text_goes_on(causal):
    own = Runs({"gpt": causal}, given={("resid_pre", 1): halved})
    drawn = own.following(own.request({"text": TEXT, "temperature": 0.0}), seed=0)
    edited = minitx.run(causal, TEXT, "logits", own.given)["logits"][0, -1].argmax()
    assert drawn == causal.tokenizer.decode([*causal.tokenizer.encode(TEXT), edited])


@pytest.mark.parametrize(
    "edits, match",
    [
        ({("resid_pre", 9): 0}, "resid_pre.*layers 0 to 3"),
        ({"nothing": 0}, "unknown point 'nothing'"),
        ([1], "edits is .*; wanted a dictionary"),
        ({("resid_pre", 1): np.zeros(3)}, "the edit of .* returns"),
    ],
)
def test_given_edits_that_a_run_refuses_are_refused_at_once(edits, match):
    with pytest.raises(ValueError, match=match):
        minitx.serve("tiny-stories", "Tom was sad.", edits, browser=False)
