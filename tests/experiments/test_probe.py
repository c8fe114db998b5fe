"""A token's place read off features, off norms and directions; losses under shifts."""

import numpy as np
import pytest
import tiny
from distance import max_error
from outcomes import says, verdict

import minitx
from minitx.analysis.contract import registry
from minitx.analysis.experiments import norms, probe, shift
from minitx.analysis.maths import stats
from minitx.analysis.measures import losses, position_probe, position_tables, residual_stream
from minitx.analysis.running import passes
from minitx.analysis.texts import corpus, formats

T, D = 40, 12


class Documents(list):
    """Documents of T tokens with one special token at each end."""

    before = after = np.zeros(1, int)
    T = T
    size = T - 2
    ordinary = corpus.DocumentSet.ordinary


@pytest.fixture(scope="module")
def documents():
    return Documents(np.random.default_rng(i).integers(1, 90, T) for i in range(15))


def planted(document):
    """Two layers of noise [2 T D]; in the second the place stands along one direction."""
    noise = np.random.default_rng(document).standard_normal((2, T, D))
    along = np.random.default_rng(1).standard_normal(D)
    noise[1] += 3 * (np.arange(T)[:, None] / T - 0.5) * along
    return noise


# ridge regression


def test_ridge_is_the_minimum_of_what_it_says():
    """Against least squares with a root of the penalty in rows below, the intercept left free."""
    rng = np.random.default_rng(0)
    penalty = 0.3
    x = rng.standard_normal((50, 4)) * [1, 2, 3, 4] + 5
    y = rng.standard_normal(50)
    v = np.var(x, axis=0).mean()
    root = np.sqrt(50 * penalty * v)
    rows = np.vstack([x - x.mean(axis=0), root * np.eye(4)])
    targets = np.r_[y - y.mean(), np.zeros(4)]
    w, *_ = np.linalg.lstsq(rows, targets)
    ridge = stats.ridge(stats.sums(x, y), penalty)
    intercept = y.mean() - x.mean(axis=0) @ w
    expected = np.r_[w, intercept]
    assert max_error(ridge, expected) < 1e-12  # measured 4e-16


def test_sums_of_rows_add_up_and_give_r2():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 3))
    y = rng.standard_normal(60)
    whole = stats.sums(x, y)
    parts = stats.sums(x[:20], y[:20]) + stats.sums(x[20:], y[20:])
    assert max_error(whole, parts) < 1e-12  # measured 7e-15
    w = stats.ridge(whole, 1e-3)
    guess = x @ w[:-1] + w[-1]
    assert stats.r2(whole, w) == pytest.approx(r2_of(guess, y), abs=1e-12)


def r2_of(guess, y):
    """The share of the variance of y that a guess explains."""
    return 1 - ((y - guess) ** 2).sum() / ((y - y.mean()) ** 2).sum()


