"""The page of `minitx explore` without a browser: its content, its exactness, what it refuses.

checks.py opens it in one (make test-page).
"""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import encoder_decoders
import numpy as np
import pytest
import strings
from analysis_models import gpt2
from elements import Elements
from scipy.special import softmax

import minitx
from minitx import analysis
from minitx.analysis import __main__ as cli
from minitx.analysis.machine import language
from minitx.analysis.maths import factors, joint, profiles
from minitx.analysis.measures import inputs
from minitx.analysis.pages import assets, attention, explore, packing
from minitx.weights import shapes

SENTENCE = "The brown capybara is sleeping now."

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["tiny-bert", "tiny-gpt2"])
def seen(request):
    """A model, its tokens, the data of the page, and the page."""
    model = minitx.load(request.param)
    tokens = explore.readable(model, SENTENCE)
    data = explore.data(model, request.param, SENTENCE, tokens)
    return SimpleNamespace(model=model, tokens=tokens, data=data, page=explore.page(data))


def page_data(page):
    """The first run that a page's program reads."""
    return Elements(page).data["runs"][0]


def test_nothing_outside_the_page_is_named_or_allowed(seen):
    html = Elements(seen.page)
    metas = [attributes for _, attributes, _ in html.elements if "http-equiv" in attributes]
    assert metas[0]["http-equiv"] == "Content-Security-Policy"
    policy = metas[0]["content"]
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"https?:|\*|connect-src|'self'", policy)
    for tag, attributes, _ in html.elements:
        for name in ("src", "href", "srcset", "data", "action", "poster", "background"):
            own = "data:", "?"  # "?projector" is this page, whatever its name
            assert attributes.get(name, "data:").startswith(own), (tag, attributes)
    program = "".join(text for _, _, text in html.all("script")[2:])
    assert all(script in program for script in assets.scripts(*explore.own_program()))
    network = r"fetch\(|XMLHttpRequest|WebSocket|import[ (]|sendBeacon|EventSource|localStorage"
    assert not re.search(network, program)
    assert not re.search(r"@import|url\(", html.all("style")[0][2])


SOURCES = (assets.PAGE / "SOURCES.md").read_text(encoding="utf-8")


def test_the_libraries_hold_what_the_programs_of_pages_use_and_no_more():
    own = [file for file in assets.PAGE.glob("*.js") if not file.name.endswith(".min.js")]
    program = "".join(file.read_text(encoding="utf-8") for file in own)
    for name, package in {"d3": "d3", "Plot": "@observablehq/plot"}.items():
        held = re.search(rf'export \{{([^}}]*)\}}\s+from\s+"{package}"', SOURCES)[1]
        used = set(re.findall(rf"\b{name}\s*\.\s*([A-Za-z]\w*)", program))
        assert {*re.split(r"[,\s]+", held)} == used


def test_the_libraries_have_the_sums_and_the_licences_that_are_told(seen):
    scripts = [text for _, _, text in Elements(seen.page).all("script")]
    for file, digest in re.findall(r"^\| `(\S+?)` .* `([0-9a-f]{64})` \|$", SOURCES, re.M):
        content = (assets.PAGE / file).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
        assert (content.decode() in scripts) == (file in explore.ASSETS.values())
    licences = Elements(seen.page).all("pre")[0][2]
    people = "Mike Bostock", "Charles Karney", "Cynthia Brewer"
    for holder in ("Observable, Inc.", *people, "Mapbox"):
        assert holder in licences


def test_the_files_of_the_page_are_shipped():
    setup = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    assert re.search(r"^minitx.analysis.pages = page/\*", setup, re.M)


def test_numbers_come_back_within_the_error_that_the_page_states(seen):
    """Half a step of 16 bits: measured 0.5 to 1.0 of what is stated."""
    word = np.arange(len(seen.tokens))
    arrays, _, _ = explore.measured(attention.of_text(seen.model, seen.tokens), word, word)
    shown = page_data(seen.page)["arrays"]
    for name, (x, _, *bits) in arrays.items():
        packed = shown[name]
        assert packed == seen.data["arrays"][name]
        error = abs(packing.unpack(packed) - x).max()
        assert error <= packed["error"] + 1e-12, name  # 1e-12: the float64 of the way back
        steps = 4095 if bits else 65535
        assert packed["error"] <= np.ptp(x) / steps / 2 + 1e-15, name
        assert packing.unpack(packed).shape == x.shape
    assert seen.data["arrays"]["pattern"]["error"] <= 1 / 131070


