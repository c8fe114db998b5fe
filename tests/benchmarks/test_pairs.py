"""Encoder-decoders beside the reference library: what is counted, and the table."""

import numpy as np

import minitx
from benchmarks import pairs, shapes


def test_the_shape_loads_and_its_cross_keys_are_counted(tmp_path):
    folder = shapes.make(tmp_path, "bart-small")
    model = minitx.load(folder)
    assert not model.unused and model.config.end_id is None
    assert pairs.counted(folder) == {"greedy": (2, 64, 2), "beams": (2, 64, 2)}


def test_each_task_of_minitx_gives_what_is_compared(tmp_path):
    """The internals are those of both stacks; 64 tokens are generated."""
    peer = pairs.Minitx(shapes.make(tmp_path, "bart-small"), 1)
    source = shapes.ids("bart-small", 1, 128)
    trace = peer.internals(source)
    assert len(trace) == 2 * len(pairs.INTERNALS)
    shape = {name: x.shape for name, x in peer.seen(trace).items()}
    assert shape == {"hidden": (1, 32, 32), "cross": (1, 4, 32, 128), "own": (1, 4, 32, 32)}
    assert len(peer.everything(source)) > len(trace)
    np.testing.assert_allclose(peer.nothing(source)["hidden"], trace["resid_post", -1], atol=1e-6)
    assert [peer.greedy(source)["tokens"].shape, peer.beams(source)["tokens"].shape] == [
        (1, 65)
    ] * 2


def test_the_table_has_ratios_within_rounds_and_who_is_left_out():
    [case, *_] = pairs.cases("bart-small", 3)
    seconds = {"minitx/internals": [1.0, 2.0, 4.0], "minitx/everything": [2.0, 4.0, 8.0]}
    record = {"seconds": seconds, "lost": {"transformers-eager/internals": "not installed"}}
    record |= {"busy": 0.1, "distance": 2e-6}
    settings = {"day": "2026-01-02", "shape": "bart-small", "rounds": 3, "line": "a machine"}
    settings |= {"commit": "abc", "versions": {"torch": "2"}}
    text = pairs.page(settings, [(case, record)], {"greedy": (2, 64, 2)})
    own, every, lost = [line for line in text.splitlines() if f"| {case.what} |" in line]
    assert own.endswith("| 2000 (1500-3000) ms |  |")
    assert every.endswith("| 4000 (3000-6000) ms | 2.00× (2.00×-2.00×) |")
    assert "left out: not installed" in lost
    assert "computed 2 times in 64 steps of 2 layers" in text and "2e-06 apart" in text
