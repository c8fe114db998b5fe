"""Every name of a run of TransformerLens 4 is known: its point has that value, or there is none."""

import json

import make_golden_names
import numpy as np
import pytest

import minitx
from minitx.names import point_of

RECORD = json.loads(make_golden_names.FILE.read_text(encoding="utf-8"))["values"]
BY_HEAD = (
    "q.hook_out",
    "k.hook_out",
    "v.hook_out",
    "o.hook_in",
    "hook_q",
    "hook_k",
    "hook_v",
    "hook_z",
)


def is_without(name):
    """Whether a name's value is no point."""
    return name.endswith("hook_normalized") or name in ("embed.hook_in", "pos_embed.hook_in")


@pytest.fixture(scope="module")
def trace():
    return minitx.run(minitx.load("tiny-gpt2"), [make_golden_names.IDS])


@pytest.mark.parametrize("name", RECORD)
def test_a_name_has_its_value_or_says_what_comes_closest(name, trace):
    if is_without(name):
        with pytest.raises(ValueError, match=f"'{name}' names no point: it is (a norm before|the)"):
            point_of(name)
        return
    x = trace[point_of(name)]
    if name.endswith("hook_scale"):
        x = 1 / x  # there a norm divides by it
    elif name.endswith(BY_HEAD):
        x = x.swapaxes(1, 2)  # there heads come behind positions
    x = np.where(np.isfinite(x), x, 0.0)
    # float32 on both sides; measured: 7.2e-7 of the length at most
    length = RECORD[name][0]
    np.testing.assert_allclose(
        make_golden_names.numbers(x), RECORD[name], rtol=0, atol=3e-6 * length
    )


def test_how_many_names_have_a_point():
    n_without = sum(map(is_without, RECORD))
    assert (len(RECORD), n_without) == (173, 11)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("blocks.1.attn.q_norm.hook_normalized", "'ln_q' is behind them"),
        ("blocks.1.attn.k_norm.hook_in", "before their norm"),
        ("embed_ln.hook_in", "'ln_embed' is its norm"),
        ("blocks.1.attn.hook_cos", "the cosine of 'pos_angle'"),
        ("rotary_emb.hook_in", "an input of the rotary embedding"),
    ],
)
def test_names_of_other_models_say_what_comes_closest(name, said):
    with pytest.raises(ValueError, match=f"'{name}' names no point: it is .*{said}"):
        point_of(name)
