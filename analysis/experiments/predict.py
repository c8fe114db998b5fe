"""What the model expects at each place of a sentence, and how much the sentence helped.

n places, k guesses for each, V vocabulary. A masked LM has one token hidden at a time (or all those written
as <mask>); a causal LM reads from the left and guesses the next token. Order: the picture, the experiment,
its parts.
"""

import re

import numpy as np
from scipy.special import log_softmax

from minitx import forward, logits

from .. import corpus, draw, losses
from ..registry import Unfit, experiment


def plot(r):
    """A table shaded by probability: a row for each place, its own token, the null, then the guesses."""
    shade, cells, heads = r["probability"], _cells(r), [f"guess {j + 1}" for j in range(r["guess"].shape[1])]
    if "truth_probability" in r:
        shade = np.column_stack([r["truth_probability"], r["truth_frequency"], shade])
        heads = ["this token", "null: its frequency", *heads]
    n, columns = shade.shape
    figure = draw.figure(1.8 + 1.2 * columns, 1.2 + 0.24 * n)
    axes = figure.subplots()
    image = axes.imshow(shade, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (i, j), p in np.ndenumerate(shade):
        color = "white" if p > 0.55 else "black"
        axes.text(j, i, cells[i][j], ha="center", va="center", fontsize=8, color=color)
    axes.set_yticks(range(n), [draw.label(piece) for piece in r["here"]])
    axes.set_xticks(range(columns), heads)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if "truth_probability" in r:
        axes.axvline(1.5, color="black", linewidth=1)
    figure.colorbar(image, ax=axes, fraction=0.04, label="probability")
    return figure


def _cells(r):
    """Texts of the table's cells; a right guess has a tick."""
    rows = [[f"{draw.label(piece)}  {p:.2f}{' ✓' if hit else ''}" for piece, p, hit in zip(*row)]
            for row in zip(r["guess"], r["probability"], r["guess_id"] == r["truth_id"][:, None])]
    if "truth_probability" not in r:
        return rows
    truths = ([f"{x:.3f}" if x >= 0.001 else "<0.001" for x in pair]
              for pair in zip(r["truth_probability"], r["truth_frequency"]))
    return [[*pair, *row] for pair, row in zip(truths, rows)]


def says(r):
    """What the numbers show, in plain words."""
    if "loss" not in r:
        return (f"The first guess has a probability of {r['certainty']:.2f} on average (the most frequent token: "
                f"{r['certainty_null']:.2f} of the text).")
    return (f"The first guess is right at {r['first']:.0%} of the places (always the most frequent token: "
            f"{r['first_null']:.0%}), and the token that stands there costs {r['loss']:.2f} nats on average (from "
            f"frequencies alone: {r['loss_null']:.2f}).")


@experiment(
    asks="What does the model expect at each place of a sentence?",
    draw=plot,
    look="Each row is a token of the sentence, which the model did not see when it guessed. A tick marks a "
         "right guess. The null is how often the token occurs in the text: all that can be known without "
         "the sentence.",
    published="Masked LMs are trained to fill gaps from both sides (BERT, Devlin et al. 2019), causal LMs "
              "to continue what stands before (GPT-2, Radford et al. 2019).",
    says=says,
    numbers={
        "loss": "mean -ln(probability of the token that stands there), in nats",
        "loss_null": "the same from the frequencies of tokens in the text",
        "first": "share of places at which the first guess is right",
        "first_null": "the same for always guessing the text's most frequent token",
        "certainty": "mean probability of the first guess",
        "certainty_null": "frequency of the text's most frequent token"})
def predict(model, *, sentence: str = corpus.SENTENCE, guesses: int = 5, text: str = "sample"):
    """Guesses for every token of a sentence, or for each <mask> in it.

    sentence: what to read; with <mask> in it, a masked LM fills in only these
    guesses: how many to show at each place
    text: text file whose token frequencies are the null
    """
    corpus.within("guesses", guesses, 1, 20)
    if model.config.head not in ("masked", "causal"):
        raise Unfit("predict needs a masked or causal language model; "
                         f"this checkpoint's head is {model.config.head}")
    reader = _masked if model.config.head == "masked" else _causal
    tokens, places, logp, known = reader(model, sentence)
    frequency = frequencies(model, text)
    best = np.argsort(-logp, axis=1, kind="stable")[:, :guesses]
    pieces = model.tokenizer.pieces
    found = {"here": np.array(pieces(tokens[places])), "guess_id": best,
             "guess": np.array([pieces(row) for row in best]),
             "truth_id": np.where(known, tokens[places], -1),
             "probability": np.exp(np.take_along_axis(logp, best, axis=1)),
             "certainty": np.exp(logp.max(axis=1)).mean(), "certainty_null": frequency.max()}
    return found | (_scores(tokens[places], logp, best, frequency) if known else {})


def _masked(model, sentence):
    """Tokens [T], places [n], log-probabilities [n V] of each place when hidden, whether all is known."""
    mask = losses.mask_token(model.tokenizer)
    [piece] = model.tokenizer.pieces([mask])
    tokens = model.tokenizer.encode(re.sub("|".join(map(re.escape, losses.MASKS)), piece, sentence))
    hidden = np.flatnonzero(tokens == mask)
    before, after = corpus.specials(model)
    places = _some(hidden if len(hidden) else np.arange(len(before), len(tokens) - len(after)), sentence)
    return tokens, places, np.array([_gap(model, tokens, place, mask) for place in places]), not len(hidden)


def _gap(model, tokens, place, mask):
    """Log-probabilities [V] of what stands at one place when it is hidden."""
    tokens = tokens.copy()
    tokens[place] = mask
    return log_softmax(logits(model, forward(model, tokens)[:, [place]])[0, 0].astype(np.float64))


def _causal(model, sentence):
    """Tokens [T], places 1 ... T - 1, log-probabilities [n V] of each token given those before it, True."""
    if any(mask in sentence for mask in losses.MASKS):
        raise ValueError(f"{sentence!r} has a mask, but a causal model only guesses the next token")
    tokens = model.tokenizer.encode(sentence)
    places = _some(np.arange(1, len(tokens)), sentence)
    scores = logits(model, forward(model, tokens))[0, :-1].astype(np.float64)
    return tokens, places, log_softmax(scores, axis=1), True


def _some(places, sentence):
    if not len(places):
        raise ValueError(f"--sentence {sentence!r} has no token to guess")
    return places


def frequencies(model, text):
    """Share of each token in a text, one added to every count: [V]."""
    tokens = model.tokenizer.encode(corpus.read(text), special=False)
    counts = 1 + np.bincount(tokens, minlength=model.config.n_vocab)
    return counts / counts.sum()


def _scores(truth, logp, best, frequency):
    """How well the tokens that stand there were guessed."""
    at_truth = np.take_along_axis(logp, truth[:, None], axis=1)
    return {"truth_probability": np.exp(at_truth[:, 0]), "truth_frequency": frequency[truth],
            "truth_rank": 1 + (logp > at_truth).sum(axis=1), "loss": -at_truth.mean(),
            "loss_null": -np.log(frequency[truth]).mean(), "first": (best[:, 0] == truth).mean(),
            "first_null": (truth == frequency.argmax()).mean()}
