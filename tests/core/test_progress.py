"""`progress=True`: a bar that is moved on by each pass, and changes no number."""

import io

import numpy as np
import pytest
import tqdm.auto
import tqdm.std

import minitx
from minitx import analysis, circuits


@pytest.fixture
def bars(monkeypatch):
    """All bars that tqdm is asked for; they are written nowhere."""
    shown = []

    def bar(**options):
        shown.append(tqdm.std.tqdm(file=io.StringIO(), **options))
        return shown[-1]

    monkeypatch.setattr(tqdm.std.tqdm, "monitor_interval", 0)  # no thread of its own
    monkeypatch.setattr(tqdm.auto, "tqdm", bar)
    return shown


MODEL = "tiny-gpt2"
TEXTS = ["He said that", "His house was"], ["She said that", "Her house was"], (" he", " she")


def test_patches_are_counted(bars):
    model = minitx.load(MODEL)
    silent = circuits.patch(model, *TEXTS)
    assert bars == []
    shown = circuits.patch(model, *TEXTS, progress=True)
    assert [(bar.n, bar.total) for bar in bars] == [(64, 64)]  # 16 heads, a null, two directions
    assert np.array_equal(shown.effects, silent.effects)
    circuits.patch(model, *TEXTS, progress=True, into="corrupt", null=False)
    assert (bars[1].n, bars[1].total) == (16, 16)


def test_paths_circuits_and_sweeps_have_a_bar(bars):
    model = minitx.load(MODEL)
    circuits.path_patch(model, *TEXTS, sender="head", progress=True)
    pairs = [*zip(*TEXTS[:2])]
    circuits.find(model, pairs, TEXTS[2], n_edges=3, n_random=4, progress=True)
    minitx.sweep(model, "A dog", "A cat", lambda y: y[0, -1, 0], progress=True)
    assert [bar.desc for bar in bars] == ["paths", "circuits", "patches"]
    assert all(bar.n > 0 for bar in bars) and bars[2].n == bars[2].total


def test_loops_over_documents_have_a_bar(bars):
    silent = analysis.run("profiles", MODEL, documents=3)
    assert bars == []
    shown = analysis.run("profiles", MODEL, documents=3, progress=True)
    assert bars and all(bar.n == bar.total for bar in bars)
    assert shown.answer == silent.answer


def test_one_direction_and_no_null_are_those_of_all():
    model = minitx.load(MODEL)
    both = circuits.patch(model, *TEXTS)
    half = circuits.patch(model, *TEXTS, into="clean", null=False)
    assert np.array_equal(half.lost, both.lost)
    assert np.isnan(half.effects).all() and np.isnan(half.lost_null).all()
    with pytest.raises(ValueError, match="into is 'each'; wanted 'both', 'corrupt' or 'clean'"):
        circuits.patch(model, *TEXTS, into="each")


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-bert"])
@pytest.mark.parametrize("point", ["resid_pre", "z", "pattern"])
def test_a_sweep_that_begins_at_its_layer_is_that_of_whole_passes(name, point):
    """Bit by bit, with an edit of an earlier layer in all runs."""
    model = minitx.load(name)
    edits = {("mlp_out", 1): lambda x: 0.5 * x}
    swept = minitx.sweep(model, "A dog ran", "A cat ran", first, point, edits=edits)
    source = minitx.run(model, "A cat ran", point, edits)
    whole = np.empty_like(swept)
    for layer, i in np.ndindex(swept.shape):

        def patched(x, layer=layer, i=i):
            x[:, i] = source[point, layer][:, i]
            return x

        logits = minitx.run(model, "A dog ran", "logits", edits | {(point, layer): patched})
        whole[layer, i] = first(logits["logits"])
    assert np.array_equal(swept, whole)


def first(logits):
    return float(logits[0, -1, 7])