def test_the_penalty_is_the_one_that_errs_least_on_other_rows():
    """Noise gets the largest penalty, a clean line the smallest; constant columns give the mean."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 20))

    def penalty(y):
        fit = stats.sums(x[:20], y[:20])
        choose = stats.sums(x[20:], y[20:])
        return stats.choose_ridge(fit, choose)[1]

    assert penalty(rng.standard_normal(40)) == stats.PENALTIES[-1]
    assert penalty(x @ np.arange(20)) < 1e-2
    flat = stats.sums(np.ones((5, 2)), np.arange(5.0))
    assert stats.ridge(flat, 1e-8) == pytest.approx([0, 0, 2])


# the probe


def probed(stream_of, documents, fit, choose):
    """The penalties of one stream, and what its test says."""
    [(weights, penalty)] = position_probe.fit_ridge(
        {"": stream_of}, documents, fit, choose, seed=0
    ).values()
    result = position_probe.evaluate(
        {"": stream_of}, documents, fit + choose, {"": weights}, seed=0
    )
    return penalty, result[""]


def test_a_planted_position_is_found_and_nothing_else(documents):
    fit, choose, test = position_probe.parts(documents)
    _, result = probed(planted, documents, fit, choose)
    assert (fit, choose, test) == (9, 3, 3)
    along = np.random.default_rng(1).standard_normal(D)
    variance = (38**2 - 1) / 12 / T**2  # of the places
    power = 9 * np.square(along).sum() * variance
    # what theory gives: 0.763, measured 0.743
    assert result["r2"][1] == pytest.approx(power / (1 + power), abs=0.05)
    assert abs(result["r2"][0]) < 0.1  # the layer of noise: measured -0.008
    assert np.abs(result["r2_shuffled"]).max() < 0.1  # shuffled places: measured 0.0002
    assert result["error"][1] < 5  # of 38 places the middle is 9.5 off
    assert result["error"][0] > 9
    low, high = result["r2_interval"].T
    assert (low <= result["r2"]).all()
    assert (result["r2"] <= high).all()


def test_r2_and_error_are_those_of_the_guesses(documents):
    """Against a direct fit to all rows of the first documents, with the penalty that was chosen."""
    penalty, result = probed(planted, documents, 9, 3)
    places = np.arange(1, T - 1.0)
    x = np.concatenate([planted(d)[1, 1:-1] for d in documents[:9]])
    w = stats.ridge(stats.sums(x, np.tile(places, 9)), penalty[0, 1])
    x = np.concatenate([planted(d)[1, 1:-1] for d in documents[12:]])
    guess = x @ w[:-1] + w[-1]
    truth = np.tile(places, 3)
    assert result["r2"][1] == pytest.approx(r2_of(guess, truth), abs=1e-12)  # measured 1e-15
    assert result["error"][1] == pytest.approx(np.abs(truth - guess).mean(), abs=1e-10)


def test_the_documents_of_the_test_are_not_learned_from(documents):
    seen = []

    def watched(document):
        seen.append(tuple(document))
        return planted(document)

    [(weights, _)] = position_probe.fit_ridge({"": watched}, documents, 9, 3, seed=0).values()
    assert set(seen) == {tuple(d) for d in documents[:12]}
    seen.clear()
    position_probe.evaluate({"": watched}, documents, 12, {"": weights}, seed=0)
    assert set(seen) == {tuple(d) for d in documents[12:]}


def test_conditions_do_what_their_names_say(bert, causal64):
    """A window as numbers against the same boolean mask; the causal mask against keys removed."""
    document = corpus.documents(bert, "sample", 1, 30).first()[0]
    ways = probe.conditions(bert, "window:3", "weights", eps=0.01, seed=0)
    ways |= probe.of_random_weights(bert, seed=0)

    def stream(name, tokens=document):
        return passes.value(ways[name](tokens))

    window = "off, window(n=3, low=0)"
    others = [probe.NORM, probe.CAUSAL, probe.RANDOM, probe.RANDOM_OFF]
    assert [*ways] == [probe.ON, probe.OFF, window, *others]
    zero = {"condition": position_tables.stand_in(np.zeros_like(bert.weights.W_pos))}
    own = residual_stream.states(bert, document, mask=lambda q, k: abs(q - k) < 3, **zero)
    assert max_error(stream(window), own) < 1e-5  # float32: measured 0
    whole = stream(probe.CAUSAL)[:, :9]
    other = stream(probe.CAUSAL, np.r_[document[:9], document[3:9]])[:, :9]
    assert max_error(whole, other) < 1e-5  # measured 2e-6
    assert max_error(whole, stream(probe.OFF)[:, :9]) > 1
    assert np.array_equal(stream(probe.OFF), residual_stream.states(bert, document, **zero))
    assert np.array_equal(stream(probe.ON), residual_stream.states(bert, document))
    assert not np.allclose(stream(probe.RANDOM), stream(probe.RANDOM_OFF))
    # there, positions off is just that
    causal_ways = probe.conditions(causal64, "", "weights", eps=0, seed=0)
    assert not {probe.CAUSAL, probe.NORM} & {*causal_ways}


@pytest.mark.parametrize("name", ["bert", "causal64"])
def test_norms_that_grow_are_what_enters_the_first_layer(request, name):
    """Positions at zero, and the stream before layer 0 times 1 + eps t; nothing else."""
    model = request.getfixturevalue(name)
    tokens = tiny.ids(model, 20)
    edits = {"pos_embed": np.zeros_like}
    off = minitx.run(model, tokens, edits=edits, keep=[("resid_pre", 0)])["resid_pre", 0]
    t = np.arange(20)[:, None]
    for eps, seed in ((0.5, None), (0.5, 3)):
        factor = 1 + eps * (t if seed is None else np.random.default_rng((3, 20)).permutation(t))
        edits["resid_pre", 0] = lambda x, factor=factor: x * factor.astype(x.dtype)
        expected = minitx.run(model, tokens, edits=edits).arrays
        got = residual_stream.states(model, tokens, probe.growing(eps, seed))
        assert max_error(got[0], off[0] * factor) < 1e-5
        for layer in range(model.config.n_layers - 1):  # the last is behind the final norm
            assert max_error(got[layer + 1], expected["resid_post", layer][0]) < 1e-4


def test_growing_norms_beside_their_nulls(causal64):
    """Where words have a direction in common, a linear readout finds the norm along it."""
    model = tiny.with_weights(causal64, W_E=causal64.weights.W_E + 3)
    result = probe.probe(model, documents=6, tokens=30, mask="", eps=0.05)
    r2 = dict(zip(result["conditions"], result["r2"]))
    assert r2[probe.NORM][0] > r2[probe.OFF][0] + 0.1  # what enters the first layer
    assert result["r2_norm"] == r2[probe.NORM].max()
    assert result["r2_norm_last"] == r2[probe.NORM][-1]
    by_name = [result[f"loss_{name}"] for name in ("on", "off", "norm", "norm_null")]
    assert np.isfinite(by_name).all() and len({*map(float, by_name)}) == 4
    assert "x_t (1 + 0.05 t)" in says("probe", result | {"best_mask": ""})
    without = probe.probe(model, documents=6, tokens=30, mask="", eps=0.0)
    assert not [name for name in without if "norm" in name or name.startswith("loss")]


def test_without_order_there_are_no_positions(bert):
    """Without positions a model that sees both sides is at chance, whatever its weights."""
    result = probe.probe(bert, documents=15, tokens=64, mask="")
    r2 = dict(zip(result["conditions"], result["r2"].max(axis=1)))
    assert r2[probe.ON] > 0.5  # measured 0.90
    assert result["r2_shuffled"].max() < 0.02  # measured 0.006
    # measured 0.006 and 0
    assert abs(r2[probe.OFF]) < 0.05
    assert abs(r2[probe.RANDOM_OFF]) < 0.05
    assert result["r2_on"] == r2[probe.ON]
    assert result["r2_causal"] == r2[probe.CAUSAL] > 0.1  # measured 0.5
    assert result["error_on_null"] == np.abs(np.arange(62) - 30.5).mean()


def test_masks_are_named_with_their_parameters():
    masks = probe.parse_masks("window:16, linear:0.5")
    assert [mask.keywords for mask in masks] == [{"n": 16, "low": 0.0}, {"low": 0.5}]
    assert len(probe.parse_masks("all")) >= 5
    assert probe.parse_masks("") == []


@pytest.mark.parametrize("name", ["probe", "norms", "shift", "remove-positions"])
def test_the_column_of_a_table_can_be_named(causal64, tmp_path, name):
    """A table whose text must be named gives what its text alone gives."""
    run = registry.get(name).run
    lines = [f"He went out of the room {n} times." for n in range(10)]
    table = tmp_path / "t.csv"
    text = tmp_path / "t.txt"
    table.write_text("n,review\n" + "".join(f"{n},{line}\n" for n, line in enumerate(lines)))
    text.write_text("".join(f"{line}\n" for line in lines))
    options = {"documents": 6, "tokens": 16}
    if name == "probe":
        options["mask"] = ""
    with pytest.raises(ValueError, match="name the text's with --column"):
        run(causal64, text=str(table), **options)
    of_column = run(causal64, text=formats.of(table, column="review"), **options)
    np.testing.assert_equal(of_column, run(causal64, text=str(text), **options))


# norms


def test_sources_are_what_stands_before_the_first_attention(bert, causal64):
    for model, after in ((bert, "ln_embed"), (causal64, ("ln1", 0))):
        document = corpus.documents(model, "sample", 1, 20).first()[0]
        trace = minitx.run(model, document, keep=["embed", ("resid_pre", 0), after])
        words, sums, normed = norms.embedded(model, document)
        assert np.array_equal(words, trace["embed"][0])
        # float32, another order of sums: measured 5e-7
        assert max_error(normed, trace[after][0]) < 1e-5
        if model.config.pre_norm:
            assert np.array_equal(sums, trace["resid_pre", 0][0])


@pytest.mark.parametrize("kind, least", [("norm", 0.9), ("direction", 0.9)])
def test_what_is_built_into_norm_or_direction_is_found_there_alone(kind, least):
    """Rows of random directions whose norms grow; rows that turn, with their norms permuted."""
    rng = np.random.default_rng(0)
    t = np.arange(200)
    rows = rng.standard_normal((200, 16))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if kind == "norm":
        table = rows * (1 + t[:, None] / 100)
    else:
        turn = np.column_stack([np.cos(t / 100), np.sin(t / 100), np.zeros((200, 14))])
        table = turn * rng.permutation(1 + t[:, None] / 100)
    r2, interval, shuffled = norms._of_rows(table, 0)
    share = dict(zip(norms.readouts(None), r2))
    null = dict(zip(norms.readouts(None), shuffled))
    other = {"norm": "direction", "direction": "norm"}[kind]
    assert share[kind] > least  # measured 0.994 and 0.998
    assert share[other] < 0.1
    assert max(null.values()) < 0.1
    assert (interval[:, 0] <= r2).all()
    assert (r2 <= interval[:, 1]).all()


def test_sums_from_counts_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    numbers, y = rng.integers(norms.BINS, size=(5, 9)), rng.permutation(9).astype(float)
    seen = np.eye(norms.BINS)[numbers]  # [N n BINS]
    whole = stats.sums(seen.reshape(-1, norms.BINS), np.tile(y, 5))
    assert max_error(norms.sums_of(seen.sum(axis=0), y), whole) < 1e-12  # measured 0


def test_norms_that_grow_tell_the_place_and_norms_of_noise_do_not(causal64):
    """Rows of noise differ in norm as well, but any other order of the places fits them so."""
    rng = np.random.default_rng(0)
    noise = 20 * rng.standard_normal(causal64.weights.W_pos.shape)
    grown = noise / np.linalg.norm(noise, axis=1)[:, None] * np.arange(50, 50 + len(noise))[:, None]
    answers = []
    for table in grown, noise:
        model = tiny.with_weights(causal64, W_pos=table.astype(np.float32))
        r = norms.norms(model, documents=20)
        answers.append((r["r2_norm"], r["r2_norm_null"], verdict("norms", r)))
    (grown, null, yes), (noise, null_of_noise, no) = answers
    assert (yes, no) == ("yes", "no")
    assert grown > 0.9 and null < 0.9
    assert 0.15 < noise < null_of_noise  # so shuffling in each document alone would say partly


def test_an_answer_on_norms_says_that_the_ends_stand_out(causal64):
    """All rows have one norm but the first and the last, which R² over all rows does not see."""
    table = np.array(causal64.weights.W_pos)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    table[[0, -1]] *= 3
    r = norms.norms(tiny.with_weights(causal64, W_pos=table), documents=6)
    mean = 1 + 4 / len(table)
    np.testing.assert_allclose(norms.ends(r), 3 / mean, rtol=1e-6)
    assert f"the ends: {3 / mean:.2f}, {3 / mean:.2f} mean" in registry.get("norms").answer(r).value


def test_bins_of_norms_are_equally_full():
    x = np.random.default_rng(0).standard_normal((2, 160))
    seen = norms.in_bins(x, norms.edges(x))
    assert seen.shape == (2, 160, norms.BINS)
    assert (seen.sum(axis=-1) == 1).all()
    assert (seen.sum(axis=1) == 10).all()


# shifts


def test_losses_under_a_shift_are_those_of_moved_positions(causal64):
    result = shift.shift(causal64, documents=4, tokens=20, steps=4)
    assert result["shifts"].tolist() == [0, 4, 8, 12]
    assert result["n_predicted"] == 4 * 19
    assert type(result["n_predicted"]) is int  # a count is printed in full
    rows = np.roll(causal64.weights.W_pos, -8, axis=0)
    moved = position_tables.stand_in(rows)
    documents = corpus.documents(causal64, "sample", 4, 20)
    direct = [losses.causal(causal64, document, condition=moved) for document in documents]
    assert result["losses"][2] == pytest.approx(np.mean(direct), abs=1e-12)  # measured 0
    worst = max(result["losses"] - result["loss"], key=abs)
    assert result["worst"] == pytest.approx(worst, abs=1e-12)


def test_a_table_of_equal_rows_knows_no_shift(causal64):
    flat = tiny.with_weights(causal64, W_pos=np.tile(causal64.weights.W_pos[:1], (32, 1)))
    result = shift.shift(flat, documents=3, steps=3)
    assert np.ptp(result["losses"]) == 0
    assert result["worst_null"] == 0
    assert result["change_shuffled"] == 0


def test_the_null_of_a_shift_is_what_random_signs_give():
    """Of 300 sets of changes without effect about 3 pass the null; a common change passes it."""
    rng = np.random.default_rng(0)
    n = np.full((30, 7), 50.0)
    passed = 0
    for seed in range(300):
        total = np.cumsum(rng.standard_normal((30, 7)), axis=1)
        result = shift._changes(total, n, np.arange(5), seed)
        passed += abs(result["worst"]) > result["worst_null"]
    assert passed <= 9  # measured 4
    common = np.array([0, 0, 0, 0, 3, 0, 0])
    result = shift._changes(total + common, n, np.arange(5), 0)
    assert result["worst_at"] == 4
    assert result["worst"] > result["worst_null"]


@pytest.mark.parametrize(
    "worst, half, kind",
    [
        (0.04, 0.005, "no"),
        (-0.09, 0.005, "no"),
        (0.15, 0.005, "partly"),
        (-0.3, 0.005, "yes"),
        (0.09, 0.02, "undecided"),  # it holds both sides of the null and the margin
        (-0.09, 0.02, "undecided"),
        (0.04, 0.1, "undecided"),  # 0 among them
    ],
)
def test_a_shift_matters_beyond_chance_and_beside_positions_at_zero(worst, half, kind):
    numbers = {"worst": worst, "worst_null": 0.05, "change_zero": 2.0, "predicts": "loss"}
    numbers |= {"documents": 8, "worst_interval": np.array([worst - half, worst + half])}
    numbers |= {"loss": 3.0, "loss_null": 5.0}
    assert verdict("shift", numbers) == kind
    useless = numbers | {"loss": 5.2}  # it predicts no better than frequencies
    assert verdict("shift", useless) == "undecided"
    few = "undecided" if kind == "no" else kind  # all signs alike are no rare draw
    assert verdict("shift", numbers | {"documents": 7}) == few


def test_random_weights_know_nothing(causal64):
    """No more of places than other random weights."""
    result = probe.probe(causal64, documents=12, tokens=32, mask="linear")
    enough = {"n_rows": np.array(10 * result["n_features"])}
    assert verdict("probe", result | enough) == "no"
    assert result["r2_on"] > 0.2 > 10 * result["r2_on_null"]  # so shuffled places alone say yes


@pytest.mark.parametrize("r2, kind", [(0.95, "yes"), (0.5, "partly"), (0.2, "no")])
def test_a_place_is_read_off_beyond_random_weights(r2, kind):
    numbers = {"r2_on": r2, "r2_on_interval": (r2 - 0.02, r2 + 0.02), "r2_on_null": 0.0}
    numbers |= {"r2_random": 0.2, "r2_random_interval": (0.15, 0.25), "r2": np.array([[r2, 0.1]])}
    numbers |= {"n_rows": 640, "n_features": 64}
    assert verdict("probe", numbers) == kind