def test_one_head_beyond_all_others_does_not_blur_them():
    """Each head has steps of its own."""
    x = np.random.default_rng(0).standard_normal((2, 3, 5)) * np.array([1, 1, 1e6])[:, None]
    errors = abs(packing.unpack(packing.pack(x, 2)) - x)
    assert errors[:, :2].max() < 1e-4 < errors[:, 2].max()
    constant = np.full((2, 3, 4), 7.5)
    assert np.array_equal(packing.unpack(packing.pack(constant, 2)), constant)


@pytest.mark.parametrize("n", [6, 7])
def test_two_codes_of_12_bits_take_three_bytes(n):
    x = np.random.default_rng(2).standard_normal((1, n))
    packed = packing.pack(x, 1, bits=12)
    assert len(base64.b64decode(packed["data"])) == (n + 1) // 2 * 3
    error = abs(packing.unpack(packed) - x).max()
    assert np.ptp(x) / 65535 < error <= packed["error"] <= np.ptp(x) / 8190 + 1e-15


def test_what_the_page_holds_is_what_the_model_computes(seen):
    cfg, T = seen.model.config, len(seen.tokens)
    trace = minitx.run(seen.model, seen.tokens, keep=["pattern", "q", "k"])
    arrays = {name: packing.unpack(packed) for name, packed in seen.data["arrays"].items()}
    pattern = trace.stack("pattern")[:, 0]
    assert arrays["pattern"].shape == (cfg.n_layers, cfg.n_heads, T, T)
    assert abs(arrays["pattern"] - pattern).max() < 1e-5  # 7.6e-6 by rounding to 16 bits
    profile = profiles.mean_attention(profiles.profile(pattern), T)
    assert abs(arrays["profile"] - profile).max() < 1e-5
    X = inputs.of_text(seen.model, seen.tokens)
    U_Q, S, U_K = factors.svd(*inputs.query_key(seen.model, 2, 1))
    error = seen.data["arrays"]["columns"]["error"]
    for columns, U in zip(np.split(arrays["columns"][2, 1], 2), (U_Q, U_K)):
        difference = columns - X[2] @ U[:, : explore.COLUMNS]
        # half a step of 12 bits, 1e-3; the rest by float32 in the SVD
        assert abs(difference).max() < error + 2e-4
    weight = S * S / (S * S).sum()
    assert arrays["weight"][2, 1] == pytest.approx(weight[: explore.COLUMNS], abs=1e-4)
    assert len(seen.data["labels"]) == T and seen.data["causal"] == cfg.causal


def test_the_pages_outputs_are_the_models(seen):
    """Guesses as text and probability, lengths, values: from a whole trace."""
    trace = minitx.run(seen.model, seen.tokens)
    shown, pieces = seen.data["outputs"], seen.model.tokenizer.pieces
    p = softmax(trace["logits"][0].astype(np.float64), axis=1)
    T = len(seen.tokens)
    best = np.reshape(shown["guesses"]["pieces"], (T, -1))[:, 0]
    wanted = [piece.replace(" ", "␣") for piece in pieces(p.argmax(axis=1))]
    assert [shown["pieces"][n] for n in best] == [x.replace("\n", "⏎") for x in wanted]
    probabilities = packing.unpack(shown["guesses"]["p"])
    assert abs(probabilities[:, 0] - p.max(axis=1)).max() < 1e-5  # 7.6e-6 by rounding to 16 bits
    assert packing.unpack(shown["lens"]["p"])[-1, :, 0] == pytest.approx(p.max(axis=1), abs=1e-5)
    own = seen.tokens[1:] if seen.model.config.causal else seen.tokens
    assert shown["actual"][: len(own)] == pytest.approx(p[range(len(own)), own], abs=1e-5)
    assert shown["own"][0] == pieces(own[:1])[0].replace(" ", "␣")
    if seen.model.config.causal:
        assert shown["actual"][-1] is None and shown["own"][-1] is None
    values = np.linalg.norm(trace.stack("v")[:, 0].astype(np.float64), axis=-1)
    packed = seen.data["arrays"]["values"]
    assert abs(packing.unpack(packed) - values).max() <= packed["error"] + 1e-12
    for name, lengths in shown["rows"].items():
        wanted = np.linalg.norm(trace[name][0].astype(np.float64), axis=-1)
        assert lengths == pytest.approx(wanted, abs=5e-5), name
    assert ("pos_embed" in shown["rows"]) == (seen.model.weights.W_pos is not None)
    stream = np.linalg.norm(trace["resid_post", 2][0].astype(np.float64), axis=-1)
    assert abs(packing.unpack(shown["stream"])[3] - stream).max() <= shown["stream"]["error"] + 1e-6


