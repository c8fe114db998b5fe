"""What a notebook shows of a model, its parts and a trace: a few lines, or a table.

The bound of ten lines is what fits above the next cell; a bundled model took 122,248 characters.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
import tiny

import minitx
from minitx import weights
from minitx.machine import show

LINES, COLUMNS, CHARACTERS = 10, 100, 1000


def objects(name):
    """Everything of a bundled model that can be the last line of a cell."""
    model = minitx.load(name)
    cache = minitx.Cache()
    single = {} if model.encoder is None else {"source": "May 3"}
    two = {name: [text, text] for name, text in single.items()}
    if model.config.causal:
        ids = {name: model.encode(texts).tokens for name, texts in two.items()}
        minitx.forward(model, [[1, 2, 3]] * 2, cache=cache, **ids)
    trace = minitx.run(model, ["The dog ran after the cat.", "It rained."], **two)
    few = minitx.run(model, "A dog", keep=["q", ("pattern", 1)], **single)
    parts = [model.weights, *model.layers, model.tokenizer, model.config]
    return [model, *parts, trace, few, minitx.run(model, [1], keep=[], **single), cache]


def stacks(name):
    """An encoder-decoder has the points and the sizes of two stacks."""
    return 2 if name == "tiny-bart" else 1


@pytest.mark.parametrize("name", weights.bundled())
def test_all_show_themselves_in_a_few_lines(name):
    for shown in objects(name):
        lines = repr(shown).splitlines()
        assert 1 <= len(lines) <= LINES * stacks(name)
        long = [line for line in lines if len(line) > COLUMNS]
        assert not long or hasattr(shown, "folder")  # whose name may be long
        assert len(repr(shown)) <= CHARACTERS * stacks(name)
        assert " at 0x" not in repr(shown)


@pytest.mark.parametrize("name", weights.bundled())
def test_tables_have_as_many_cells_as_their_header(name):
    for shown in objects(name):
        table = shown._repr_html_()
        rows = re.findall(r"<tr>(.*?)</tr>", table)
        assert len({len(re.findall("<t[hd]>", row)) for row in rows}) == 1
        assert table.count("<tr>") <= 68 * stacks(name)  # Config has 64 fields


def test_a_model_says_what_it_is_and_a_tied_embedding_is_counted_once(bundled):
    cfg, shown = bundled.config, repr(bundled)
    distinct = [x for name, x in tiny.walk(bundled) if name != "W_U"]
    assert np.shares_memory(bundled.weights.W_U, bundled.weights.W_E)
    assert f"{sum(x.size for x in distinct):,} numbers" in shown
    assert f"{sum(x.nbytes for x in distinct) / 1e6:.2f} MB of float32" in shown
    assert f"{cfg.n_layers} layers of {cfg.n_heads} heads" in shown
    assert "normed after each addition" in shown
    assert "not normed before ln_final" in repr(tiny.load("gpt2-causal"))
    assert "tensors missing (1): h.0.w" in repr(replace(bundled, missing=("h.0.w",)))
    w = bundled.layers[0].W_Q
    row = f"<td>[128 128]</td><td>{cfg.n_layers}</td><td>{cfg.n_layers * w.nbytes / 1e3:.1f}</td>"
    assert bundled._repr_html_().count(f"<td>layers[i].W_Q</td>{row}") == 1


def test_weights_and_traces_list_names_by_shape(bundled):
    assert "[128 128]  W_Q, W_K, W_V, W_O" in repr(bundled.layers[2])
    assert repr(bundled.layers[2]).startswith("Weights of layer 2: 16 arrays, ")
    trace = minitx.run(bundled, [[5, 6, 7]], keep=["q", "z", ("pattern", 1)])
    assert repr(trace) == (
        f"Trace of 1 × 3 tokens: 9 arrays of 3 points, {trace.nbytes / 1e6:.2f} MB of float32\n"
        "  [1 4 3 32]  q, z\n"
        "  [1 4 3 3]   pattern (layer 1)"
    )
    single = repr(minitx.run(bundled, [[5, 6, 7]], keep=["logits"]))
    assert single.startswith("Trace of 1 × 3 tokens: 1 array of 1 point, ")
    row = "<td>pattern</td><td>B H T S</td><td>[1 4 3 3]</td><td>1</td><td>0.1</td>"
    assert row in trace._repr_html_()


def test_configs_that_differ_are_shown_as_different(bundled):
    """Results are named after a config's text."""
    for field, value in (("n_ctx", 8), ("pad_id", 0), ("task_head", None), ("act", "relu")):
        assert repr(replace(bundled.config, **{field: value})) != repr(bundled.config)


def test_what_a_file_says_is_escaped():
    shown = show.Summary("<a & b>", [], ("<th>",), [("<script>",)]).html()
    assert "<script>" not in shown and "&lt;script&gt;" in shown
    assert "<p>&lt;a &amp; b&gt;</p>" in shown and "<th>&lt;th&gt;</th>" in shown


def test_a_config_with_frequencies_of_each_layer_is_short():
    model = tiny.load("modernbert-masked")
    assert "rotary=(Rotary(frequencies=(1.0, " in repr(model.config)
    assert len(repr(model.config)) < 1500 and "…" in repr(model.config)
