"""Features and predictions without positions, and the statistics beside them, against theory."""

import csv

import numpy as np
import pytest
import tiny
from analysis_models import gpt2
from scipy.integrate import quad
from scipy.special import log_softmax
from scipy.stats import kstest

import minitx
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry
from minitx.analysis.maths import stats
from minitx.analysis.measures import perplexities, position_tables, residual_stream
from minitx.analysis.texts import corpus, formats

experiment = registry.get("remove-positions")
remove = experiment.run


@pytest.fixture(scope="module")
def result(causal64):
    return remove(causal64, documents=3)


def test_a_model_whose_positions_are_zero_loses_nothing_without_them(causal64):
    flat = tiny.with_weights(causal64, W_pos=np.zeros_like(causal64.weights.W_pos))
    result = remove(flat, documents=2)
    assert np.abs(result["cosine_by_layer"] - 1).max() < 1e-12  # measured 2e-16
    assert np.ptp(result["losses"]) == 0
    assert result["losses"][0] == result["loss"]


def test_losses_and_perplexities_are_those_of_the_logits(causal64, result):
    documents = corpus.documents(causal64, "sample", 3)
    direct = []
    for document in documents:
        trace = minitx.run(causal64, document, keep=["logits"])
        log_p = log_softmax(trace["logits"][0], axis=1)
        direct.append(-log_p[np.arange(documents.T - 1), document[1:]])
    # measured 2e-16: another order of sums
    assert result["loss"] == pytest.approx(np.mean(direct), rel=1e-12)
    conventions = {"perplexity": np.exp(np.mean(direct))}
    conventions["mean_perplexity"] = np.exp(np.mean(direct, axis=1)).mean()
    conventions["token_perplexity"] = np.exp(direct).mean()
    conventions["mixed_perplexity"] = 2 ** np.mean(direct)
    conventions["mixed_mean_perplexity"] = (2 ** np.mean(direct, axis=1)).mean()
    conventions["mixed_token_perplexity"] = np.exp2(direct).mean()
    assert conventions.keys() == perplexities.CONVENTIONS.keys()
    assert result["conventions"].tolist() == [*perplexities.CONVENTIONS.values()]
    assert result["perplexities"][:, 0] == pytest.approx([*conventions.values()], rel=1e-12)
    for name, value in conventions.items():
        assert result[name][0] == pytest.approx(value, rel=1e-12), name
    perplexity = result["perplexity"][0]
    of_documents = result["mean_perplexity"][0]
    of_tokens = result["token_perplexity"][0]
    # Jensen, never equal
    assert perplexity < of_documents
    assert of_documents < of_tokens


def test_cosines_of_pairs_are_those_of_all_pairs(causal64, result):
    """Sums of directions stand for the mean over all pairs, in one document and across them."""
    documents = corpus.documents(causal64, "sample", 3)
    last = [residual_stream.states(causal64, document)[-1] for document in documents]
    x = residual_stream.unit_vectors(np.concatenate(last))
    cosine = x @ x.T
    number = np.repeat(np.arange(3), 32)
    same = number[:, None] == number
    itself = np.eye(len(x), dtype=bool)
    within = cosine[same & ~itself].mean()
    across = cosine[~same].mean()
    # measured 2e-16
    assert result["cosine_null"] == pytest.approx(within, abs=1e-12)
    assert result["cosine_across"] == pytest.approx(across, abs=1e-12)


def test_features_end_with_what_forward_returns(causal64):
    document = corpus.documents(causal64, "sample", 1).first()[0]
    states = residual_stream.states(causal64, document)
    trace = minitx.run(causal64, document, keep=["resid_pre", "ln_final"])
    assert np.array_equal(states[-1], trace["ln_final"][0])
    assert np.array_equal(states[1], trace["resid_pre", 1][0])
    assert len(states) == causal64.config.n_layers + 1


