"""What tokens and heads add: complete sums, a constructed model, ablation by hand."""

import numpy as np
import pytest
import tiny
from scipy.special import log_softmax

import minitx
from minitx import analysis
from minitx.analysis.measures import attributions

VARIANTS = "gpt2-causal", "bert-sequence", "gpt2-sequence"


def log_p(model, tokens, edits=None):
    """Log-probabilities of classes, or of what comes behind the last token."""
    y = minitx.run(model, tokens, "logits", edits=edits)["logits"][0]
    return log_softmax(y if y.ndim == 1 else y[-1])


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_parts_sum_to_the_difference(variant):
    """Of tokens and of heads: the integral is a sum over few points."""
    model = tiny.load(variant)
    tokens = tiny.ids(model, 7)
    wanted = attributions.likeliest(model, tokens)
    base = np.zeros(model.config.d_model)
    own = log_p(model, tokens)
    assert wanted.what == own.argmax()
    cases = {"embed": attributions.of_tokens(model, wanted, base)}
    cases["z"] = attributions.of_heads(model, wanted)
    for point, parts in cases.items():
        total = (own - log_p(model, tokens, {point: np.zeros_like}))[wanted.what]
        error = abs(parts.integrated.sum() - total) / abs(parts.integrated).max()
        assert error < attributions.COMPLETE and abs(parts.error - error) < 1e-9


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_in_groups_give_what_all_at_once_give(variant, monkeypatch):
    model = tiny.load(variant)
    wanted = attributions.likeliest(model, tiny.ids(model, 7))
    whole = attributions.of_heads(model, wanted)
    cfg = model.config
    row = cfg.n_layers * 7 * (cfg.n_heads * 7 + 12 * cfg.d_model + 4 * cfg.d_mlp)
    monkeypatch.setattr(attributions, "HELD", 3 * row)
    points = {"embed": np.zeros((4, 7, cfg.d_model))}
    groups = attributions._groups(model, wanted, points)
    assert [len(rows["embed"]) for rows in groups] == [3, 1]
    parts = attributions.of_heads(model, wanted)
    for name in ("integrated", "times_input", "ablated"):
        own, other = getattr(parts, name), getattr(whole, name)
        assert np.allclose(own, other, rtol=0, atol=1e-12), name  # measured 1e-15
    monkeypatch.setattr(attributions, "HELD", 1)
    assert len([*attributions._groups(model, wanted, points)]) == 4


def test_ablation_is_a_run_without_the_part():
    model = tiny.load("gpt2-causal")
    tokens = tiny.ids(model, 6)
    wanted = attributions.likeliest(model, tokens)
    parts = attributions.of_heads(model, wanted)

    def without(z):
        z = z.copy()
        z[:, 1] = 0
        return z

    lost = (log_p(model, tokens) - log_p(model, tokens, {("z", 0): without}))[wanted.what]
    assert abs(parts.ablated[0, 1] - lost) < 1e-9
    assert parts.ablated.shape == parts.integrated.shape == (2, model.config.n_heads)


def test_gradient_times_input_is_a_finite_difference():
    model = tiny.load("gpt2-causal")
    tokens = tiny.ids(model, 5)
    wanted = attributions.likeliest(model, tokens)
    parts = attributions.of_tokens(model, wanted, np.zeros(model.config.d_model))
    embed = minitx.run(model, tokens, "embed")["embed"]
    scale = np.ones((2, 5, 1))
    scale[:, 2, 0] = 1 + 1e-6, 1 - 1e-6
    up, down = attributions.values(model, wanted, {"embed": embed * scale})
    assert abs((up - down) / 2e-6 - parts.times_input[2]) < 1e-6


def test_a_hidden_word_is_what_a_masked_model_is_asked():
    model = minitx.load("tiny-roberta")
    tokens = model.tokenizer.encode("The dog ran to the sea.")
    wanted = attributions.likeliest(model, tokens)
    assert wanted.tokens[wanted.place] == 4 and (wanted.tokens != tokens).sum() == 1


def test_a_model_that_reads_fewer_tokens_is_asked_about_all_that_it_reads(tmp_path):
    short, ids = tiny.GOLDEN / "gpt2-causal", tmp_path / "ids.json"
    ids.write_text(str([[5, 6, 7, 8] * 3] * 2))
    r = analysis.run("attribution", short, ids=ids, documents=2)
    assert r.arrays["tokens_integrated"].shape == (2, 12)
    with pytest.raises(ValueError, match="--tokens 32: this model reads 2 to 12 tokens"):
        analysis.run("attribution", short, ids=ids, documents=2, tokens=32)


def test_what_the_experiment_returns():
    r = analysis.run("attribution", "tiny-gpt2", documents=8, tokens=12)
    assert r.arrays["tokens_integrated"].shape == (8, 12)
    assert r.arrays["heads_random"].shape == (8, 4, 4)
    assert r.numbers["error"].value < attributions.COMPLETE
    assert r.numbers["tokens"].value > max(0.3, r.numbers["tokens"].null + 0.2)
    assert (r.arrays["heads_random"] != r.arrays["heads_integrated"]).any()
    assert r.answer.verdict in ("yes", "partly") and "add up to the whole" in r.says
    is_told = [axes for axes in r.figure().axes if axes.get_xlabel() == "head" or axes.patches]
    answer, bars, *maps = is_told
    heights = [patch.get_height() for patch in answer.patches]
    ends = "", "_simple", "_untrained"
    assert heights == [r.arrays[part + end] for end in ends for part in ("tokens", "heads")]
    assert bars.get_ylabel() == f"nats of the log-probability of “{r.arrays['what']}”"
    for axes, way in zip(maps, ("integrated", "ablated", "random")):
        assert np.allclose(axes.images[0].get_array(), r.arrays[f"heads_{way}"].mean(axis=0))
    assert len({axes.images[0].get_clim() for axes in maps}) == 1 and len(maps) == 3
    for axes in maps:  # layers and heads are whole numbers
        ticks = np.concatenate([axes.get_xticks(), axes.get_yticks()])
        assert (ticks == ticks.round()).all()
