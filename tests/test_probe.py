"""The place of a token read off features, off norms and directions, and the loss under shifts: constructed cases."""
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from analysis_models import gpt2

import minitx
import tiny
import weights
from analysis import corpus, losses, registry, stats
from analysis.experiments import norms, probe, removal, shift

T, D = 40, 12


class Read(list):
    """Documents of T tokens with one special token at each end."""
    before = after = np.zeros(1, int)
    T, size = T, T - 2


@pytest.fixture(scope="module")
def read():
    return Read(np.random.default_rng(i).integers(1, 90, T) for i in range(15))


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    return minitx.load(gpt2(tmp_path_factory.mktemp("gpt2")), dtype=np.float64)


@pytest.fixture(scope="module")
def bert():
    return minitx.load(weights.find("tiny-bert"))


def planted(document, signal=3.0):
    """Two layers of noise [2 T D]; in the second the place stands along one direction."""
    noise = np.random.default_rng(document).standard_normal((2, T, D))
    along = np.random.default_rng(1).standard_normal(D)
    noise[1] += signal * (np.arange(T)[:, None] / T - 0.5) * along
    return noise


# ridge regression

def test_ridge_is_the_minimum_of_what_it_says():
    """Against least squares of rows with a root of the penalty below them, the intercept left free."""
    rng = np.random.default_rng(0)
    x, y, penalty = rng.standard_normal((50, 4)) * [1, 2, 3, 4] + 5, rng.standard_normal(50), 0.3
    v = np.var(x, axis=0).mean()
    centred = np.vstack([x - x.mean(axis=0), np.sqrt(50 * penalty * v) * np.eye(4)])
    w = np.linalg.lstsq(centred, np.r_[y - y.mean(), np.zeros(4)])[0]
    found = stats.ridge(stats.sums(x, y), penalty)
    assert np.abs(found - np.r_[w, y.mean() - x.mean(axis=0) @ w]).max() < 1e-12  # measured 4e-16


def test_sums_of_rows_add_up_and_give_r2():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    whole, parts = stats.sums(x, y), stats.sums(x[:20], y[:20]) + stats.sums(x[20:], y[20:])
    assert np.abs(whole - parts).max() < 1e-12  # measured 7e-15
    w = stats.ridge(whole, 1e-3)
    wrong = y - x @ w[:-1] - w[-1]
    assert stats.r2(whole, w) == pytest.approx(1 - (wrong ** 2).sum() / ((y - y.mean()) ** 2).sum(), abs=1e-12)


def test_the_penalty_is_the_one_that_errs_least_on_other_rows():
    """Noise deserves the largest penalty, a clean line the smallest; what does not vary gives the mean."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 20))
    of = partial(stats.sums, x[:20]), partial(stats.sums, x[20:])
    noise = rng.standard_normal((2, 20))
    assert stats.chosen_ridge(of[0](noise[0]), of[1](noise[1]))[1] == stats.PENALTIES[-1]
    line = x @ np.arange(20)
    assert stats.chosen_ridge(of[0](line[:20]), of[1](line[20:]))[1] < 1e-2
    flat = stats.sums(np.ones((5, 2)), np.arange(5.0))
    assert stats.ridge(flat, 1e-8) == pytest.approx([0, 0, 2])


# the probe

def test_a_planted_position_is_found_and_nothing_else(read):
    fit, choose, test = probe.parts(read)
    weights, _ = probe.learned(planted, read, fit, choose, seed=0)
    found = probe.tested(planted, read, fit + choose, weights, seed=0)
    assert (fit, choose, test) == (9, 3, 3)
    power = 9 * np.square(np.random.default_rng(1).standard_normal(D)).sum() * (38 ** 2 - 1) / 12 / T ** 2
    assert found["r2"][1] == pytest.approx(power / (1 + power), abs=0.05)  # what theory gives: 0.763, measured 0.743
    assert abs(found["r2"][0]) < 0.1                                       # the layer of noise: measured -0.008
    assert np.abs(found["r2_shuffled"]).max() < 0.1                        # shuffled places: measured 0.0002
    assert found["error"][1] < 5 < 9 < found["error"][0]                   # of 38 places the middle is 9.5 off
    low, high = found["r2_interval"].T
    assert (low <= found["r2"]).all() and (found["r2"] <= high).all()


def test_r2_and_error_are_those_of_the_guesses(read):
    """Against a direct fit to all rows of the first documents, with the penalty that was chosen."""
    weights, penalty = probe.learned(planted, read, 9, 3, seed=0)
    found = probe.tested(planted, read, 12, weights, seed=0)
    x, y = np.concatenate([planted(d)[1, 1:-1] for d in read[:9]]), np.tile(np.arange(1, T - 1.0), 9)
    w = stats.ridge(stats.sums(x, y), penalty[0, 1])
    guess = np.concatenate([planted(d)[1, 1:-1] for d in read[12:]]) @ w[:-1] + w[-1]
    truth = np.tile(np.arange(1, T - 1.0), 3)
    r2 = 1 - ((truth - guess) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()
    assert found["r2"][1] == pytest.approx(r2, abs=1e-12)  # measured 1e-15
    assert found["error"][1] == pytest.approx(np.abs(truth - guess).mean(), abs=1e-10)


def test_the_documents_of_the_test_are_not_learned_from(read):
    seen = []

    def watched(document):
        seen.append(tuple(document))
        return planted(document)
    weights, _ = probe.learned(watched, read, 9, 3, seed=0)
    assert set(seen) == {tuple(d) for d in read[:12]}
    seen.clear()
    probe.tested(watched, read, 12, weights, seed=0)
    assert set(seen) == {tuple(d) for d in read[12:]}


def test_conditions_do_what_their_names_say(bert, causal):
    """A window as a mask of numbers against minitx's own boolean mask; the causal mask against keys taken away."""
    document = corpus.documents(bert, "sample", 1, 30).first()[0]
    ways = probe.conditions(bert, "window:3", "weights", seed=0)
    zero = {"condition": removal.stand_in(np.zeros_like(bert.weights.W_pos))}
    assert [*ways] == [probe.ON, probe.OFF, "off, window(n=3, low=0)", probe.CAUSAL, probe.RANDOM, probe.RANDOM_OFF]
    own = removal.features(bert, document, mask=lambda q, k: abs(q - k) < 3, **zero)
    assert np.abs(ways["off, window(n=3, low=0)"](document) - own).max() < 1e-5  # float32: measured 0
    whole, other = (ways[probe.CAUSAL](tokens)[:, :9] for tokens in (document, np.r_[document[:9], document[3:9]]))
    assert np.abs(whole - other).max() < 1e-5  # measured 2e-6
    assert np.abs(whole - ways[probe.OFF](document)[:, :9]).max() > 1
    assert np.array_equal(ways[probe.OFF](document), removal.features(bert, document, **zero))
    assert np.array_equal(ways[probe.ON](document), removal.features(bert, document))
    assert not np.allclose(ways[probe.RANDOM](document), ways[probe.RANDOM_OFF](document))
    assert probe.CAUSAL not in probe.conditions(causal, "", "weights", seed=0)  # there, positions off is just that


