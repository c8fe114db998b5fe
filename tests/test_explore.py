"""The page of `minitx explore`, without a browser: what stands in it, how exact it is, and what it refuses.

tests/page/ opens it in one (make test-page).
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from analysis_models import gpt2

import minitx
import weights
from analysis import __main__ as cli
from analysis import explore, factors, inputs, joint, profiles, registry

SENTENCE = "The brown capybara is sleeping now."


@pytest.fixture(scope="module", params=["tiny-bert", "tiny-gpt2"])
def seen(request):
    """A model, its tokens, what the page is told, and the page."""
    model = minitx.load(weights.find(request.param))
    tokens = explore.readable(model, SENTENCE)
    found = explore.data(model, request.param, SENTENCE, tokens)
    return SimpleNamespace(model=model, tokens=tokens, data=found, page=explore.page(found))


class Elements(HTMLParser):
    """(tag, attributes, text inside) of every element, as a browser would find them."""

    def __init__(self, page):
        super().__init__()
        self.found, self._inside = [], False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append([tag, dict(attributes), ""])
        self._inside = True

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, text):
        if self._inside:
            self.found[-1][2] += text

    def all(self, tag):
        return [element for element in self.found if element[0] == tag]


def told(page):
    """The data that a page's program reads."""
    return json.loads(next(text for _, attributes, text in Elements(page).all("script")
                           if attributes.get("id") == "data"))


