"""Does the context help the model predict the tokens of a sentence?

What the model expects at each position, beside how often that token occurs. A masked LM has one
token hidden at a time (or all those written as <mask>); a causal LM reads from the left and guesses
the next token.

T tokens, n positions, k guesses for each, V vocabulary.
"""

import re
from typing import Annotated, NamedTuple

import numpy as np
import scipy

from minitx import forward, logits

from ..contract import NATS, Asks, Below, Every, Of, Without, options, register
from ..drawing import When, draw, token_ticks
from ..measures import losses, position_tables
from ..running.stream import UNSAVED
from ..texts import corpus, joined

SAID = 40  # places, at most, whose guesses the sentence says


def predict(
    model,
    run=UNSAVED,
    *,
    sentence: options.Said = corpus.SENTENCE,
    guesses: Annotated[int, options.Within(1, 20)] = 5,
    text: options.Text = "sample",
):
    """Predictions for every token of a sentence, or for each <mask> in it.

    sentence: what to read; with <mask> in it, a masked LM fills in only these
    guesses: predictions to show at each position
    text: text whose token frequencies are the null
    """
    position_tables.check_head(model, "predict")
    guess = _masked if model.config.task_head == "masked" else _causal
    encoded, places, logp, known = guess(model, sentence)
    tokens = encoded.ids
    frequency = frequencies(model, text)
    best = np.argsort(-logp, axis=1, kind="stable")[:, :guesses]
    pieces = model.tokenizer.pieces
    result = {"here": np.array(pieces(tokens[places])), "guess_id": best}
    result["guess"] = np.array([pieces(row) for row in best])
    result["truth_id"] = np.where(known, tokens[places], -1)
    result["probability"] = np.exp(np.take_along_axis(logp, best, axis=1))
    result["certainty"] = np.exp(logp.max(axis=1)).mean()
    result["certainty_null"] = frequency.max()
    if encoded.second is not None:
        result["second"] = np.searchsorted(places, encoded.second)
    if known:
        result |= _scores(tokens[places], logp, best, frequency)
    return result


class Guesses(NamedTuple):
    """What a model expects at some positions of a text."""

    text: joined.Joined
    places: np.ndarray  # [n]
    logp: np.ndarray  # [n V] log-probabilities
    known: bool  # whether the true tokens stand in the text


def _masked(model, sentence):
    """Guesses of a masked LM for each mask in a sentence; without one, for each token alone."""
    mask = losses.mask_token(model.tokenizer)
    [piece] = model.tokenizer.pieces([mask])
    spellings = "|".join(map(re.escape, losses.MASKS))
    parts = [re.sub(spellings, piece, part) for part in joined.parts(sentence)]
    text = joined.encoding(model, parts[0] if len(parts) == 1 else tuple(parts))
    places = np.flatnonzero(text.ids == mask)
    known = not len(places)
    if known:
        places = _ordinary(model, text)
    _check_places(places, sentence)
    logp = np.array([_logp_at(model, text, place, mask) for place in places])
    return Guesses(text, places, logp, known)


def _ordinary(model, text):
    """Where tokens of the text, or of one of two texts, are: all but those that are added."""
    if text.sequences is not None:
        return np.flatnonzero(text.sequences >= 0)
    before, after = corpus.specials(model)
    return np.arange(len(before), len(text.ids) - len(after))


def _logp_at(model, text, place, mask):
    """Log-probabilities [V] of what stands at one place when it is hidden."""
    tokens = text.ids.copy()
    tokens[place] = mask
    features = forward(model, tokens, **text.options)[:, [place]]
    return scipy.special.log_softmax(logits(model, features)[0, 0].astype(np.float64))


def _causal(model, sentence):
    """Guesses of a causal LM for every token but the first, given those before it."""
    if any(mask in part for part in joined.parts(sentence) for mask in losses.MASKS):
        raise ValueError(
            f"{sentence!r} has a mask, but a causal model predicts only the next token"
        )
    text = joined.encoding(model, sentence)
    places = np.arange(1, len(text.ids))
    _check_places(places, sentence)
    x = forward(model, text.ids, **text.options)
    scores = logits(model, x)[0, :-1].astype(np.float64)
    return Guesses(text, places, scipy.special.log_softmax(scores, axis=1), known=True)


def _check_places(places, sentence):
    """Raises ValueError for a sentence without a token to guess."""
    if not len(places):
        raise ValueError(f"--sentence {sentence!r} has no token to predict")


def frequencies(model, text):
    """Share of each token in a text, one added to every count: [V]."""
    tokens = corpus.tokens_of(model, text)
    counts = 1 + np.bincount(tokens, minlength=model.config.n_vocab)
    return counts / counts.sum()