def test_tables_stand_in_for_positions(causal64):
    """Each way against a model that has such a table itself."""
    document = corpus.documents(causal64, "sample", 1).first()[0]
    table = causal64.weights.W_pos
    tables = position_tables.tables(causal64, seed=0)
    assert np.array_equal(tables["shifted"][3], table[3 + len(table) // 2])
    shuffled = np.sort(tables["shuffled"], axis=0)
    assert np.array_equal(shuffled, np.sort(table, axis=0))
    assert np.abs(tables["mean"] - table.mean(axis=0)).max() < 1e-15
    for way, rows in tables.items():
        model = tiny.with_weights(causal64, W_pos=rows)
        own = residual_stream.states(model, document)
        states = residual_stream.states(causal64, document, position_tables.stand_in(rows))
        assert np.array_equal(states, own), way


def test_frequencies_are_compared_with_the_interval(result):
    known = np.exp(result["loss_null"])
    for low, high, verdict in (
        (1.1, 1.2, "worse than"),
        (0.8, 0.9, "better than"),
        (0.9, 1.1, "no better, within its interval, than"),
    ):
        ends = np.outer(np.ones(5), [low * known, high * known])
        text = experiment.says(result | {"perplexity_interval": ends})
        assert f"the model does {verdict} these frequencies" in text
        assert "counted on this very text" in text


def test_counts_are_whole_numbers(result):
    assert {type(result[name]) for name in ("n_tokens", "n_predicted")} == {int}


def test_real_documents_are_measured_whole_and_those_left_out_are_counted(causal64, tmp_path):
    long = "He went out of the room and shut the door. " * 8 + "End."
    rows = [long, "", "x", "Then he came back."]
    with open(tmp_path / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([["review"], *([row] for row in rows)])
    options = {"whole": True, "documents": 0, "stride": 5}
    text = formats.of(tmp_path / "t.csv", column="review")
    result = remove(causal64, text=text, **options)
    lengths = [len(causal64.tokenizer.encode(row)) for row in (rows[0], rows[3])]
    assert lengths[0] > causal64.config.n_ctx  # so that windows are needed
    assert result["documents"] == 2
    assert result["left_out"] == 2
    assert result["stride"] == 5
    assert result["n_tokens"] == sum(lengths)
    assert result["n_predicted"] == sum(lengths) - 2
    assert "2 documents are left out" in experiment.says(result)
    assert "1 document is left out" in experiment.says(result | {"left_out": 1})


def test_a_masked_model_has_pseudo_losses(bert):
    result = remove(bert, documents=2, tokens=40, every=9)
    assert result["predicts"] == "pseudo-loss"
    assert "Pseudo-perplexity, e to the mean loss per token," in experiment.says(result)
    assert result["n_predicted"] == 5 + 5  # 38 ordinary tokens, from the first and from the second
    assert result["loss"] < result["loss_zero"]
    usual = remove(bert, documents=3, tokens=100)
    assert usual["n_predicted"] == 3 * 8  # 98 ordinary tokens: every 13th, from three starts


def test_a_model_works_without_positions_where_next_to_nothing_is_lost(result):
    """Random weights predict worse than frequencies; a bundle loses some, one without has none.

    Two documents are too few to say so.
    """
    assert experiment.answer(result).verdict == "undecided"
    trained = minitx.load("tiny-gpt2")
    flat = tiny.with_weights(trained, W_pos=np.zeros_like(trained.weights.W_pos))
    for model, n, verdict in ((trained, 8, "partly"), (trained, 2, "undecided"), (flat, 8, "yes")):
        answer = experiment.answer(remove(model, documents=n, tokens=100))
        assert answer.verdict == verdict
        assert "e to the mean loss per token" in answer.measure


def test_features_alone_are_no_more_than_a_part_of_an_answer(tmp_path):
    bare = minitx.load(gpt2(tmp_path, head=False))
    result = remove(bare, documents=8)
    assert "loss" not in result
    low, high = result["cosine_interval"]
    for null, verdict in ((low - 0.2, "partly"), (low - 0.05, "undecided"), (high + 0.1, "no")):
        assert experiment.answer(result | {"cosine_null": null}).verdict == verdict


def test_tables_can_be_chosen_and_change_no_number(causal64, result):
    """What a number published for zeros needs, without the cost of the others."""
    alone = remove(causal64, documents=3, ways="zero")
    assert alone["ways"].tolist() == ["zero"]
    assert alone["tables"].tolist() == ["kept", "zero"]
    for name in ("cosine", "loss", "loss_zero", "loss_null"):
        assert alone[name] == result[name]
    assert np.array_equal(alone["perplexities"], result["perplexities"][:, :2])
    assert "cosine_mean" not in alone
    two = remove(causal64, documents=3, ways="shuffled, mean")
    assert two["ways"].tolist() == ["zero", "mean", "shuffled"]
    assert two["cosine_shuffled"] == result["cosine_shuffled"]


@pytest.mark.parametrize("D", [2, 3, 8, 128, 768])
def test_the_density_of_random_cosines_integrates_to_one_and_is_that_of_samples(D):
    """Integrated over the angle, x = cos a, where it has no pole; samples by Kolmogorov-Smirnov."""

    def by_angle(a):
        return stats.cosine_density(np.cos(a), D) * np.sin(a)

    area = quad(by_angle, 0, np.pi, points=[np.pi / 2])[0]
    assert area == pytest.approx(1, abs=1e-9)  # measured 1e-13
    x = stats.random_cosines(D, 5000, seed=0)
    grid = np.linspace(-1, 1, 200_001)[1:-1]
    if D == 2:  # dense where the density has its poles
        grid = np.cos(np.linspace(np.pi, 0, 200_001))[1:-1]
    density = stats.cosine_density(grid, D)
    heights = (density[1:] + density[:-1]) / 2
    areas = heights * np.diff(grid)
    below = np.concatenate([[0], np.cumsum(areas)])
    assert kstest(x, lambda v: np.interp(v, grid, below)).pvalue > 0.01
    quantile = stats.cosine_quantile(0.9, D)
    assert np.interp(quantile, grid, below) == pytest.approx(0.9, abs=0.002)


def test_random_cosines_have_variance_one_over_width():
    x = stats.random_cosines(768, 3500, seed=1)
    assert len(x) == 3500
    assert np.array_equal(x, stats.random_cosines(768, 3500, seed=1))
    assert abs(x.mean()) < 4 / (768 * 3500) ** 0.5  # 4 deviations
    assert x.var() * 768 == pytest.approx(1, abs=0.1)