def test_normalising_changes_no_attention_and_makes_the_correlation_no_worse(seen):
    trace = minitx.run(seen.model, seen.tokens, keep=["q", "k", "pattern"])
    q, k = (trace.stack(name)[:, 0].astype(np.float64) for name in "qk")
    look = attention.of_text(seen.model, seen.tokens)
    moves, (before, after) = explore.normalising(q, k, look.sees)
    after_q, after_k = joint.normalised(q, k, **moves)
    moved = explore.change(look, moves)
    assert 0 < moved < 1e-12 and seen.data["moved"] == moved
    assert np.abs(after_k - k).max() > 0.1  # they did move
    sees = profiles.visible(len(seen.tokens), seen.model.config.causal)
    for layer in range(len(q)):
        scale = seen.model.config.attn_scale(layer)
        pattern = joint.attention(after_q[layer], after_k[layer], scale, sees)
        # float32 of the model: measured 1e-6
        assert abs(pattern - trace["pattern", layer][0]).max() < 1e-5
    means = q.mean(2), k.mean(2)
    sums = joint.scan(q, k, means, sees * 1.0, sees, explore.DISTANCE, explore.PRODUCTS)
    unscaled = joint.correlation(sums)[1:][joint.SCALES == 1][0]
    assert (after <= unscaled + 1e-12).all()
    assert (after <= before + 1e-12).all() and np.isin(moves["c"], joint.SCALES).all()


def test_what_lies_in_a_plane_is_drawn_true_to_scale(monkeypatch):
    monkeypatch.setattr(explore, "DISTANCE", "euclidean")
    draw = np.random.default_rng(3)
    flat = draw.standard_normal((1, 2, 2, 7, 2))
    axes, _ = np.linalg.qr(draw.standard_normal((9, 2)))
    q, k = (flat[:, :, side] @ axes.T + 4 for side in (0, 1))  # [L H T d]
    places, share = explore.planes([(q, k), (q, k)])
    for head in (0, 1):
        drawn = joint.distances(*np.split(places[0, head, 1], 2), "euclidean")
        true = joint.distances(q[0, head], k[0, head], "euclidean")
        assert abs(drawn - true).max() < 1e-12
    assert share.sum(axis=-1) == pytest.approx(np.ones((1, 2, 2)))


def test_each_head_has_its_figures_beside_chance(seen):
    """Shares counted query by query, by the angle, where more than one key is seen."""
    facts = {fact["means"]: fact["values"] for fact in seen.data["facts"]}
    cfg = seen.model.config
    assert all(len(values) == cfg.n_layers * cfg.n_heads for values in facts.values())
    assert "scale c" in facts
    T = len(seen.tokens)
    chance = np.mean([1 / n for n in range(2, T + 1)]) if cfg.causal else 1 / T
    values = facts[f"strongest key is the nearest (chance {chance:.0%})"]
    trace = minitx.run(seen.model, seen.tokens, keep=["q", "k", "pattern"])
    for layer, head in ((0, 2), (1, 2), (3, 0)):
        share = share_of_nearest(trace, layer, head, cfg.causal)
        assert values[layer * cfg.n_heads + head].startswith(f"{share:.0%} → ")


def share_of_nearest(trace, layer, head, causal):
    """Share of a head's queries whose strongest key is the nearest by angle, one by one."""
    names = "q", "k", "pattern"
    q, k, pattern = (trace[name, layer][0, head].astype(float) for name in names)
    cosines = q @ k.T / np.linalg.norm(q, axis=1)[:, None] / np.linalg.norm(k, axis=1)
    T = len(q)
    hits = []
    for i in range(T):
        n = i + 1 if causal else T
        if n > 1:
            hits.append(cosines[i, :n].argmax() == pattern[i].argmax())
    return np.mean(hits)


def test_checks_in_a_browser_end_at_once_where_there_is_none():
    """They neither pass nor are skipped; they need nothing that make test would not have."""
    environment = os.environ | {"PATH": "", "PYTHONPATH": str(ROOT)}
    environment.pop("BROWSER", None)
    command = [sys.executable, "-m", "pytest", str(ROOT / "tests/pages/checks.py")]
    process = subprocess.run(
        command, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=200, check=False
    )
    assert process.returncode == 4  # nothing could be collected
    assert "no browser found: looked for $BROWSER" in process.stdout + process.stderr
    assert "passed" not in process.stdout


def test_uniform_attention_is_the_profiles_null(seen):
    T = len(seen.tokens)
    uniform = np.array(seen.data["uniform"])
    if seen.model.config.causal:
        assert (uniform[11:] == 0).all()
        assert uniform[10] == pytest.approx(sum(1 / n for n in range(1, T + 1)) / T)
    else:
        assert uniform == pytest.approx(np.full(21, 1 / T))