def test_without_order_there_are_no_positions(bert):
    """Positions off in a model that sees both sides: at chance, whatever the weights; with positions, found."""
    found = probe.probe(bert, documents=15, tokens=64, mask="")
    r2, null = dict(zip(found["conditions"], found["r2"].max(axis=1))), found["r2_shuffled"].max()
    assert r2[probe.ON] > 0.5 and null < 0.02                            # measured 0.90 and 0.006
    assert abs(r2[probe.OFF]) < 0.05 and abs(r2[probe.RANDOM_OFF]) < 0.05  # measured 0.006 and 0
    assert found["r2_on"] == r2[probe.ON] and found["r2_causal"] == r2[probe.CAUSAL] > 0.1  # measured 0.5
    assert found["error_on_null"] == np.abs(np.arange(62) - 30.5).mean()


def test_masks_are_named_with_their_parameters():
    assert [m.keywords for m in probe.chosen("window:16, linear:0.5")] == [{"n": 16, "low": 0.0}, {"low": 0.5}]
    assert len(probe.chosen("all")) >= 5 and probe.chosen("") == []


@pytest.mark.parametrize("name, options, message", [
    ("probe", {"mask": "wave"}, "--mask 'wave': 'wave' is no family of masks; there are: linear.*linear,window:8"),
    ("probe", {"mask": "linear:x"}, "--mask 'linear:x': could not convert.*wanted names joined by commas"),
    ("probe", {"meaning": "x"}, "'x' is no meaning of a mask"),
    ("probe", {"documents": 5}, "--documents: 5 read; an interval over documents needs at least 6"),
    ("norms", {"documents": 5}, "--documents: 5 read; an interval over documents needs at least 6"),
    ("shift", {"documents": 1}, "--documents: 1 read; an interval over documents needs at least 2"),
    ("shift", {"tokens": 32}, "--tokens 32: documents as long as the model reads leave no room"),
    ("shift", {"steps": 1}, "--steps is 1; wanted 2 to 64"),
    ("shift", {"every": 0}, "--every is 0; wanted 1 or more")])
def test_bad_options_are_noticed(causal, name, options, message):
    with pytest.raises(ValueError, match=message):
        registry.get(name).run(causal, **options)