def _scores(truth, logp, best, frequency):
    """How well the tokens that stand there were guessed."""
    logp_truth = np.take_along_axis(logp, truth[:, None], axis=1)
    result = {"truth_probability": np.exp(logp_truth[:, 0]), "truth_frequency": frequency[truth]}
    result["truth_rank"] = 1 + (logp > logp_truth).sum(axis=1)
    result["loss"] = -logp_truth.mean()
    result["loss_null"] = -np.log(frequency[truth]).mean()
    result["first"] = (best[:, 0] == truth).mean()
    result["first_null"] = (truth == frequency.argmax()).mean()
    return result


def likeliest(r):
    """The guesses for each mask with their probabilities: '“cat” 0.31, “dog” 0.20; “sat” 0.12'."""
    masks = [zip(*row) for row in zip(r["guess"], r["probability"])]
    return _up_to("; ", [", ".join(f"{_word(piece)} {p:.2f}" for piece, p in row) for row in masks])


def first_guesses(r):
    """The first guess at each place: '“He”, “was” (“looked”), “at”'."""
    rows = zip(r["guess"][:, 0], r["here"], r["guess_id"][:, 0] == r["truth_id"])
    words = [
        _word(guess) if hit else f"{_word(guess)} ({_word(here)})" for guess, here, hit in rows
    ]
    return _up_to(", ", words)


def _word(piece):
    """A piece in quotes, without the blanks around it unless it has nothing else."""
    return f"“{piece.strip() or piece}”"


def _up_to(separator, words):
    """The first words, joined, and three dots if there are more."""
    return separator.join([*words[:SAID], *(["…"] if len(words) > SAID else [])])


def plot(r):
    """A table shaded by probability, a row a place: its own token, the null, then the guesses."""
    shade, cells, headings = _table(r)
    n, columns = shade.shape
    figure = draw.figure(max(12.5, 1.8 + 1.4 * columns), 1.2 + 0.27 * n)
    axes = figure.subplots()
    image = axes.imshow(shade, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (i, j), p in np.ndenumerate(shade):
        color = "white" if p > 0.55 else "black"
        style = {"ha": "center", "va": "center", "fontsize": 10, "color": color}
        draw.of_tokens(axes.text(j, i, cells[i][j], **style))
    token_ticks(axes.set_yticks, r["here"])
    axes.set_xticks(range(columns), headings)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    draw.border(axes, r.get("second"), "y")
    if "truth_probability" in r:
        axes.axvline(1.5, color="black", linewidth=1)
    figure.colorbar(image, ax=axes, fraction=0.04, label="probability")
    return figure


def _table(r):
    """Probabilities and texts of the table's cells, and the headings; a right guess has a tick."""
    shade = r["probability"]
    is_right = r["guess_id"] == r["truth_id"][:, None]
    cells = [
        [f"{draw.label(piece)}  {p:.2f}{' ✓' if hit else ''}" for piece, p, hit in zip(*row)]
        for row in zip(r["guess"], shade, is_right)
    ]
    headings = [f"guess {j + 1}" for j in range(shade.shape[1])]
    if "truth_probability" in r:
        truth, frequency = r["truth_probability"], r["truth_frequency"]
        shade = np.column_stack([truth, frequency, shade])
        cells = [[_share(p), _share(q), *row] for p, q, row in zip(truth, frequency, cells)]
        headings = ["this token", "null: frequency", *headings]
    return shade, cells, headings


def _share(x):
    """A probability with three decimals."""
    return f"{x:.3f}" if x >= 0.001 else "<0.001"


register(
    predict,
    draw=plot,
    look="Each row is a token of the sentence that was hidden from the model when it predicted "
    "it. A tick marks a correct prediction. The null is the token's frequency in the text: all "
    "that is known without the sentence.",
    published="Masked LMs are trained to fill gaps from both sides (BERT, Devlin et al. 2019), "
    "causal LMs are trained to continue the text before (GPT-2, Radford et al. 2019).",
    numbers="""
        loss: mean loss per predicted token, in nats: -ln(probability of the true token)
            null: mean loss per token from the frequencies of tokens in the text
        first: share of positions at which the top prediction is right
            null: share of positions that hold the text's most frequent token
        certainty: mean probability of the top prediction
            null: frequency of the text's most frequent token
    """,
    answer=Asks(
        "mean loss per predicted token of the sentence, and share of correct top predictions",
        value="{loss:.2f} nats, {first:.0%}",
        chance="by token frequency {loss_null:.2f} nats, {first_null:.0%}",
        rule=Every(Below("loss", **NATS), Of("first")),
        without=Without("truth_rank", "0 tokens have a known answer: all are masks", "0 tokens"),
    ),
    says=When(
        "truth_rank",
        "The top prediction is right at {first:.0%} of {truth_rank.size} positions (always the "
        "most frequent token: {first_null:.0%}), and the loss of the true token is {loss:.2f} nats "
        "on average (token frequencies: {loss_null:.2f}). The top prediction at each position; "
        "where it is wrong, the true token follows in brackets: {first_guesses}.",
        "Predictions for each mask: {likeliest}. The top prediction has a probability of "
        "{certainty:.2f} on average (the most frequent token: {certainty_null:.2f} of the text).",
    ),
)
