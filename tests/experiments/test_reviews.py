"""The probe: logistic regression against other ways to the same numbers, signals, and nulls."""

import json
import os
from dataclasses import replace
from functools import partial

import numpy as np
import outcomes
import pytest
import tiny
from distance import max_error
from scipy.optimize import approx_fprime, minimize

import minitx
from minitx.analysis import __main__ as cli
from minitx.analysis.contract import registry
from minitx.analysis.experiments import reviews
from minitx.analysis.maths import logistic
from minitx.analysis.measures import document_features
from minitx.analysis.texts import corpus, formats

run = partial(outcomes.run, "reviews")
says = partial(outcomes.says, "reviews")


def gaussian(N, F, K=2, distance=1.0, seed=0):
    """K classes of equal size around means `distance` apart: X [N F], y [N], means [K F]."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((K, F))
    means *= distance / np.linalg.norm(means[0] - means[1])
    y = rng.permutation(np.arange(N) % K)
    return means[y] + rng.standard_normal((N, F)), y, means


# logistic regression


@pytest.mark.parametrize("K", [2, 4])
def test_the_gradient_and_the_curvature_are_those_of_the_loss(K):
    X, y, _ = gaussian(40, 5, K)
    rng = np.random.default_rng(1)
    W, V = rng.standard_normal((2, 6, K))

    def value(w):
        return logistic.loss(w.reshape(W.shape), X, y, 0.7)[0]

    slope = logistic.loss(W, X, y, 0.7)[1]
    # steps of 1.5e-8: measured 3e-8
    assert max_error(approx_fprime(W.ravel(), value), slope.ravel()) < 1e-6
    step = 1e-6
    above = logistic.loss(W + step * V, X, y, 0.7)[1]
    below = logistic.loss(W - step * V, X, y, 0.7)[1]
    curvature = logistic.curvature(W, V, X, 0.7)
    assert max_error((above - below) / (2 * step), curvature) < 1e-8  # measured 2e-10


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_the_fit_is_the_minimum(C, K):
    X, y, _ = gaussian(200, 10, K)
    W = logistic.fit(X, y, C)
    assert np.abs(logistic.loss(W, X, y, C)[1]).max() < 1e-8  # measured 8e-10 at most

    def value(w):
        return logistic.loss(w.reshape(W.shape), X, y, C)[0]

    other = minimize(value, np.zeros(W.size), method="BFGS", options={"gtol": 1e-6})
    assert logistic.loss(W, X, y, C)[0] <= other.fun
    # slopes by differences: measured 3e-11
    assert other.fun - logistic.loss(W, X, y, C)[0] < 1e-9 * other.fun


def test_two_classes_are_the_usual_logistic_regression():
    """-ln sigma(s (x w + b)) summed, with |w|^2 / (2 C'), C' = 2 C."""
    X, y, _ = gaussian(150, 4)
    W = logistic.fit(X, y, 0.5)
    C = 1.0

    def usual(w):
        losses = np.logaddexp(0, -(2 * y - 1) * (X @ w[:-1] + w[-1]))
        return losses.sum() + w[:-1] @ w[:-1] / (2 * C)

    w = minimize(usual, np.zeros(5), method="BFGS", options={"gtol": 1e-6}).x
    assert max_error(W[:, 1] - W[:, 0], w) < 1e-6  # slopes by differences: measured 3e-8


def test_separable_classes_are_told_apart_and_the_penalty_bounds_the_weights():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    y = np.array([0, 0, 1, 1])
    weak = logistic.fit(X, y, 0.01)
    strong = logistic.fit(X, y, 100.0)
    assert np.abs(weak).max() < np.abs(strong[:-1]).max() < 10
    assert logistic.probe(X, y, X, C=1.0)[0].tolist() == [0, 0, 1, 1]


def test_one_class_is_nothing_to_learn():
    with pytest.raises(ValueError, match="all 3 labels are the same; wanted two classes or more"):
        logistic.fit(np.eye(3), np.zeros(3, int), 1.0)


def test_features_that_are_no_numbers_are_noticed():
    X, y, _ = gaussian(50, 5)
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match="the features of 1 of 50 rows are not finite"):
        logistic.fit(X, y, 1.0)


def test_a_fit_that_does_not_end_is_no_result(monkeypatch):
    X, y, _ = gaussian(50, 5, K=3)

    def one_step(f, start, **_):
        return minimize(f, start, jac=True, method="L-BFGS-B", options={"maxiter": 1})

    monkeypatch.setattr("scipy.optimize.minimize", one_step)
    message = r"no minimum found: the gradient is still 0\.\d+ \(STOP"
    with pytest.raises(RuntimeError, match=message):
        logistic.fit(X, y, 1.0)
    monkeypatch.setattr(logistic, "STEPS", 1)
    with pytest.raises(RuntimeError, match=r"no minimum found: .* \(after 1 steps\)"):
        logistic.fit(X, y > 0, 1.0)


@pytest.mark.parametrize("N", [12, 400])
@pytest.mark.parametrize("C", logistic.STRENGTHS)
def test_two_classes_are_fitted_as_many_are(N, C):
    """By the exact curvature, also with fewer rows than features, or by products with it."""
    X, y, _ = gaussian(N, 30)
    exact, by_products = logistic.fit(X, y, C), logistic._fit_many(X, y, C)
    assert np.linalg.norm(logistic.loss(exact, X, y, C)[1]) < 2e-8  # each ends below 1e-8
    value, other = (logistic.loss(W, X, y, C)[0] for W in (exact, by_products))
    assert abs(value - other) < 1e-12  # measured 2e-14
    assert max_error(X @ exact[:-1], X @ by_products[:-1]) < 1e-4  # measured 2e-6


def test_units_and_constant_columns_change_nothing():
    X, y, _ = gaussian(300, 4)
    held_out, _, _ = gaussian(300, 4, seed=1)
    plain, C = logistic.probe(X, y, held_out)

    def scaled(a):
        """The first column in other units, and a constant one added."""
        return np.column_stack([1e6 * a[:, 0] - 7e6, a[:, 1:], np.full(len(a), 3.0)])

    assert np.array_equal(logistic.probe(scaled(X), y, scaled(held_out))[0], plain)
    assert C in logistic.STRENGTHS


def test_what_is_held_out_has_no_say_in_the_fit():
    X, y, _ = gaussian(200, 6)
    alone = logistic.probe(X, y, X[:50])[0]
    among = logistic.probe(X, y, np.vstack([X[:50], np.full((50, 6), 1e6)]))[0]
    assert np.array_equal(alone, among[:50])
    assert len(np.unique(alone)) == 2


def test_a_planted_signal_is_found_at_the_best_possible_rate():
    """Two classes 2 deviations apart: the best rule is right in Phi(1) = 84.1% of the cases."""
    X, y, means = gaussian(4000, 20, distance=2.0)
    held_out = np.arange(4000) >= 2000
    guess, _ = logistic.probe(X[~held_out], y[~held_out], X[held_out])
    distances = [((X[held_out] - mean) ** 2).sum(axis=1) for mean in means]
    best = ((distances[1] < distances[0]) == y[held_out]).mean()
    assert (guess == y[held_out]).mean() > best - 0.02  # measured 0.0015 above
    assert abs(best - 0.8413) < 0.025  # three standard errors of 2,000


def test_shuffled_labels_are_at_chance():
    """On average: single shuffles stray far where they go along or against a strong direction."""
    chance = {}
    for distance in (0.0, 4.0):
        X, y, _ = gaussian(1200, 30, distance=distance)
        train = X[:800]
        train_y = y[:800]
        held_out = X[800:]
        held_out_y = y[800:]
        chance[distance] = logistic.shuffled(train, train_y, held_out, held_out_y, 1.0, 40, seed=0)
        # four standard errors of the wider: measured 0.007, 0.002
        assert abs(chance[distance].mean() - 0.5) < 0.04
    guess, _ = logistic.probe(train, train_y, held_out)
    assert (guess == held_out_y).mean() > 0.9  # measured 0.97
    # measured 3.1: so the null must be made with these features
    assert chance[4.0].std() > 2 * chance[0.0].std()


def test_the_penalty_is_strong_for_noise_and_weak_for_a_signal():
    X, y, _ = gaussian(400, 50, distance=8.0)
    noise = np.random.default_rng(0).standard_normal(X.shape)
    assert logistic.choose_C(noise, y) == logistic.STRENGTHS[0] < logistic.choose_C(X, y)


@pytest.mark.parametrize(
    "counts, share, aside",
    [((6, 3), 1 / 3, (2, 1)), ((2, 50), 0.01, (1, 1)), ((2, 2), 0.99, (1, 1))],
)
def test_every_class_is_on_both_sides_of_a_split(counts, share, aside):
    y = np.repeat([0, 1], counts)
    held_out = logistic.stratified(y, share, np.random.default_rng(0))
    assert np.bincount(y[held_out]).tolist() == list(aside)


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    n = 100
    hits = np.zeros(2)
    for _ in range(1000):
        skill = rng.random(n)
        a = skill < 0.9  # right in 0.9 and 0.8 of the cases, paired
        b = np.where(rng.random(n) < 0.8, skill < 0.8, rng.random(n) < 0.8)
        low, high = logistic.wilson(a)
        hits[0] += low <= 0.9 <= high
        low, high = logistic.paired(a, b)
        hits[1] += low <= 0.1 <= high
    assert np.all(np.abs(hits / 1000 - 0.95) < 0.03)  # four standard errors: measured 0.943, 0.958


def test_intervals_at_the_ends():
    # Wilson's, by hand
    assert logistic.wilson(np.ones(10, bool)) == pytest.approx([0.7225, 1], abs=1e-4)
    assert logistic.wilson(np.zeros(10, bool))[0] == 0
    same = np.arange(10) < 5
    low, high = logistic.paired(same, same)
    assert low == -high
    assert 0 < high < 0.2
    always = np.ones(10, bool)
    never = np.zeros(10, bool)
    # 10/12 -+ 1.96 sqrt(11 - 100/12)/12
    assert logistic.paired(always, never) == pytest.approx([0.5666, 1], abs=1e-4)
    assert np.array_equal(logistic.paired(~same, same), -logistic.paired(same, ~same)[::-1])


# features

DOCUMENTS = [np.arange(5, 5 + n) for n in (2, 7, 32)]


@pytest.fixture
def computed(monkeypatch, tmp_path):
    """How often a forward pass was asked for, with features kept in tmp_path."""
    monkeypatch.setenv("MINITX_CACHE", str(tmp_path))
    calls = []
    forward = minitx.forward

    def counted(model, *arguments, **options):
        calls.append(1)
        return forward(model, *arguments, **options)

    monkeypatch.setattr(document_features.minitx, "forward", counted)
    return calls


@pytest.mark.parametrize(
    "pool, of",
    [("mean", lambda x: x.mean(axis=0)), ("last", lambda x: x[-1]), ("first", lambda x: x[0])],
)
def test_features_are_pooled_final_features(bundled, pool, of):
    features = document_features.pooled(bundled, DOCUMENTS, pool)
    no_positions = {"pos_embed": np.zeros_like}
    for i, document in enumerate(DOCUMENTS):
        plain = minitx.forward(bundled, document)[0]
        trace = minitx.run(bundled, document, keep=[("resid_post", 3)], edits=no_positions)
        zero = trace["resid_post", 3][0]
        assert max_error(features["kept"][i], of(plain)) < 1e-6  # float32: measured 2.4e-7
        assert max_error(features["zero"][i], of(zero)) < 1e-6
    assert not np.allclose(features["shuffled"], features["kept"])
    assert not np.allclose(features["random"], features["kept"])


def test_the_versions_are_what_they_are_called(bundled):
    versions = document_features.versions(bundled, seed=0)
    assert not versions["zero"].weights.W_pos.any()
    assert versions["kept"] is bundled
    table = bundled.weights.W_pos
    mixed = versions["shuffled"].weights.W_pos
    offset = bundled.config.offset
    assert np.array_equal(mixed[:offset], table[:offset])
    assert not np.array_equal(mixed, table)
    assert sorted(map(bytes, mixed)) == sorted(map(bytes, table))
    for (name, x), (_, noise) in zip(tiny.walk(bundled), tiny.walk(versions["random"])):
        assert noise.shape == x.shape
        assert noise.dtype == x.dtype
        error = 5 * x.std() / x.size**0.5 + 1e-7
        assert abs(noise.mean(dtype=float) - x.mean(dtype=float)) < error, name
        if x.size >= 2 and x.std() != 0:
            correlation = np.corrcoef(noise.ravel(), x.ravel())[0, 1]
            assert abs(correlation) < 6 / x.size**0.5, name


def test_features_are_computed_once(bundled, computed, tmp_path):
    first = document_features.pooled(bundled, DOCUMENTS)
    n = len(computed)
    again = document_features.pooled(bundled, [*DOCUMENTS])
    assert n == len(DOCUMENTS) * len(document_features.VERSIONS)
    assert len(computed) == n
    assert all(first[name].tobytes() == again[name].tobytes() for name in first)
    assert first["kept"].dtype == again["kept"].dtype == np.float32
    assert len([*(tmp_path / "features").iterdir()]) == 1  # and no draft is left


def changed(model):
    """What features depend on, one thing changed at a time: its name, then what pooled takes."""
    b_Q = model.layers[2].b_Q.copy()
    b_Q[3] += 1e-6
    yield "a weight", tiny.with_weights(model, layers={2: {"b_Q": b_Q}}), DOCUMENTS, "mean", 0
    other = replace(model, config=replace(model.config, eps=1e-4))
    yield "the settings", other, DOCUMENTS, "mean", 0
    yield "a token", model, [*DOCUMENTS[:2], np.r_[DOCUMENTS[2][:-1], 5]], "mean", 0
    moved = [DOCUMENTS[0], *np.split(np.concatenate(DOCUMENTS[1:]), [8])]
    yield "where a document ends", model, moved, "mean", 0
    yield "their order", model, DOCUMENTS[::-1], "mean", 0
    yield "the pool", model, DOCUMENTS, "last", 0
    yield "the seed", model, DOCUMENTS, "mean", 1


def test_no_kept_features_are_taken_when_anything_changes(bundled, computed, monkeypatch):
    document_features.pooled(bundled, DOCUMENTS)
    for what, *case in changed(bundled):
        n = len(computed)
        document_features.pooled(*case)
        assert len(computed) > n, what
    n = len(computed)
    monkeypatch.setattr(document_features.np, "__version__", "0")
    document_features.pooled(bundled, DOCUMENTS)
    assert len(computed) > n


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:900] + b"\xff" * 64 + raw[964:],
        lambda raw: b"",
        lambda raw: b"no archive",
    ],
)
def test_a_damaged_cache_is_computed_again(bundled, computed, tmp_path, damage):
    first = document_features.pooled(bundled, DOCUMENTS)
    [path] = (tmp_path / "features").iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    n = len(computed)
    again = document_features.pooled(bundled, DOCUMENTS)
    assert len(computed) > n
    assert path.read_bytes() == whole
    assert all(np.array_equal(first[name], again[name]) for name in first)


def test_a_cache_that_cannot_be_written_is_said(bundled, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINITX_CACHE", str(tmp_path / "file"))
    assert len(document_features.pooled(bundled, DOCUMENTS)["kept"]) == 3
    assert "minitx: features are not kept: " in capsys.readouterr().err


def test_the_cache_lies_where_caches_lie(monkeypatch, tmp_path):
    assert str(document_features.folder()) == os.path.join(os.environ["MINITX_CACHE"], "features")
    monkeypatch.delenv("MINITX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert document_features.folder() == tmp_path / "minitx/features"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert document_features.folder() == tmp_path / ".cache/minitx/features"


def test_the_first_token_of_a_causal_model_is_no_pool(causal):
    with pytest.raises(ValueError, match="first token of a causal model sees nothing but itself"):
        document_features.pooled(causal, DOCUMENTS, "first")


# the experiment


def rows(n, labels=("bad", "good"), seed=0):
    """Labelled lines of JSON in which the label's own words stand among others."""
    rng = np.random.default_rng(seed)
    words = "the film was a long one and I saw it with my friend last night".split()
    for i in range(n):
        label = labels[i % len(labels)]
        text = " ".join([*rng.permutation(words), label, *rng.permutation(words)[: i % 7]])
        yield json.dumps({"text": text, "label": label}) + "\n"


def written(path, lines):
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def test_word_order_needs_positions_and_without_them_a_bidirectional_model_is_at_chance(bundled):
    result = run(bundled, documents=120)
    assert result["accuracy"] > 0.9 > result["accuracy_null"]  # measured 1.0 and 0.68
    assert result["worth_interval"][0] > 0.2  # measured 0.39
    low, high = result["intervals"][1]
    assert low < 0.5 < high  # nothing at all is left in the features: the next test


def test_without_positions_the_mean_features_of_any_order_are_the_same(bundled):
    tokens = corpus.documents(bundled, "sample", 1, 32).first()[0]
    mixed = corpus.documents(bundled, "sample", 1, 32).shuffled(0, tokens, 0)
    features = document_features.pooled(bundled, [tokens, mixed])
    zero, kept = (max_error(features[name][0], features[name][1]) for name in ("zero", "kept"))
    assert zero < 1e-5 < kept  # float32 sums: measured 5e-7, 1.2


def test_word_order_windows_are_of_both_kinds_and_held_out_from_another_part(bundled):
    source = reviews.ordered(bundled, formats.of("sample"), 30, 0, seed=0)
    plain = corpus.documents(bundled, "sample", 30, reviews.WINDOW)
    sources = zip(source.documents, plain, source.labels, strict=True)
    for i, (document, window, label) in enumerate(sources):
        expected = plain.shuffled(i, window, 0) if label == "shuffled" else window
        assert np.array_equal(document, expected)
    pairs = np.array(source.labels).reshape(-1, 2)
    assert (np.sort(pairs, axis=1) == ["in order", "shuffled"]).all()
    assert len(set(pairs[:, 0])) == 2
    names, y, held_out = reviews.split([source], "order", seed=0)
    assert names == ["in order", "shuffled"]
    assert np.flatnonzero(held_out).tolist() == [*range(20, 30)]
    assert [names[k] for k in y] == source.labels


def test_labels_that_stand_in_the_words_are_found_without_positions_too(bundled, tmp_path):
    train, test = (written(tmp_path / f"{seed}.jsonl", rows(40, seed=seed)) for seed in (0, 1))
    result = run(bundled, text=train, test=test)
    # measured 1, 1
    assert result["accuracy"] > 0.9
    assert result["accuracy_zero"] > 0.9
    assert result["n_train"] == result["n_held_out"] == 40
    assert result["worth_interval"][0] <= 0 <= result["worth_interval"][1]
    assert result["task"] == "documents (bad or good)"
    digests = [formats.sha256(tmp_path / f"{seed}.jsonl") for seed in (0, 1)]
    assert result["texts"].tolist() == digests
    assert "which holds 0: no difference is shown" in says(result)


def test_labels_that_say_nothing_are_not_found(bundled, tmp_path):
    lines = []
    for i, line in enumerate(rows(120)):
        neutral = line.replace("good", "bad")
        lines.append(neutral.replace('"label": "bad"', f'"label": {i % 2}'))
    result = run(bundled, text=written(tmp_path / "t.jsonl", lines))
    low, high = result["interval"]
    assert low < 0.5 < high
    assert result["n_held_out"] == 40
    assert result["n_train"] == 80
    assert result["accuracy"] <= result["accuracy_null"]  # measured 0.525, 0.625
    assert "no better than shuffled labels" in says(result)
    assert outcomes.verdict("reviews", result) == "undecided"


@pytest.mark.parametrize(
    "zero, shuffled, kind",
    [
        ((0.1, 0.3), (0.1, 0.3), "yes"),
        ((0.1, 0.3), (-0.1, 0.01), "partly"),
        ((-0.1, 0.01), (0.1, 0.3), "partly"),
        ((-0.1, 0.01), (-0.1, 0.01), "no"),
        ((-0.1, 0.3), (-0.1, 0.01), "undecided"),  # it holds both sides
    ],
)
def test_positions_are_needed_where_both_ways_without_them_cost_something(zero, shuffled, kind):
    numbers = {"accuracy": 0.9, "accuracy_zero": 0.7, "accuracy_null": 0.6}
    numbers |= {"worth_interval": zero, "worth_shuffled_interval": shuffled}
    numbers |= {"worth": np.mean(zero), "worth_shuffled": np.mean(shuffled)}
    numbers |= {"n_rows": 640, "n_features": 64}
    answer = registry.get("reviews").answer(numbers | {"task": "documents (neg or pos)"})
    assert answer.verdict == kind
    classified = "that a linear probe classifies correctly"
    assert answer.measure == f"held-out documents (neg or pos) {classified}"
    long = "documents (" + " or ".join(map(str, range(99)))
    many = registry.get("reviews").answer(numbers | {"task": long})
    assert many.measure == f"held-out documents {classified}"


def test_the_split_is_of_each_class_and_by_the_seed(bundled, tmp_path):
    text = written(tmp_path / "t.jsonl", rows(60, ("a", "b", "c")))
    source = reviews.labelled(bundled, formats.of(text), 0, 0, 0)
    names, y, held_out = reviews.split([source], "labels", seed=0)
    assert names == ["a", "b", "c"]
    assert np.bincount(y[held_out]).tolist() == [7, 7, 7]
    assert not np.array_equal(held_out, reviews.split([source], "labels", seed=1)[2])


def test_long_and_empty_documents_are_counted(causal, tmp_path):
    lines = [
        *rows(40),
        '{"text": "", "label": "good"}\n',
        '{"text": "a", "label": "bad"}\n',
        json.dumps({"text": "very " * 200, "label": "bad"}) + "\n",
    ]
    result = run(causal, text=written(tmp_path / "t.jsonl", lines))
    assert result["n_skipped"] == 2
    assert result["n_cut"] >= 1
    assert result["n_train"] + result["n_held_out"] == 41
    assert run(causal, text=str(tmp_path / "t.jsonl"), tokens=5)["n_cut"] == 41


def test_the_same_seed_gives_the_same_numbers_and_another_another_split(causal):
    first, again, other = (run(causal, documents=60, seed=seed) for seed in (0, 0, 1))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["null_accuracies"], other["null_accuracies"])