def test_words_instead_of_pieces():
    model = minitx.load("tiny-bert")
    tokens = explore.readable(model, SENTENCE)
    pieces, words = (explore.data(model, "m", SENTENCE, tokens, merged) for merged in (False, True))
    assert " ".join(words["labels"]) == "[CLS] the brown capybara is sleeping now . [SEP]"
    whole = packing.unpack(words["arrays"]["pattern"])
    parts = packing.unpack(pieces["arrays"]["pattern"])
    assert abs(whole.sum(axis=-1) - 1).max() < 1e-4
    begin = {label: pieces["labels"].index(label) for label in ("br", "ca", "is")}
    brown = slice(begin["br"], begin["ca"])
    capybara = slice(begin["ca"], begin["is"])
    # sum over keys, mean over queries
    expected = parts[:, :, brown, capybara].sum(axis=-1).mean(axis=-1)
    assert abs(whole[:, :, 2, 3] - expected).max() < 1e-4
    assert words["unit"] == "word" and 0 < words["moved"] < 1e-12


def test_the_figures_of_words_are_those_of_words():
    """What the page says of each head beside what the experiment gives of the same words."""
    model = minitx.load("tiny-bert")
    tokens = explore.readable(model, SENTENCE)
    facts = explore.data(model, "m", SENTENCE, tokens, words=True)["facts"]
    result = analysis.EXPERIMENTS["joint-space"].run(model, sentence=SENTENCE, words=True)
    forms = {"correlation": "{:.2f} → {:.2f}", "first": "{:.0%} → {:.0%}"}
    for fact, (name, form) in zip(facts, forms.items()):
        pairs = zip(result[f"{name}_before"].ravel(), result[name].ravel())
        assert fact["values"] == [form.format(*pair).replace("-", "−") for pair in pairs]
    assert facts[3]["values"] == [joint.format_scale(c) for c in result["c"].ravel()]


HOSTILE = (
    "</script><script>alert(1)</script> <!-- {{data}} & \"quoted\" 'too' \u2028 "
    "<b>bold</b> ]]> \\u003c"
)


def test_a_hostile_text_stays_text(seen):
    tokens = explore.readable(seen.model, HOSTILE)
    page = explore.page(explore.data(seen.model, "<i>model</i>", HOSTILE, tokens))
    plain, hostile = Elements(seen.page), Elements(page)
    assert [tag for tag, _, _ in plain.elements] == [tag for tag, _, _ in hostile.elements]
    data = page_data(page)
    assert data["text"] == HOSTILE and data["model"] == "<i>model</i>"
    assert hostile.all("title")[0][2] == f"<i>model</i>: {HOSTILE[:60]}…"
    assert plain.all("script")[-1] == hostile.all("script")[-1]


def test_a_second_text_stands_beside_the_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = "A small bird sings."
    assert cli.main(["explore", "tiny-gpt2", SENTENCE, "--beside", other]) == 0
    page = (tmp_path / "out/tiny-gpt2-explore/explore.html").read_text(encoding="utf-8")
    runs = Elements(page).data["runs"]
    assert [run["text"] for run in runs] == [run["name"] for run in runs] == [SENTENCE, other]
    model = minitx.load("tiny-gpt2")
    tokens = explore.readable(model, other)
    second = explore.data(model, "tiny-gpt2", other, tokens)
    second = json.loads(json.dumps(explore.with_writers(second, model, tokens)))
    assert runs[1] == second | {"name": other}
    assert minitx.explore(model, SENTENCE, beside=other).html == page
    assert Elements(page).data["live"] is None


def test_a_second_model_stands_beside_the_first():
    page = minitx.explore("tiny-gpt2", SENTENCE, beside_model="tiny-roberta").html
    assert [run["name"] for run in Elements(page).data["runs"]] == ["tiny-gpt2", "tiny-roberta"]
    page = minitx.explore("tiny-gpt2", SENTENCE, beside_model="tiny-gpt2").html
    names = [run["name"] for run in Elements(page).data["runs"]]
    assert names == ["tiny-gpt2 (1)", "tiny-gpt2 (2)"]  # nothing tells them apart


def test_a_second_text_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(explore, "data", lambda *_: pytest.fail("the work had begun"))
    with pytest.raises(ValueError, match="the text ' the' has 1 token"):
        minitx.explore("tiny-gpt2", SENTENCE, beside=" the")
    with pytest.raises(ValueError, match="the text is 3; wanted a str"):
        minitx.explore("tiny-gpt2", SENTENCE, beside=3)


def test_a_changed_run_is_that_of_the_changed_model(seen):
    edits = {"pos_embed": np.zeros_like}
    changed = explore.data(seen.model, "m", SENTENCE, seen.tokens, edits=edits)
    trace = minitx.run(seen.model, seen.tokens, ["pattern", "k"], edits)
    pattern = trace.stack("pattern")[:, 0]
    assert abs(packing.unpack(changed["arrays"]["pattern"]) - pattern).max() < 1e-5
    assert abs(packing.unpack(seen.data["arrays"]["pattern"]) - pattern).max() > 0.1
    assert changed["moved"] < 1e-12  # normalising keeps the changed attention


