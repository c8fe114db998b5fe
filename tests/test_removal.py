"""Features and predictions without positions, and the statistics beside them, against what theory says."""
import csv

import numpy as np
import pytest
from analysis_models import gpt2
from scipy.integrate import quad
from scipy.special import log_softmax
from scipy.stats import kstest

import minitx
import tiny
import weights
from analysis import corpus, draw, registry, stats
from analysis.experiments import removal

remove = registry.get("remove-positions").run


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    return minitx.load(gpt2(tmp_path_factory.mktemp("gpt2")), dtype=np.float64)


@pytest.fixture(scope="module")
def found(causal):
    return remove(causal, documents=3)


def test_a_model_whose_positions_are_zero_loses_nothing_without_them(causal):
    flat = tiny.with_weights(causal, W_pos=np.zeros_like(causal.weights.W_pos))
    found = remove(flat, documents=2)
    assert np.abs(found["cosine_by_layer"] - 1).max() < 1e-12  # measured 2e-16
    assert np.ptp(found["losses"]) == 0 and found["losses"][0] == found["loss"]


def test_losses_and_perplexities_are_those_of_the_logits(causal, found):
    documents = corpus.documents(causal, "sample", 3)
    direct = []
    for document in documents:
        y = minitx.run(causal, document, keep=["logits"])["logits"][0]
        direct.append(-log_softmax(y, axis=1)[np.arange(documents.T - 1), document[1:]])
    assert found["loss"] == pytest.approx(np.mean(direct), rel=1e-12)  # measured 2e-16: another order of sums
    conventions = {"perplexity": np.exp(np.mean(direct)), "mean_perplexity": np.exp(np.mean(direct, axis=1)).mean(),
                   "token_perplexity": np.exp(direct).mean(), "mixed_perplexity": 2 ** np.mean(direct)}
    for name, value in conventions.items():
        assert found[name][0] == pytest.approx(value, rel=1e-12), name
    assert 2 ** found["loss_bits"][0] == pytest.approx(found["perplexity"][0], rel=1e-12)  # bits go with 2
    assert found["perplexity"][0] < found["mean_perplexity"][0] < found["token_perplexity"][0]  # Jensen, never equal


def test_cosines_of_pairs_are_those_of_all_pairs(causal, found):
    """Sums of directions stand for the mean over all pairs, in one document and across them."""
    last = [removal.features(causal, document)[-1] for document in corpus.documents(causal, "sample", 3)]
    x = removal.directions(np.concatenate(last))
    cosine, document = x @ x.T, np.repeat(np.arange(3), 32)
    same, itself = document[:, None] == document, np.eye(len(x), dtype=bool)
    assert found["cosine_null"] == pytest.approx(cosine[same & ~itself].mean(), abs=1e-12)  # measured 2e-16
    assert found["cosine_across"] == pytest.approx(cosine[~same].mean(), abs=1e-12)


def test_features_end_with_what_forward_returns(causal):
    document = corpus.documents(causal, "sample", 1).first()[0]
    found, trace = removal.features(causal, document), minitx.run(causal, document, keep=["resid_pre", "ln_final"])
    assert np.array_equal(found[-1], trace["ln_final"][0]) and np.array_equal(found[1], trace["resid_pre", 1][0])
    assert len(found) == causal.config.n_layers + 1