@pytest.mark.parametrize("name", ["probe", "norms", "shift"])
def test_the_column_of_a_table_can_be_named(causal, tmp_path, name):
    """A table whose text must be named gives what its text alone gives."""
    lines, table = [f"He went out of the room {n} times." for n in range(60)], tmp_path / "t.csv"
    table.write_text("n,review\n" + "".join(f"{n},{line}\n" for n, line in enumerate(lines)))
    (tmp_path / "t.txt").write_text("".join(f"{line}\n" for line in lines))
    options = {"documents": 6, "tokens": 16} | ({"mask": ""} if name == "probe" else {})
    with pytest.raises(ValueError, match="name the text's with --column"):
        registry.get(name).run(causal, text=str(table), **options)
    one = registry.get(name).run(causal, text=str(table), column="review", **options)
    two = registry.get(name).run(causal, text=str(tmp_path / "t.txt"), **options)
    assert all(np.array_equal(one[key], two[key]) for key in two)


# norms

def test_sources_are_what_stands_before_the_first_attention(bert, causal):
    for model, after in ((bert, "ln_embed"), (causal, ("ln1", 0))):
        document = corpus.documents(model, "sample", 1, 20).first()[0]
        trace = minitx.run(model, document, keep=["embed", ("resid_pre", 0), after])
        words, sums, normed = norms.embedded(model, document)
        assert np.array_equal(words, trace["embed"][0])
        assert np.abs(normed - trace[after][0]).max() < 1e-5  # float32, another order of sums: measured 5e-7
        if model.config.pre_norm:
            assert np.array_equal(sums, trace["resid_pre", 0][0])


@pytest.mark.parametrize("kind, least", [("norm", 0.9), ("direction", 0.9)])
def test_what_is_built_into_norm_or_direction_is_found_there_alone(kind, least):
    """Rows of random directions whose norms grow; rows of one length that turn. Measured 0.994 and 0.998."""
    rng, t = np.random.default_rng(0), np.arange(200)
    rows = rng.standard_normal((200, 16))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if kind == "norm":
        table = rows * (1 + t[:, None] / 100)
    else:
        turn = np.column_stack([np.cos(t / 100), np.sin(t / 100), np.zeros((200, 14))])
        table = turn * rng.permutation(1 + t[:, None] / 100)
    r2, interval, shuffled = norms._of_rows(table, 0)
    found, null = dict(zip(norms.readouts(None), r2)), dict(zip(norms.readouts(None), shuffled))
    other = {"norm": "direction", "direction": "norm"}[kind]
    assert found[kind] > least and found[other] < 0.1 and max(null.values()) < 0.1
    assert (interval[:, 0] <= r2).all() and (r2 <= interval[:, 1]).all()


def test_bins_of_norms_are_equally_full():
    x = np.random.default_rng(0).standard_normal((2, 160))
    seen = norms.in_bins(x, norms.edges(x))
    assert seen.shape == (2, 160, norms.BINS) and (seen.sum(axis=-1) == 1).all() and (seen.sum(axis=1) == 10).all()


# shifts

def test_losses_under_a_shift_are_those_of_moved_positions(causal):
    found = shift.shift(causal, documents=4, tokens=20, steps=4)
    assert found["shifts"].tolist() == [0, 4, 8, 12] and found["n_predicted"] == 4 * 19
    assert type(found["n_predicted"]) is int  # a count is printed in full
    moved = [losses.causal(causal, d, condition=removal.stand_in(np.roll(causal.weights.W_pos, -8, axis=0)))
             for d in corpus.documents(causal, "sample", 4, 20)]
    assert found["losses"][2] == pytest.approx(np.mean(moved), abs=1e-12)  # measured 0
    assert found["worst"] == pytest.approx(max(found["losses"] - found["loss"], key=abs), abs=1e-12)


def test_a_table_of_equal_rows_knows_no_shift(causal):
    flat = tiny.with_weights(causal, W_pos=np.tile(causal.weights.W_pos[:1], (32, 1)))
    found = shift.shift(flat, documents=3, steps=3)
    assert np.ptp(found["losses"]) == 0 and found["worst_null"] == 0 and found["change_shuffled"] == 0


def test_the_null_of_a_shift_is_what_signs_dealt_at_random_give():
    """100 sets of changes without effect: the null is passed in about 5 % of them; a common change passes it."""
    rng, n, passed = np.random.default_rng(0), np.full((30, 7), 50.0), 0
    for seed in range(100):
        total = np.cumsum(rng.standard_normal((30, 7)), axis=1)
        found = shift._changes(total, n, np.arange(5), seed)
        passed += abs(found["worst"]) > found["worst_null"]
    assert 1 <= passed <= 12  # measured 3
    found = shift._changes(total + [0, 0, 0, 0, 3, 0, 0], n, np.arange(5), 0)
    assert found["worst_at"] == 4 and found["worst"] > found["worst_null"]


def test_shift_needs_a_head_that_predicts(bert):
    bare = SimpleNamespace(config=SimpleNamespace(head=None))
    with pytest.raises(registry.Unfit, match="shift needs a masked or causal language model; .* head is None"):
        shift.shift(bare)