def test_uniform_attention_keeps_to_what_a_mask_leaves(seen):
    """Within one place: a third to each neighbour, half at the ends."""

    def mask(q, k):
        return abs(q - k) < 2

    changed = explore.data(seen.model, "m", SENTENCE, seen.tokens, mask=mask)
    middle = (len(changed["uniform"]) - 1) // 2
    uniform = changed["uniform"][middle - 2 : middle + 1]
    T = len(seen.tokens)
    if seen.model.config.causal:
        wanted = [0, 1 / 2, (1 + (T - 1) / 2) / T]
    else:
        wanted = [0, ((T - 2) / 3 + 1 / 2) / (T - 1), ((T - 2) / 3 + 1) / T]
    assert uniform == pytest.approx(wanted)


def test_axes_of_a_layer_are_computed_once_and_forgotten_with_it(monkeypatch):
    model = minitx.load("tiny-gpt2")
    layer = model.layers[0]
    first = explore.axes(model, layer)
    monkeypatch.setattr(factors, "svd", lambda *_: pytest.fail("computed again"))
    assert explore.axes(model, layer) is first
    monkeypatch.undo()
    turned = type(layer)(**vars(layer) | {"W_K": layer.W_K[::-1].copy()})
    assert not np.array_equal(explore.axes(model, turned)[2], first[2])
    W_Q = layer.W_Q.copy()
    fresh = type(layer)(**vars(layer) | {"W_Q": W_Q})
    explore.axes(model, fresh)
    count = len(explore._AXES)
    del fresh, W_Q
    assert len(explore._AXES) == count - 1


def test_more_tokens_than_a_page_shows(bundled, monkeypatch):
    assert explore.most_tokens(bundled.config) == explore.MOST == 512
    base = replace(bundled.config, n_layers=12, n_heads=12)
    assert explore.most_tokens(base) == 235  # 144 heads of 235 x 235 weights: 21 MB
    monkeypatch.setattr(explore, "MOST", 20)
    message = "has 40 tokens, special ones included; the page shows at most 20"
    with pytest.raises(ValueError, match=message):
        explore.readable(bundled, "a" + " a" * 37)


def test_the_same_text_gives_the_same_bytes(tmp_path):
    model = minitx.load("tiny-gpt2")
    sizes = [explore.write(model, "tiny-gpt2", SENTENCE, tmp_path / name) for name in "ab"]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sizes[0] == (tmp_path / "a").stat().st_size


def test_the_command_writes_one_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["explore", "tiny-gpt2", SENTENCE]) == 0
    path = tmp_path / "out/tiny-gpt2-explore/explore.html"
    assert [path] == list(path.parent.iterdir())
    assert page_data(path.read_text(encoding="utf-8"))["text"] == SENTENCE
    assert f"{path.stat().st_size / 1e6:.2f} MB" in capsys.readouterr().out
    assert cli.main(["explore", "tiny-gpt2", SENTENCE, "--words", "--out", "elsewhere"]) == 0
    page = (tmp_path / "elsewhere/explore.html").read_text(encoding="utf-8")
    assert page_data(page)["unit"] == "word"


@pytest.mark.parametrize(
    "text, message",
    [
        ("now", "has 1 token, not counting special ones; wanted 2 or more"),
        ("", "has 0 tokens, not counting special ones"),
        (
            "now " * 400,
            r"the text has \d+ tokens, special ones included; this model reads at most 256",
        ),
        ("now \udcff", r"not valid UTF-8: '\\udcff' at character 4"),
    ],
)
def test_a_text_that_makes_no_page(text, message):
    with pytest.raises(ValueError, match=message):
        explore.readable(minitx.load("tiny-bert"), text)


