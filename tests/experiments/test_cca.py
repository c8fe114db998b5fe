"""How much of the position table each layer's stream still holds; runs that go on."""

from functools import partial

import constructed
import directed
import numpy as np
import pytest
from outcomes import run, says, verdict

from minitx import analysis
from minitx.analysis.contract import registry
from minitx.analysis.drawing import draw
from minitx.analysis.experiments import cca as experiment
from minitx.analysis.measures import inputs, residual_stream
from minitx.analysis.running import stream
from minitx.analysis.texts import corpus


@pytest.fixture(scope="module")
def results(of_constructed):
    return of_constructed("cca", documents=8, tokens=64, shuffles=30)


def test_positions_that_nothing_writes_over_stay(results):
    for name in ("waves", "neither"):  # they need not be waves
        result = results[name]
        assert result["mean"].min() > 0.99
        assert result["high"].tolist() == [12, 12, 12]
        # every write is 0 here: in a model of random zeros, too, all would stay
        assert (result["n_kept"], result["n_kept_null"]) == (2, 2)
        assert verdict("cca", result) == "undecided"
        # 24 columns hold much of any function of 62 places
        assert (result["mean"] > result["mean_null"] + 0.2).all()


def test_positions_that_a_head_erases_are_gone(results):
    result = results["copies"]
    assert result["mean"][0] > 0.99
    assert result["mean"][1:].max() < 0.5 * result["mean"][0]
    assert result["high"].tolist() == [12, 0, 0]
    enough = {"n_rows": np.array(10 * result["n_features"]), "documents": np.array(8)}
    assert verdict("cca", result | enough) == "no"


def test_what_random_weights_keep_too_is_neither_denied_nor_claimed():
    # 0.93 at each layer, as random weights have it: all layers keep positions, theirs as well
    r = {name: np.full(3, 0.93) for name in ("mean", "mean_random")} | {"mean_null": np.zeros(3)}
    assert experiment._kept(r) == {"n_kept": 2, "n_kept_null": 2}
    assert experiment._kept(r | {"mean": np.array([0.93, 0.3, 0.3])})["n_kept"] == 0


@pytest.mark.parametrize("n_rows, kind", [(504, "undecided"), (1280, "yes")])
def test_few_rows_leave_no_yes_as_random_weights_are_fitted_to_as_few(n_rows, kind):
    r = {"n_kept": 4, "n_kept_null": 3, "mean": np.full(5, 0.9), "has_table": True}
    r |= {"n_rows": n_rows, "n_features": 128, "documents": 8}
    assert verdict("cca", r) == kind


def test_small_positions_stay_readable_where_nothing_writes_over_them():
    """A quarter of the waves is less than half of them, whatever their size beside words."""
    for stay, kind in ((1, "yes"), (0.75, "yes"), (0.25, "no"), (0, "no")):
        model = directed.written_over(stay, size=0.11, places=256)
        options = {"documents": 16, "tokens": 256, "shuffles": 30}
        assert analysis.run("cca", model, **options).answer.verdict == kind, stay


def test_on_its_own_documents_a_fit_finds_more(results):
    for result in results.values():
        assert (result["mean_fitted"] > result["mean"] - 1e-9).all()
    erased = results["copies"]
    assert erased["mean_fitted"][1] > erased["mean"][1] + 0.05


def test_the_bundles_positions_end_after_layer_0(bundled):
    result = run("cca", bundled, documents=12)
    assert result["mean"][0] > 0.98  # measured 0.99
    assert result["mean"][1:].max() < 0.25  # measured 0.09
    assert result["mean"][1] > 2 * result["mean_null"][1]  # measured 0.09 against 0.03
    means = ", ".join(f"{mean:.2f}" for mean in result["mean"])
    assert f"are {means} on average" in says("cca", result)
    assert registry.get("cca").answer(result).value == "0 of 4"
    with draw.style():
        assert "before layer 3" in draw.svg(registry.get("cca").draw(result))


# runs of six experiments that go on where they were interrupted


class Interrupted(stream.Run):
    """A run that is interrupted at the third document of its last stage."""

    def gather(self, measure, documents, what, keep=()):
        def failing(i, x):
            if what == "documents" and i >= 2:
                raise KeyboardInterrupt
            return measure(i, x)

        return super().gather(failing, documents, what, keep)


@pytest.mark.parametrize("name", ["sources", "conditions", "cca", "dial", "chain", "notch"])
def test_a_run_goes_on_to_the_same_bytes(name, tmp_path):
    ask = partial(run, name, constructed.copies(), documents=10, tokens=40)
    whole = ask()
    with pytest.raises(KeyboardInterrupt):
        ask(run=Interrupted(tmp_path, name, "key"))
    assert [*tmp_path.iterdir()]
    resumed = ask(run=stream.Run(tmp_path, name, "key", resume=True))
    assert [*whole] == [*resumed]
    for key, x in whole.items():
        assert x.tobytes() == resumed[key].tobytes(), key


def first_8(model, documents, places):
    """Mean of the first 8 correlations before layer 1, from the definition: all rows at once."""
    table = inputs.reachable(model)[: documents.T][places].astype(float)
    U, _, _ = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)
    rows = [[*residual_stream.states(model, x)][1][places].astype(float) for x in documents]
    half = len(rows) // 2
    x, other = np.concatenate(rows[:half]), np.concatenate(rows[half:])
    variance, directions = np.linalg.eigh(np.cov(x.T))
    inside = variance > 1e-9 * variance[-1]
    W = directions[:, inside] / np.sqrt(variance[inside])
    y = np.tile(U[:, :12], (half, 1))
    left, _, right = np.linalg.svd(W.T @ (x - x.mean(axis=0)).T @ y, full_matrices=False)
    pairs = zip((other @ W @ left).T, (y @ right.T).T)
    return np.mean([np.corrcoef(a, b)[0, 1] for a, b in pairs][:8])


def test_other_code_gives_the_same_and_special_tokens_would_raise_it(bundled):
    """They tell the first and the last place by their kind, in a layer that holds few positions."""
    documents = corpus.documents(bundled, "sample", 40, 64)
    own = first_8(bundled, documents, documents.ordinary())
    r = analysis.run("cca", bundled, documents=40, tokens=64, shuffles=2).arrays
    assert r["mean_first"][1] == pytest.approx(own, abs=1e-6)
    assert first_8(bundled, documents, slice(0, 64)) > own + 0.05
