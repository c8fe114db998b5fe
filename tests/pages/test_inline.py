"""`minitx.explore`: the page of `minitx explore` as an object that a notebook shows."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from elements import Elements

import minitx
from minitx.analysis import __main__ as cli
from minitx.analysis.pages import explore, inline

MODEL = "tiny-gpt2"
SENTENCE = "The brown capybara is sleeping now."
HOSTILE = "</iframe><script>alert(1)</script> \"'&quot; <b>bold</b>"


@pytest.fixture(scope="module")
def page(model):
    return minitx.explore(model, SENTENCE)


@pytest.mark.parametrize("words", [False, True])
def test_it_is_the_commands_page_to_the_byte(model, tmp_path, words):
    flags = ["--words"] if words else []
    out = str(tmp_path / "command")
    assert cli.main(["explore", "tiny-gpt2", SENTENCE, "--out", out, *flags]) == 0
    written = (tmp_path / "command/explore.html").read_bytes()
    own = minitx.explore(model, SENTENCE, words=words)
    assert own.html.encode() == written
    path = own.save(tmp_path / "new/folder/page.html")
    assert path == tmp_path / "new/folder/page.html" and path.read_bytes() == written
    assert minitx.explore("tiny-gpt2", SENTENCE, words=words).html == own.html  # by its name


def test_a_notebook_gets_one_frame_that_is_shut_off(page):
    [(tag, attributes, _)] = Elements(page._repr_html_()).elements
    assert tag == "iframe"
    assert attributes["srcdoc"] == page.html
    # without allow-same-origin the page reads nothing of the notebook, its cookies or its server
    assert attributes["sandbox"] == "allow-scripts allow-downloads"
    assert "800px" in attributes["style"]


@pytest.mark.parametrize(("name", "text"), [("tiny-gpt2", SENTENCE), ("tiny-bart", "3 May 1912")])
def test_where_no_page_can_be_shown_every_head_is(name, text):
    """In LaTeX and PDF: the weights of each head in its row and column, to the page's rounding."""
    shown = minitx.explore(name, text)
    assert shown._repr_png_().startswith(b"\x89PNG")
    (axes,) = inline.all_heads(shown._run).axes
    (image,) = axes.images
    model = minitx.load(name)
    pattern = minitx.run(model.encoder or model, text, keep="pattern").stack("pattern")[:, 0]
    L, H, T, S = pattern.shape
    drawn = np.asarray(image.get_array())
    for layer, head in np.ndindex(L, H):
        column, row = axes.get_xticks()[head], axes.get_yticks()[layer]
        across, down = (round(x - (n - 1) / 2) for x, n in ((column, S), (row, T)))
        own = drawn[down : down + T, across : across + S]
        assert np.allclose(own, pattern[layer, head], atol=2e-5)


@pytest.mark.parametrize("words", [False, True])
def test_a_text_cannot_leave_the_frame(model, words):
    shown = minitx.explore(model, HOSTILE, words=words)
    [(tag, attributes, _)] = Elements(shown._repr_html_()).elements
    assert (tag, attributes["srcdoc"]) == ("iframe", shown.html)
    assert not re.search("<script|<b>", shown._repr_html_())
    assert shown._repr_html_().count("</iframe>") == 1
    assert HOSTILE[:20] in unescape(attributes["title"])


def test_the_height_is_chosen(model):
    shown = minitx.explore(model, SENTENCE, height=321)
    assert "height: 321px" in shown._repr_html_()
    for height in (True, 99, "800", 300.0, None):
        with pytest.raises(ValueError, match=f"height is {height!r}; wanted 100 pixels or more"):
            minitx.explore("a model that there is not", SENTENCE, height=height)


def test_outside_a_notebook_it_says_what_it_is(page):
    megabytes = len(page.html.encode()) / 1e6
    assert repr(page) == (
        f"<Explore tiny-gpt2 on 'The brown capybara is sleeping now.': a page of {megabytes:.2f} "
        "MB, which a notebook shows; elsewhere .save('explore.html') writes it for a browser>"
    )
    assert len(repr(minitx.explore("tiny-gpt2", SENTENCE * 5))) < 220


def test_a_base_model_takes_what_is_stated(model):
    """64 tokens on 144 heads; a tenth of it says who wrote the guesses, another is the frame."""
    layers = ([*model.layers] * 3)[:9]
    for index, layer in enumerate(layers):
        layers[index] = type(layer)(**vars(layer) | {"index": index})
    config = replace(model.config, n_layers=9, n_heads=16)  # as many heads as 12 x 12
    shown = minitx.explore(replace(model, layers=layers, config=config), " the" * 64)
    assert "× 16 heads" not in shown.html and '"heads": 16' in shown.html
    size, outputs = len(shown.html.encode()), shown._run["outputs"] | {"written": None}
    plain = explore.page(shown._run | {"outputs": outputs})
    assert 2.6e6 < size < 3e6
    assert len(plain.encode()) > size / 1.12
    assert len(shown._repr_html_().encode()) < 1.1 * size


def test_a_changed_model_is_called_so(model, page):
    layers = [*model.layers]
    layers[1] = type(layers[1])(**vars(layers[1]) | {"W_Q": layers[1].W_Q * 2})
    shown = minitx.explore(replace(model, layers=layers), SENTENCE)
    assert repr(shown).startswith("<Explore tiny-gpt2, changed: W_Q.L1 on 'The")
    assert '"model": "tiny-gpt2, changed: W_Q.L1"' in shown.html
    assert '"model": "tiny-gpt2",' in page.html