def test_a_short_model_and_half_a_checkpoint_are_refused_before_any_work(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(explore, "data", lambda *_: pytest.fail("the work had begun"))
    short = minitx.load(gpt2(tmp_path / "short"))
    message = "has 40 tokens, special ones included; this model reads at most 32"
    with pytest.raises(ValueError, match=message):
        explore.write(short, "short", "a" + " a" * 39, tmp_path / "page.html")
    part = replace(short, missing=("wte.weight",))
    message = "explore needs the whole model; 1 tensors are missing, wte.weight"
    with pytest.raises(ValueError, match=message):
        explore.write(part, "part", SENTENCE, tmp_path / "page.html")
    (tmp_path / "short/tokenizer.json").unlink()
    command = ["explore", str(tmp_path / "short"), SENTENCE, "--out", str(tmp_path / "out")]
    assert cli.main(command) == 2
    assert "no tokenizer in" in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.html"))
    shutil.rmtree(tmp_path / "short")
    assert cli.main(["explore", str(tmp_path / "short"), SENTENCE]) == 2


# an encoder-decoder


@pytest.fixture(scope="module", params=encoder_decoders.MAKERS)
def pair(request, tmp_path_factory):
    """A random encoder-decoder, what it says of the sentence, and the data of the page."""
    folder = encoder_decoders.MAKERS[request.param](tmp_path_factory.mktemp(request.param))
    model = minitx.load(folder)
    said = explore.readable(model, SENTENCE, "The dog ran")
    return SimpleNamespace(model=model, said=said, data=explore.data(model, "m", SENTENCE, said))


def test_every_part_of_an_encoder_decoder_is_what_the_model_computes(pair):
    names = {"encoder": "enc_pattern", "decoder": "pattern", "cross": "cross_pattern"}
    trace = minitx.run(pair.model, pair.said.inputs, [*names.values()], source=pair.said.source)
    assert [*pair.data["parts"]] == [*names]
    for part, point in names.items():
        shown = pair.data["parts"][part]
        pattern = packing.unpack(shown["arrays"]["pattern"])
        wanted = trace.stack(point)[:, 0]
        assert pattern.shape == wanted.shape
        assert abs(pattern - wanted).max() < 1e-5  # 7.6e-6 by rounding to 16 bits
        assert shown["layers"] == len(wanted) and 0 <= shown["moved"] < 1e-12
        assert len(shown["facts"]) == 4 and shown["causal"] == (part == "decoder")


def test_rows_of_cross_attention_are_the_targets_and_columns_the_sources(pair):
    pieces = pair.model.tokenizer.pieces
    target, source = ([x.replace(" ", "␣") for x in pieces(ids)] for ids in pair.said[1::-1])
    cross, decoder = pair.data["parts"]["cross"], pair.data["parts"]["decoder"]
    assert (cross["labels"], cross["keys"]) == (target, source)
    assert decoder["labels"] == target and "keys" not in decoder
    assert "uniform" not in cross and "profile" not in cross["arrays"]
    assert len(decoder["uniform"]) == 2 * (len(target) - 1) + 1


def test_columns_of_cross_attention_are_of_both_streams(pair):
    """q without its bias, turned as U_Q turns it, has the norms of X U_Q."""
    look = attention.of_cross(pair.model, pair.said)
    w, d = pair.model.layers[1].cross, pair.model.config.d_head
    for x, W, b, wanted in (
        (look.X_q[1], w.W_Q, w.b_Q, look.q[1, 2]),
        (look.X_k[1], w.W_K, w.b_K, look.k[1, 2]),
    ):
        projected = x @ W + (0 if b is None else b)
        assert abs(projected[:, 2 * d :] - wanted).max() < 1e-4  # float32 of the model
    U_Q, _, U_K = factors.svd(*(W[:, 2 * d :].astype(float) for W in (w.W_Q, w.W_K)))
    columns = packing.unpack(pair.data["parts"]["cross"]["arrays"]["columns"])[1, 2]
    wanted = np.concatenate([look.X_q[1] @ U_Q, look.X_k[1] @ U_K])[:, : explore.COLUMNS]
    assert abs(columns - wanted).max() < 2e-3


def test_words_of_two_texts_are_merged_each_by_itself(pair):
    words = explore.data(pair.model, "m", SENTENCE, pair.said, words=True)["parts"]["cross"]
    whole = packing.unpack(words["arrays"]["pattern"])
    assert whole.shape[-2:] == (len(words["labels"]), len(words["keys"]))
    assert "capybara" in words["keys"] and "capybara" not in words["labels"]
    assert abs(whole.sum(axis=-1) - 1).max() < 1e-4


def test_the_page_has_a_choice_of_parts(pair):
    page = explore.page(pair.data)
    assert page_data(page)["parts"].keys() == {"encoder", "decoder", "cross"}
    assert page_data(page) == json.loads(json.dumps({"name": "as is"} | pair.data))
    assert len(page.encode()) < 1e6  # 0.7 MB, of which the library is 0.5


def test_what_is_said_of_a_source_may_be_given_or_is_the_models_own(pair, bundled, capsys):
    own = explore.readable(pair.model, SENTENCE)
    row = minitx.generate(pair.model, n=len(own.outputs), source=own.source)
    assert np.array_equal(np.append(own.inputs, own.outputs[-1]), row)
    page = minitx.explore(pair.model, SENTENCE, target="The dog ran")
    whole = explore.with_writers(
        pair.data, pair.model, explore.readable(pair.model, SENTENCE, "The dog ran")
    )
    assert page_data(page.html)["parts"] == json.loads(json.dumps(whole["parts"]))
    with pytest.raises(ValueError, match="target is 'a dog', but this model .roberta. has a"):
        explore.readable(bundled, SENTENCE, "a dog")
    with pytest.raises(ValueError, match="target is 'a{79}, but"):
        explore.readable(bundled, SENTENCE, "a" * 999)
    with pytest.raises(ValueError, match="this model reads at most 64"):
        explore.readable(pair.model, SENTENCE, "now " * 99)
    folder = str(pair.model.tokenizer.folder)
    given = ["trace", folder, "The dog ran", "--source", SENTENCE, "--keep", "cross_pattern"]
    assert cli.main(given) == 0
    out = capsys.readouterr().out
    assert " tokens of the source: " in out and " 1 3 7 18 " in out


# a picture


@pytest.fixture(scope="module")
def pictured():
    """tiny-vit, the tokens of a drawn picture, and the data of the page."""
    model = minitx.load("tiny-vit")
    tokens = explore.readable(model, "sample:3")
    data = explore.data(model, "tiny-vit", "sample:3", tokens)
    return SimpleNamespace(model=model, tokens=tokens, data=data)


def test_a_page_of_a_picture_has_its_patches_its_pixels_and_its_classes(pictured):
    drawn, classes = shapes.draw(1, seed=3)
    shown, outputs = pictured.data["picture"], pictured.data["outputs"]
    assert (shown["rows"], shown["columns"], shown["first"]) == (8, 8, 1)
    pixels = np.frombuffer(base64.b64decode(shown["pixels"]), np.uint8)
    assert np.array_equal(pixels.reshape(32, 32, 3), drawn[0])  # as the generator made it
    assert pictured.data["labels"][:3] == ["cls", "0,0", "0,1"] == outputs["labels"][:3]
    assert outputs["names"] == [*shapes.CLASSES]
    assert outputs["names"][np.argmax(outputs["classes"])] == shapes.CLASSES[classes[0]]
    trace = minitx.run(pictured.model, pictured.tokens, ["pattern", "logits"])
    pattern = packing.unpack(pictured.data["arrays"]["pattern"])
    assert abs(pattern - trace.stack("pattern")[:, 0]).max() < 1e-5
    p = softmax(trace["logits"][0].astype(float))
    assert outputs["classes"] == pytest.approx(p, abs=2e-5)


def test_what_makes_no_sense_of_pictures_is_left_out(pictured):
    """Guesses of words, distances in a line, kinds of heads that random words tell."""
    assert not {"guesses", "lens", "pieces"} & pictured.data["outputs"].keys()
    assert "uniform" not in pictured.data and "profile" not in pictured.data["arrays"]
    whole = explore.with_writers(pictured.data, pictured.model, pictured.tokens)
    assert whole["kinds"] == {"": None} and whole["outputs"]["written"] is None


def test_a_picture_in_a_file_is_shown_as_the_model_reads_it(tmp_path, pictured):
    image = pytest.importorskip("PIL.Image")
    drawn, _ = shapes.draw(1, seed=3)
    path = str(tmp_path / "picture.png")
    image.fromarray(drawn[0]).save(path)
    assert np.array_equal(explore.readable(pictured.model, path), pictured.tokens)
    image.fromarray(drawn[0]).resize((70, 50)).save(path)
    facts = explore.data(pictured.model, "m", path, explore.readable(pictured.model, path))
    assert (facts["picture"]["height"], facts["picture"]["width"]) == (32, 32)


@pytest.mark.parametrize(
    "given, message",
    [
        (["tiny-vit", "sample", "--words"], "words need a text; tiny-vit reads pictures"),
        (["tiny-vit", "sample", "--target", "a"], "this model (vit) has a single stack"),
        (["tiny-vit", "sample", "--attribution"], "predicts words or classes"),
        (["tiny-vit", "sample", "--beside-model", "tiny-bert"], "wanted two models that read the"),
        (["tiny-vit", "no-such-file.png"], "no-such-file.png"),
    ],
)
def test_what_a_page_of_a_picture_refuses_in_one_line(given, message, tmp_path, capsys):
    assert cli.main(["explore", *given, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and "\n" not in said
    assert not [*tmp_path.iterdir()]


def test_two_pictures_stand_side_by_side():
    runs = Elements(minitx.explore("tiny-vit", "sample", beside="sample:1").html).data["runs"]
    assert [run["name"] for run in runs] == ["sample", "sample:1"]
    assert runs[0]["picture"]["pixels"] != runs[1]["picture"]["pixels"]


# two texts that a model reads together

PAIR = "The cat sat on the mat.", "The cat lay on the rug."


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-roberta", "tiny-gpt2"])
def test_a_pair_is_read_as_the_model_reads_it(name):
    model = minitx.load(name)
    said = explore.readable(model, PAIR)
    trace = minitx.run(model, [PAIR], "pattern")
    assert said.ids.tolist() == trace.tokens[0].tolist()
    data = explore.data(model, name, PAIR, said)
    weights = as_packed(data["arrays"], trace.stack("pattern")[:, 0])
    second = data["second"]["query"]
    assert data["second"]["key"] == second and data["text"] == " / ".join(PAIR)
    own = model.tokenizer.encode(PAIR[1], special=False)
    assert said.ids[second : second + len(own)].tolist() == own.tolist()
    if name == "tiny-bert":
        assert said.types.tolist() == [int(n >= second) for n in range(len(said.ids))]
        plain = explore.attention.of_text(model, said.ids).pattern
        assert abs(plain - weights).max() > 0.04  # with type 0 throughout, as of a typed [SEP]


def as_packed(arrays, pattern):
    """A page's weights, which are those of a pattern as far as they are rounded."""
    packed = arrays["pattern"]
    weights = packing.unpack(packed)
    assert abs(weights - pattern).max() <= packed["error"] + 1e-6
    return weights


def test_the_parts_of_a_guess_on_a_pair_have_its_types():
    model = minitx.load("tiny-bert")
    [run] = explore.runs([(model, "m", PAIR)], attribution=True)
    trace = minitx.run(model, [PAIR], "logits")
    best = trace["logits"][0].max(axis=-1)
    written = run["outputs"]["written"]
    logits, error = written["logits"], written["logits"]["error"]
    assert np.allclose(logits["high"], best, atol=error + 1e-4)
    assert max(run["outputs"]["pushes"]["gap"]) < 1e-3
    without_types = trace["logits"][0] - minitx.run(model, trace.tokens, "logits")["logits"][0]
    assert abs(without_types).max() > 0.1


def test_a_word_does_not_go_on_in_the_second_text():
    model = minitx.load("tiny-gpt2")
    pair = "The cat", "nip grew"
    data = explore.data(model, "m", pair, explore.readable(model, pair), words=True)
    assert data["labels"] == ["The", "cat", "nip", "grew"]
    assert data["second"] == {"query": 2, "key": 2}


def test_a_source_of_two_texts_has_a_border_in_encoder_and_cross(pair):
    said = explore.readable(pair.model, ("3 May 1912", "4 May"))
    parts = explore.data(pair.model, "m", ("3 May 1912", "4 May"), said)["parts"]
    second = parts["encoder"]["second"]["query"]
    assert parts["cross"]["second"] == {"query": None, "key": second}
    assert "second" not in parts["decoder"]
    trace = minitx.run(pair.model, said.inputs, "enc_pattern", source=[("3 May 1912", "4 May")])
    as_packed(parts["encoder"]["arrays"], trace.stack("enc_pattern")[:, 0])


def test_what_is_no_pair_is_refused(bundled):
    with pytest.raises(ValueError, match="text 1 of the pair, '', has no tokens"):
        explore.readable(bundled, ("A dog ran", ""))
    with pytest.raises(ValueError, match="a second text needs a model that reads texts"):
        explore.readable(minitx.load("tiny-vit"), ("sample:7", "A dog"))
    with pytest.raises(ValueError, match="wanted a str, or a tuple of two"):
        minitx.explore(bundled, ("a", "b", "c"))


def test_a_page_in_a_notebook_takes_a_pair(tmp_path):
    own = minitx.explore("tiny-bert", PAIR)
    flags = ["--second", PAIR[1], "--out", str(tmp_path)]
    assert cli.main(["explore", "tiny-bert", PAIR[0], *flags]) == 0
    assert own.html.encode() == (tmp_path / "explore.html").read_bytes()
    assert "The cat sat on the mat. / The cat lay" in repr(own)


def test_a_japanese_page_holds_every_text_that_its_program_says():
    """Two were missing: `say` of a template without fields."""
    texts = {text for text in strings.of_javascript() if text in language.catalogue("ja").known}
    files = [path for path in strings.PAGES.glob("*.js") if ".min." not in path.name]
    program = "".join(assets.script(path.read_text(encoding="utf-8")) for path in files)
    with language.using("ja"):
        held = explore.translations(program)
    assert len(texts) > 600 and not texts - {*held}


def test_a_text_is_cut_to_the_longest_beginning_that_fits():
    model = minitx.load("tiny-gpt2")
    words = "The old man told his wife that he had found the house. " * 30
    text = explore.cut(model, words)
    n, longer = len(model.tokenizer.encode(text)), words[: words.index(" ", len(text) + 1)]
    assert words.startswith(text) and n <= 256 < len(model.tokenizer.encode(longer))
    assert 0 < len(model.tokenizer.encode(explore.cut(model, "x7" * 2000))) <= 256  # no blank