def test_nothing_outside_the_page_is_named_or_allowed(seen):
    elements = Elements(seen.page)
    first = next(attributes for tag, attributes, _ in elements.found if "http-equiv" in attributes)
    assert first["http-equiv"] == "Content-Security-Policy" and first["content"].startswith("default-src 'none'")
    assert not re.search(r"https?:|\*|connect-src|'self'", first["content"])
    for tag, attributes, _ in elements.found:
        for name in ("src", "href", "srcset", "data", "action", "poster", "background"):
            assert attributes.get(name, "data:").startswith("data:"), (tag, attributes)
    program, style = "".join(text for _, _, text in elements.all("script")[3:]), elements.all("style")[0][2]
    for file in ("data.js", "views.js", "explore.js"):
        assert (explore.PAGE / file).read_text(encoding="utf-8") in program
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|import[ (]|sendBeacon|EventSource|localStorage", program)
    assert not re.search(r"@import|url\(", style)


def test_the_library_is_the_published_one_with_its_licences(seen):
    sources = (explore.PAGE / "SOURCES.md").read_text(encoding="utf-8")
    scripts = [text for _, _, text in Elements(seen.page).all("script")]
    for file, digest in re.findall(r"^\| `(\S+?)` .* `([0-9a-f]{64})` \|$", sources, re.M):
        content = (explore.PAGE / file).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
        assert content.decode() in scripts
    licences = Elements(seen.page).all("pre")[0][2]
    for holder in ("Observable, Inc.", "Mike Bostock", "Mikola Lysenko", "Robert Penner", "Charles Karney", "Mapbox"):
        assert holder in licences


def test_the_files_of_the_page_are_shipped():
    setup = (explore.PAGE.parents[1] / "setup.cfg").read_text(encoding="utf-8")
    assert re.search(r"^analysis = .*\bpage/\*", setup, re.M)


def test_numbers_come_back_within_the_error_that_the_page_states(seen):
    """Half a step of 16 bits: measured 0.5 to 1.0 of what is stated; 1e-12 for the float64 of the way back."""
    word = np.arange(len(seen.tokens))
    arrays, _, _ = explore.measured(seen.model, seen.tokens, word)
    for name, (x, _) in arrays.items():
        packed = told(seen.page)["arrays"][name]
        assert packed == seen.data["arrays"][name]
        off = abs(explore.unpack(packed) - x).max()
        assert off <= packed["error"] + 1e-12 and packed["error"] <= np.ptp(x) / 131070 + 1e-15, name
        assert explore.unpack(packed).shape == x.shape
    assert seen.data["arrays"]["pattern"]["error"] <= 1 / 131070


def test_one_head_beyond_all_others_does_not_blur_them():
    """Each head has steps of its own."""
    x = np.random.default_rng(0).standard_normal((2, 3, 5)) * np.array([1, 1, 1e6])[:, None]
    off = abs(explore.unpack(explore.pack(x, 2)) - x)
    assert off[:, :2].max() < 1e-4 < off[:, 2].max()
    assert np.array_equal(explore.unpack(explore.pack(np.full((2, 3, 4), 7.5), 2)), np.full((2, 3, 4), 7.5))


def test_what_is_told_is_what_the_model_computes(seen):
    cfg, T = seen.model.config, len(seen.tokens)
    trace = minitx.run(seen.model, seen.tokens, keep=["pattern", "q", "k"])
    found = {name: explore.unpack(packed) for name, packed in seen.data["arrays"].items()}
    pattern = trace.stack("pattern")[:, 0]
    assert found["pattern"].shape == (cfg.n_layers, cfg.n_heads, T, T)
    assert abs(found["pattern"] - pattern).max() < 1e-5  # 7.6e-6 by rounding to 16 bits
    assert abs(found["profile"] - profiles.mean_attention(profiles.profile(pattern), T)).max() < 1e-5
    X = inputs.of_text(seen.model, seen.tokens)
    U_Q, S, U_K = factors.svd(*inputs.query_key(seen.model, 2, 1))
    for side, U in enumerate((U_Q, U_K)):
        off = found["columns"][2, 1, side] - X[2] @ U[:, :explore.COLUMNS]
        assert abs(off).max() < 1e-3  # 6e-5 by rounding, the rest by float32 in the SVD; columns reach 5
    assert found["weight"][2, 1] == pytest.approx((S * S / (S * S).sum())[:explore.COLUMNS], abs=1e-4)
    assert len(seen.data["labels"]) == T and seen.data["causal"] == cfg.causal


def test_normalising_changes_no_attention_and_makes_the_correlation_no_worse(seen):
    trace = minitx.run(seen.model, seen.tokens, keep=["q", "k", "pattern"])
    q, k = (trace.stack(name)[:, 0].astype(np.float64) for name in "qk")
    moves, (before, after) = explore.normalising(seen.model, q, k)
    (after_q, after_k), moved = joint.normalised(q, k, **moves), explore.change(seen.model, q, k, moves)
    assert 0 < moved < 1e-12 and seen.data["moved"] == moved
    assert np.abs(after_k - k).max() > 0.1  # they did move
    sees = explore.seen(seen.model, len(seen.tokens))
    for layer in range(len(q)):
        again = joint.attention(after_q[layer], after_k[layer], seen.model.config.attn_scale(layer), sees)
        assert abs(again - trace["pattern", layer][0]).max() < 1e-5  # float32 of the model: measured 1e-6
    one = joint.scan(q, k, (q.mean(2), k.mean(2)), sees * 1.0, sees, explore.DISTANCE, explore.PRODUCTS)
    assert (after <= joint.correlation(one)[1 + np.flatnonzero(joint.SCALES == 1)[0]] + 1e-12).all()
    assert (after <= before + 1e-12).all() and np.isin(moves["c"], joint.SCALES).all()


def test_what_lies_in_a_plane_is_drawn_true_to_scale(monkeypatch):
    monkeypatch.setattr(explore, "DISTANCE", "euclidean")
    draw = np.random.default_rng(3)
    flat, (axes, _) = draw.standard_normal((1, 2, 2, 7, 2)), np.linalg.qr(draw.standard_normal((9, 2)))
    q, k = (flat[:, :, side] @ axes.T + 4 for side in (0, 1))  # [L H T d]
    places, share = explore.planes([(q, k), (q, k)])
    for head in (0, 1):
        drawn = joint.distances(places[0, head, 1, 0], places[0, head, 1, 1], "euclidean")
        assert abs(drawn - joint.distances(q[0, head], k[0, head], "euclidean")).max() < 1e-12
    assert share.sum(axis=-1) == pytest.approx(np.ones((1, 2, 2)))


def test_each_head_has_its_figures_beside_chance(seen):
    """Shares counted query by query, by the angle, where more than one key is seen."""
    facts, cfg = {fact["means"]: fact["values"] for fact in seen.data["facts"]}, seen.model.config
    assert all(len(values) == cfg.n_layers * cfg.n_heads for values in facts.values()) and "scale c" in facts
    T = len(seen.tokens)
    chance = np.mean([1 / n for n in range(2, T + 1)]) if cfg.causal else 1 / T
    values = facts[f"strongest key is the nearest (chance {chance:.0%})"]
    trace = minitx.run(seen.model, seen.tokens, keep=["q", "k", "pattern"])
    for layer, head in ((0, 2), (1, 2), (3, 0)):
        q, k, pattern = (trace[name, layer][0, head].astype(float) for name in ("q", "k", "pattern"))
        angles = q @ k.T / np.linalg.norm(q, axis=1)[:, None] / np.linalg.norm(k, axis=1)
        hits = [angles[i, :n].argmax() == pattern[i].argmax() for i in range(T)
                if (n := i + 1 if cfg.causal else T) > 1]
        assert values[layer * cfg.n_heads + head].startswith(f"{np.mean(hits):.0%} → ")


def test_checks_in_a_browser_end_at_once_where_there_is_none():
    """They neither pass nor are skipped; they need nothing that make test would not have."""
    root = explore.PAGE.parents[1]
    environment = {name: value for name, value in os.environ.items() if name != "BROWSER"} | {"PATH": ""}
    done = subprocess.run([sys.executable, "-m", "pytest", str(root / "tests/page/checks.py")], cwd=root, text=True,
                          capture_output=True, timeout=200, env=environment | {"PYTHONPATH": str(root)})
    assert done.returncode == 3 and "no browser found: looked for $BROWSER" in done.stdout + done.stderr
    assert "passed" not in done.stdout


def test_uniform_attention_is_the_profiles_null(seen):
    T, uniform = len(seen.tokens), np.array(seen.data["uniform"])
    if seen.model.config.causal:
        assert (uniform[11:] == 0).all() and uniform[10] == pytest.approx(sum(1 / n for n in range(1, T + 1)) / T)
    else:
        assert uniform == pytest.approx(np.full(21, 1 / T))


def test_words_instead_of_pieces():
    model = minitx.load(weights.find("tiny-bert"))
    tokens = explore.readable(model, SENTENCE)
    pieces, words = (explore.data(model, "m", SENTENCE, tokens, merged) for merged in (False, True))
    assert words["labels"] == ["[CLS]", "the", "brown", "capybara", "is", "sleeping", "now", ".", "[SEP]"]
    whole, parts = (explore.unpack(one["arrays"]["pattern"]) for one in (words, pieces))
    assert abs(whole.sum(axis=-1) - 1).max() < 1e-4
    name = pieces["labels"]
    brown, capybara = slice(name.index("br"), name.index("ca")), slice(name.index("ca"), name.index("is"))
    expected = parts[:, :, brown, capybara].sum(axis=-1).mean(axis=-1)  # sum over keys, mean over queries
    assert abs(whole[:, :, 2, 3] - expected).max() < 1e-4
    assert words["unit"] == "word" and 0 < words["moved"] < 1e-12


def test_the_figures_of_words_are_those_of_words():
    """What the page says of each head beside what the experiment gives of the same words."""
    model = minitx.load(weights.find("tiny-bert"))
    facts = explore.data(model, "m", SENTENCE, explore.readable(model, SENTENCE), words=True)["facts"]
    found = registry.get("joint-space").run(model, sentence=SENTENCE, words=1)
    for fact, before, after in ((facts[0], "correlation_before", "correlation"), (facts[1], "first_before", "first")):
        form = "{:.2f} → {:.2f}" if "correlation" in before else "{:.0%} → {:.0%}"
        assert fact["values"] == [form.format(*pair).replace("-", "−") for pair in zip(
            found[before].ravel(), found[after].ravel())]
    assert facts[3]["values"] == [joint.told(c) for c in found["c"].ravel()]


HOSTILE = "</script><script>alert(1)</script> <!-- {{data}} & \"quoted\" 'too' \u2028 <b>bold</b> ]]> \\u003c"


def test_a_hostile_text_stays_text(seen):
    found = explore.data(seen.model, "<i>model</i>", HOSTILE, explore.readable(seen.model, HOSTILE))
    page = explore.page(found)
    plain, hostile = Elements(seen.page), Elements(page)
    assert [tag for tag, _, _ in plain.found] == [tag for tag, _, _ in hostile.found]
    assert told(page)["text"] == HOSTILE and told(page)["model"] == "<i>model</i>"
    assert hostile.all("title")[0][2] == f"<i>model</i>: {HOSTILE[:60]}"
    assert plain.all("script")[-1] == hostile.all("script")[-1]


def test_a_page_of_real_size_is_below_5_MB(monkeypatch):
    """12 x 12 heads and 64 tokens; the width of a head does not enter. Measured 2.55 MB."""
    monkeypatch.setattr(joint, "SCALES", np.ones(1))  # the search is not what is measured
    model = minitx.load(weights.find("tiny-bert"))
    width = model.config.d_model  # 12 heads of as many columns as there are
    layer, cfg = model.layers[0], replace(model.config, n_layers=12, n_heads=12, d_model=width // 12 * 12)
    small = {name: x[tuple(slice(n // 12 * 12 if n == width else n) for n in x.shape)]
             for name, x in vars(layer).items() if isinstance(x, np.ndarray)}
    top = {name: x[..., :cfg.d_model] if x is not None and x.shape[-1] == width else x
           for name, x in vars(model.weights).items()}
    model = replace(model, config=cfg, weights=SimpleNamespace(**top),
                    layers=tuple(SimpleNamespace(**{**vars(layer), **small, "index": i}) for i in range(12)))
    tokens = np.random.default_rng(0).integers(0, cfg.n_vocab, 64)
    found = explore.data(model, "m", "text", tokens)
    assert found["arrays"]["pattern"]["shape"] == [12, 12, 64, 64]
    assert 2e6 < len(explore.page(found).encode()) < 3e6


def test_the_same_text_gives_the_same_bytes(tmp_path):
    model = minitx.load(weights.find("tiny-gpt2"))
    sizes = [explore.write(model, "tiny-gpt2", SENTENCE, tmp_path / name) for name in "ab"]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sizes[0] == (tmp_path / "a").stat().st_size


def test_the_command_writes_one_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["explore", "tiny-gpt2", SENTENCE]) == 0
    path = tmp_path / "out/tiny-gpt2-explore/explore.html"
    assert [path] == list(path.parent.iterdir()) and told(path.read_text(encoding="utf-8"))["text"] == SENTENCE
    assert f"{path.stat().st_size / 1e6:.2f} MB" in capsys.readouterr().out
    assert cli.main(["explore", "tiny-gpt2", SENTENCE, "--words", "--out", "elsewhere"]) == 0
    assert told((tmp_path / "elsewhere/explore.html").read_text(encoding="utf-8"))["unit"] == "word"


@pytest.mark.parametrize("text, message", [
    ("now", "has 1 token, special ones not counted; wanted 2 or more"), ("", "has 0 tokens, special ones"),
    ("now " * 200, r"the text has \d+ tokens, special ones included; the page shows at most 128"),
    ("now \udcff", r"not valid UTF-8: '\\udcff' at character 4")])
def test_a_text_that_makes_no_page(text, message):
    with pytest.raises(ValueError, match=message):
        explore.readable(minitx.load(weights.find("tiny-bert")), text)


def test_a_short_model_and_half_a_checkpoint_are_refused_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(explore, "data", lambda *_: pytest.fail("the work had begun"))
    short = minitx.load(gpt2(tmp_path / "short"))
    with pytest.raises(ValueError, match="has 40 tokens, special ones included; this model reads at most 32"):
        explore.write(short, "short", "a" + " a" * 39, tmp_path / "page.html")
    with pytest.raises(ValueError, match="explore needs the whole model; 1 tensors are missing, wte.weight"):
        explore.write(replace(short, missing=("wte.weight",)), "part", SENTENCE, tmp_path / "page.html")
    (tmp_path / "short/tokenizer.json").unlink()
    assert cli.main(["explore", str(tmp_path / "short"), SENTENCE, "--out", str(tmp_path / "out")]) == 2
    assert "no tokenizer in" in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.html"))
    shutil.rmtree(tmp_path / "short")
    assert cli.main(["explore", str(tmp_path / "short"), SENTENCE]) == 2