def test_tables_stand_in_for_positions(causal):
    """Each way against a model that has such a table itself."""
    document, table = corpus.documents(causal, "sample", 1).first()[0], causal.weights.W_pos
    tables = removal.tables(causal, seed=0)
    assert np.array_equal(tables["shifted"][3], table[3 + len(table) // 2])
    assert np.array_equal(np.sort(tables["shuffled"], axis=0), np.sort(table, axis=0))
    assert np.abs(tables["mean"] - table.mean(axis=0)).max() < 1e-15
    for way, rows in tables.items():
        own = removal.features(tiny.with_weights(causal, W_pos=rows), document)
        assert np.array_equal(removal.features(causal, document, removal.stand_in(rows)), own), way


def test_frequencies_are_compared_with_the_interval(found):
    known = np.exp(found["loss_null"])
    for low, high, verdict in ((1.1, 1.2, "worse than"), (0.8, 0.9, "better than"),
                               (0.9, 1.1, "as well, within its interval, as")):
        ends = np.outer(np.ones(5), [low * known, high * known])
        text = removal.says(found | {"perplexity_interval": ends})
        assert f"the model does {verdict} these frequencies" in text and "counted on this very text" in text


def test_one_column_of_a_table_is_read_as_full_documents(causal, tmp_path):
    with open(tmp_path / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([["n", "review"], *([i, "He went out of the room. " * 4] for i in range(9))])
    with open(tmp_path / "t.txt", "w") as file:
        file.write("He went out of the room. " * 4 + "\n" + ("He went out of the room. " * 4 + "\n") * 8)
    table, plain = (remove(causal, text=str(tmp_path / name), documents=2, column=column)
                    for name, column in (("t.csv", "review"), ("t.txt", "")))
    assert table["loss"] == plain["loss"] and table["cosine"] == plain["cosine"]


def test_counts_are_whole_numbers(found):
    assert {type(found[name]) for name in ("n_tokens", "n_predicted")} == {int}


def test_real_documents_are_measured_whole_and_those_left_out_are_counted(causal, tmp_path):
    rows = ["He went out of the room and shut the door. " * 8 + "End.", "", "x", "Then he came back."]
    with open(tmp_path / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([["review"], *([row] for row in rows)])
    found = remove(causal, text=str(tmp_path / "t.csv"), whole=1, column="review", documents=0, stride=5)
    lengths = [len(causal.tokenizer.encode(row)) for row in (rows[0], rows[3])]
    assert lengths[0] > causal.config.n_ctx  # so that windows are needed
    assert (found["documents"], found["left_out"], found["stride"]) == (2, 2, 5)
    assert found["n_tokens"] == sum(lengths) and found["n_predicted"] == sum(lengths) - 2
    assert "2 documents are left out" in removal.says(found)
    assert "1 document is left out" in removal.says(found | {"left_out": 1})


def test_a_masked_model_has_pseudo_losses():
    bert = minitx.load(weights.find("tiny-bert"))
    found = remove(bert, documents=2, tokens=40, every=9)
    assert found["predicts"] == "pseudo-loss" and "Pseudo-perplexity per token" in removal.says(found)
    assert found["n_predicted"] == 5 + 5  # 38 ordinary tokens, from the first and from the second
    assert found["loss"] < found["loss_zero"]


@pytest.mark.parametrize("options, message", [
    ({"whole": 2}, "--whole is 2; wanted 0 to 1"), ({"every": 0}, "--every is 0; wanted 1 or more"),
    ({"stride": 32}, "--stride is 32; wanted 0 to 31"), ({"stride": -1}, "--stride is -1; wanted 0 to 31"),
    ({"stride": 8}, "--stride 8 goes with --whole 1"),
    ({"documents": 1}, "--documents: 1 read; an interval over documents needs at least 2")])
def test_bad_options_are_noticed(causal, options, message):
    with pytest.raises(ValueError, match=message):
        remove(causal, **options)


# statistics

@pytest.mark.parametrize("D", [2, 3, 8, 128, 768])
def test_the_density_of_random_cosines_integrates_to_one_and_is_that_of_samples(D):
    """Integrated over the angle, x = cos a, where it has no pole; the samples by Kolmogorov-Smirnov."""
    area = quad(lambda a: stats.cosine_density(np.cos(a), D) * np.sin(a), 0, np.pi, points=[np.pi / 2])[0]
    assert area == pytest.approx(1, abs=1e-9)  # measured 1e-13
    x = stats.random_cosines(D, 5000, seed=0)
    grid = np.linspace(-1, 1, 200_001)[1:-1] if D > 2 else np.cos(np.linspace(np.pi, 0, 200_001))[1:-1]
    density = stats.cosine_density(grid, D)
    below = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))])
    assert kstest(x, lambda v: np.interp(v, grid, below)).pvalue > 0.01
    assert np.interp(stats.cosine_quantile(0.9, D), grid, below) == pytest.approx(0.9, abs=0.002)


def test_random_cosines_have_variance_one_over_width():
    x = stats.random_cosines(768, 3500, seed=1)
    assert len(x) == 3500 and np.array_equal(x, stats.random_cosines(768, 3500, seed=1))
    assert abs(x.mean()) < 4 / (768 * 3500) ** 0.5 and x.var() * 768 == pytest.approx(1, abs=0.1)  # 4 deviations


def test_bootstrap_intervals_cover_what_they_say():
    """Ratios of sums in 400 data sets: of 95 % intervals about 95 % hold the true ratio, 2."""
    rng, held = np.random.default_rng(0), 0
    for i in range(400):
        n = rng.integers(5, 50, 80)
        low, high = stats.bootstrap(2 * n + rng.normal(0, 5, 80), n, n=300, seed=i)
        held += low < 2 < high
    assert 0.9 < held / 400 < 0.98  # measured 0.94


def test_bootstrap_takes_sums_or_means_and_any_axes():
    rng = np.random.default_rng(0)
    n, mean = rng.integers(1, 9, 30), rng.standard_normal((30, 2, 3))
    means = stats.bootstrap(mean, n, "mean")
    assert means.shape == (2, 2, 3) and (means[0] < means[1]).all()
    assert np.abs(means - stats.bootstrap(mean * n[:, None, None], n)).max() < 1e-12  # measured 2e-16
    assert np.array_equal(stats.bootstrap(mean, seed=3), stats.bootstrap(mean, np.ones(30), seed=3))
    assert not np.array_equal(stats.bootstrap(mean, seed=3), stats.bootstrap(mean, seed=4))
    with pytest.raises(ValueError, match="statistic is 'median'; there are: ratio, mean"):
        stats.bootstrap(mean, statistic="median")