@pytest.mark.parametrize(
    "content, options, message",
    [
        ("", {"task": "labels"}, r"t.jsonl' has 0 documents; wanted at least 1"),
        (
            '{"text": "one two three"}\n',
            {"task": "labels"},
            "1 of 1 documents have no label, t.jsonl, line 1 among them",
        ),
        (
            '{"text": "one two", "label": "x"}\n{"text": "three four"}\n',
            {},
            "1 of 2 documents have no label, t.jsonl, line 2 among them",
        ),
        (
            '{"text": "one two"}\n{"text": "three four", "label": "x"}\n',
            {},
            "1 of 2 documents have no label, t.jsonl, line 1 among them",
        ),
        (
            [*rows(12, ("good",))],
            {},
            "all 12 documents have the label 'good'; wanted two classes or more",
        ),
        (
            [*rows(6)],
            {},
            "needs at least 5 training documents of each class and one held out; "
            "there are 2 bad, 2 good",
        ),
        (
            [*rows(20)],
            {"task": "order", "label": "label"},
            "--column and --label need --task labels",
        ),
        ([*rows(20)], {"label": "stars"}, "no column 'stars'; .*; available: text, label"),
        ([*rows(20)], {"tokens": 300}, "--tokens is 300; wanted 4 to 256"),
        ([*rows(20)], {"documents": 30}, r"t.jsonl' has 20 documents; wanted 30"),
        ([*rows(20)], {"test": "/nowhere"}, "no text file '/nowhere'"),
    ],
)
def test_what_cannot_be_measured_is_said(bundled, tmp_path, content, options, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        run(bundled, text=written(tmp_path / "t.jsonl", content), **options)


@pytest.mark.parametrize("labels, wanted", [(("", "good"), "1 of 2"), (("", ""), "2 of 2")])
def test_empty_cells_of_a_column_for_labels_are_told(bundled, tmp_path, labels, wanted):
    lines = [f"one two three,{label}\n" for label in labels]
    text = written(tmp_path / "t.csv", ["text,label\n", *lines])
    message = f"{wanted} documents have no label, t.csv, row 2 among them"
    with pytest.raises(ValueError, match=message):
        run(bundled, text=text)


def test_labels_of_the_held_out_text_alone_are_noticed(bundled, tmp_path):
    train = written(tmp_path / "a.jsonl", ['{"text": "one two three"}\n'] * 9)
    test = written(tmp_path / "b.jsonl", rows(20))
    message = "a.jsonl': 9 of 9 documents have no label, a.jsonl, line 1 among them"
    with pytest.raises(ValueError, match=message):
        run(bundled, text=train, test=test)


def test_a_held_out_text_with_other_labels_is_noticed(bundled, tmp_path):
    train = written(tmp_path / "a.jsonl", rows(20))
    test = written(tmp_path / "b.jsonl", rows(20, ("good", "ugly")))
    message = "labels that the training text lacks: ugly; available: bad, good"
    with pytest.raises(ValueError, match=message):
        run(bundled, text=train, test=test)


def test_too_few_windows_leave_the_task_out_of_a_report(bundled):
    message = "needs at least 5 training documents of each class"
    with pytest.raises(registry.NotApplicable, match=message):
        run(bundled, documents=2)


def test_a_run_on_labels_is_written_and_drawn(tmp_path):
    lines = ["review,stars\n"]
    for i in range(12):
        lines += [f"It was {word} {i} times.,{word}\n" for word in ("bad", "good")]
    text = written(tmp_path / "t.csv", lines)
    out = tmp_path / "out"
    columns = ["--column", "review", "--label", "stars"]
    options = ["--text", text, *columns, "--pool", "first", "--out", str(out)]
    assert cli.main(["run", "reviews", "tiny-roberta", *options]) == 0
    record = json.loads((out / "reviews.json").read_text(encoding="utf-8"))
    assert record["settings"]["text"]["sha256"] == formats.sha256(tmp_path / "t.csv")
    assert "held-out documents (bad or good)" in record["says"]
    assert "positions at zero" in (out / "reviews.svg").read_text(encoding="utf-8")
    files = {path.name for path in out.glob("[!.]*")}
    assert files == {"reviews.json", "reviews.npz", "reviews.svg"}
