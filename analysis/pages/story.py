"""What a model does with positions, in a few sentences: the top of the report.

How positions enter is read from config and weights. Every other sentence stands only where its rule
shows an effect, a number beyond its null (contract/verdict.py), and links to its experiment. Of
each topic the first that holds is told.
"""

import inspect
import re
from collections import Counter
from html import escape
from typing import NamedTuple

import numpy as np

from ..contract import nothing, verdict
from ..contract.rules import NATS, Below, Enough, Of, Provided
from ..drawing import draw
from ..drawing.sentences import Names, When, tell
from ..machine.language import filled, translated
from ..maths import profiles
from ..measures import context_extension
from ..running import single
from . import themes
from .themes import AWAY, CARRY, ENTER, MOVED, READ

STORY = ENTER, READ, MOVED, CARRY, AWAY
MINUS = "\N{MINUS SIGN}"
WAYS = {  # by the names of context_extension.mechanisms
    "learned": "A learned table has a row for each position, which is added to the input.",
    "sinusoidal": "A fixed table of sine waves has a row for each position, added to the input.",
    "rotary": "Each layer turns queries and keys by angles that grow with the position (rotary).",
    "buckets": "Each head adds a learned number for the distance to its scores, by buckets (T5).",
    "alibi": "Each head takes a fixed amount from its scores for each token of distance (ALiBi).",
    "disentangled": "Scores have terms of words with relative positions (DeBERTa).",
}
CAUSAL = "It is given none; only the causal mask, which hides later tokens, tells them apart."
NONE = "It is given none, and sees all tokens: nothing tells their order."


class Sentence(NamedTuple):
    """What an experiment says on a topic, and when."""

    topic: str  # of themes.py
    experiment: str
    pieces: object  # of sentences.py, in the scope of the experiment's file and of NAMED
    rule: object = None  # of rules.py; None: the experiment's answer shows an effect
    needs: str = ""  # a result that some runs lack
    of_pictures: bool = False
    also: bool = False  # told beside the sentence of its topic that holds


UNTOLD = ", too few rows to tell it from what random weights give"
RISE = Of(  # of the loss without positions, by intervals
    lambda r: r["loss_interval"][1, 0],
    null=lambda r: r["loss_interval"][0, 1],
    **NATS,
)

DIRECTED = (
    "**{n_directed} of {lag_of_heads.size} heads** have a direction: one fixed offset ({offsets} "
    "tokens) gets more attention than any other, at least {least:.0%} and {times} times an even "
    "share. "
)

SENTENCES = (
    Sentence(
        ENTER,
        "positions",
        "The table holds waves: its spectrum peaks at a period of **{peak_period:.3g} tokens** "
        "(amplitude {peak:.2f}; rows of the table shuffled: at most {peak_null:.2f}).",
        Of("peak", most=np.inf),
        needs="peak_at",
    ),
    Sentence(
        ENTER,
        "positions",
        "The table holds waves over the grid of {rows} × {columns} patches (highest amplitude "
        "**{peak:.2f}**; rows of the table shuffled: at most {peak_null:.2f}).",
        Of("peak", most=np.inf),
        of_pictures=True,
    ),
    Sentence(
        READ,
        "lags",
        [
            DIRECTED,
            When("n_positions < n_directed", "In {n_positions} of these", "In each"),
            " ({read_in}) positions alone make at least half of the peak of the scores (query "
            "positions shuffled: ",
            When("n_positions_null > 0", "in at most {n_positions_null}", "in none"),
            "; {documents} documents of {T} tokens).",
        ],
        Of("n_positions", out_of="n_directed"),
        needs="n_positions",
    ),
    Sentence(
        READ,
        "conditions",
        " **{n_kept[REPEATED]} of {n_directed}** keep at least {KEPT:.0%} of their attention to it "
        "and look there most, with one word repeated (peaks at random offsets: up "
        "to {n_kept_null[REPEATED]:.0f}; {documents} documents).",
        also=True,
    ),
    Sentence(
        READ,
        "kernel",
        [
            DIRECTED,
            When("n_agree < n_directed", "In {n_agree} of these", "In each"),
            " the scores with words averaged out are highest there, too (query positions "
            "shuffled: ",
            When("n_agree_null > 0", "in at most {n_agree_null}", "in none"),
            "; {documents} documents of {T} tokens).",
        ],
    ),
    Sentence(
        READ,
        "sources",
        "In the first layer {strongest} scores by positions most: position × position is "
        "**{most:.0%}** of the variance of its scores (keys' positions in random order: at most "
        "{most_null:.0%}; {documents} pictures).",
        Of("most"),
        of_pictures=True,
    ),
    Sentence(
        MOVED,
        "dial",
        [
            When("is_each", "{n_directed} heads × {n_shifts} shifts", "Heads and shifts"),
            " of up to {shifts.max} tokens: in **{n_exact} of {n_cells}** cases attention goes "
            "exactly where the moved positions predict (offsets shuffled over the shifts: in at "
            "most {n_exact_null:.0f}; {documents} documents).",
        ],
        needs="n_cells",
    ),
    Sentence(
        CARRY,
        "probe",
        [
            "A linear probe reads a token's position from the residual stream of "
            "{documents[2]} held-out documents. R² is {r2_on:.2f} {best_layer}, "
            "**{r2_on_last:.2f}** after the last layer",
            When("is_left", "", When("is_lost", ", no more than random weights give", UNTOLD)),
            " (positions shuffled: {r2_on_null:z.2f}; random weights: {r2_random:.2f} "
            "{random_layer}, {random_last[0]:z.2f} after the last).",
        ],
        Of("r2_on", null=("r2_on_null", "r2_random_interval[1]")),
    ),
    Sentence(
        CARRY,
        "cca",
        "The {components} slowest cosines of the grid are in the output with a correlation of "
        "**{last:.2f}** (positions in random order: at most {last_null:.2f}; {documents} "
        "pictures).",
        Of("last"),
        of_pictures=True,
    ),
    Sentence(
        AWAY,
        "remove-positions",
        [
            "Trained with its table, the model has a {perplexity_kind} of {loss.exp:.3g}; with the "
            "table at zero **{loss_zero.exp:.3g}** (95% interval {perplexity_interval[1]:to .3g}; "
            "{documents} documents). This is ",
            When(
                "loss_interval[1][0] > loss_null",
                "worse than guessing each token by its frequency in these documents "
                "({loss_null.exp:.3g}).",
                When(
                    "loss_interval[1][1] < loss_null",
                    "still better than guessing each token by its frequency in these documents "
                    "({loss_null.exp:.3g}).",
                    "neither better nor worse than guessing each token by its frequency in these "
                    "documents ({loss_null.exp:.3g}) as far as {n_predicted} tokens tell.",
                ),
            ),
        ],
        Provided(RISE, Below("loss", **NATS)),
        needs="loss",
    ),
    Sentence(
        AWAY,
        "relearn",
        "With gaps between words and only the table retrained, **{n_follow} of {n_directed}** "
        "heads with a direction in documents of {n_words} ordinary tokens look as many words away "
        "as before (random table: {n_fresh}).",
        needs="follows_learned",
        also=True,
    ),
    Sentence(
        AWAY,
        "mechanisms",
        "Its loss rises by {off[0]:.2f} nats per token (signs at random: by {off_null[0]:.2f} at "
        "most).",
        Of(lambda r: r["off_interval"][0, 0], null=lambda r: r["off_null"][0], **NATS),
        needs="off",
    ),
    Sentence(
        AWAY,
        "reviews",
        "A linear probe tells windows of text with their words in order from shuffled ones in "
        "{accuracy:.0%} of cases, with positions at zero in {accuracy_zero:.0%} (labels shuffled: "
        "{accuracy_null:.0%} at most).",
    ),
)

SHORT = {  # the same in a few words, by the experiment; they make one sentence, before all others
    "lags": "in **{n_positions} of {lag_of_heads.size} heads** positions make most of the score at "
    "a fixed offset",
    "kernel": "in **{n_agree} of {lag_of_heads.size} heads** the score without words is highest at "
    "a fixed offset",
    "conditions": "**{n_kept[REPEATED]} of {n_directed}** keep it with one word repeated",
    "probe": When(
        "is_left",
        "a linear probe still finds positions **after the last layer**",
        When(
            "is_lost",
            "after the last layer a linear probe finds positions no better than with random "
            "weights",
        ),
    ),
    "remove-positions": [
        "without its table the model is ",
        When(
            "loss_interval[1][0] > loss_null",
            "worse than guessing tokens by their frequency in these documents",
            When(
                "loss_interval[1][1] < loss_null",
                "worse, but better than guessing tokens by their frequency in these documents",
                "**worse**",
            ),
        ),
    ],
}
LEAST = 2  # parts that make a sentence


# what the sentences name beside results


def offsets(r):
    """The least and the largest offset of the heads with a direction."""
    own = r["offset_of_heads"][np.asarray(r["directed"], bool)]
    ends = sorted({int(own.min()), int(own.max())})
    return translated(" to ").join(map(draw.offset, ends)).replace("-", MINUS)


def read_in(r):
    """The layers with more heads that read positions than chance gives in all of them."""
    numbers = np.flatnonzero(r["n_positions_by_layer"] > r["n_positions_null"])
    if len(numbers) == 1:
        return filled("layer {n}", n=numbers[0])
    return filled("layers {numbers}", numbers=runs_of(numbers)) if len(numbers) else "…"


def runs_of(numbers):
    """Sorted numbers with those in a row as one range.

    >>> runs_of([0, 1, 2, 5])
    '0 to 2, 5'
    """
    groups = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    ends = ([str(group[0]), str(group[-1])][: len(group)] for group in groups)
    return ", ".join(translated(" to ").join(pair) for pair in ends)


def random_last(r):
    """R² in the last layer of random weights, and the upper end of its interval."""
    row = r["conditions"].tolist().index("random weights, on")
    return r["r2"][row, -1], r["r2_interval"][row, -1, 1]


LEFT = Enough(Of("r2_on_last", null=("r2_on_null", lambda r: random_last(r)[1])))


def is_left(r):
    """Whether the last layer tells positions better than random weights do, by the margin."""
    return LEFT.verdict(Names(r)) in verdict.EFFECTS


def is_lost(r):
    """Whether it tells them no better; neither is so where too little was read."""
    return LEFT.verdict(Names(r)) == "no"


def place(r, condition):
    """Where in the stream the probe reads a condition best: entry l is what layer l reads."""
    row = r["conditions"].tolist().index(condition)
    best = r["r2"][row].argmax()
    return filled("after layer {n}", n=best - 1) if best else translated("before the first layer")


def is_each(r):
    """Whether every head with a direction was measured at every shift."""
    return r["n_directed"] * n_shifts(r) == r["n_cells"]


def n_shifts(r):
    """How many shifts other than 0."""
    return np.count_nonzero(r["shifts"])


NAMED = {
    "least": profiles.LEAST,
    "times": profiles.TIMES,
    "offsets": offsets,
    "read_in": read_in,
    "is_left": is_left,
    "is_lost": is_lost,
    "best_layer": lambda r: place(r, "positions on"),
    "random_layer": lambda r: place(r, "random weights, on"),
    "is_each": is_each,
    "n_shifts": n_shifts,
    "n_words": lambda r: r["T"] // (1 + r["fillers"]),
    "random_last": random_last,
}


# which hold


def lines_of(model, runs):
    """[(topic, text, name of the experiment, or "")] of a report's runs.

    runs: (experiment, outcome, seconds) of each.
    """
    outcomes = {experiment.name: (experiment, outcome) for experiment, outcome, _ in runs}
    lines = [(ENTER, enters(model), "")]
    for sentence in SENTENCES:
        topics = [topic for topic, _, name in lines if name]
        if (sentence.topic in topics) != sentence.also or sentence.experiment not in outcomes:
            continue
        text = _text(sentence, *outcomes[sentence.experiment], model)
        if text:
            text += against(sentence.topic, outcomes)
            lines.append((sentence.topic, text, sentence.experiment))
    return lines


def in_short(lines, runs):
    """One sentence on what these lines say, of none what the tests gave; "" for little to say."""
    outcomes = {experiment.name: (experiment, outcome) for experiment, outcome, _ in runs}
    names = [name for *_, name in lines if name in SHORT]
    parts = [tell(SHORT[name], _names(*outcomes[name])) for name in names]
    parts = [part for part in parts if part]
    if not any(name for *_, name in lines):
        return counted(outcomes)
    if len(parts) < LEAST:
        return ""
    return filled("In short: {parts}.", parts="; ".join(parts))


def counted(outcomes):
    """How many tests of the themes told here show an effect, none, or are undecided."""
    themed = [outcomes[name] for t in STORY for name in themes.THEMES[t] if name in outcomes]
    shown = [outcome for experiment, outcome in themed if _judged(experiment, outcome)]
    kinds = Counter(outcome.answer.verdict for outcome in shown)
    numbers = {kind: kinds[kind] for kind in WITHOUT_EFFECT}
    numbers["effect"] = len(shown) - sum(numbers.values())
    text = "Tests of positions here: {effect} with an effect, {no} without, {undecided} undecided."
    return filled(text, **numbers) if shown else ""


WITHOUT_EFFECT = {"no": "no effect: {names}", "undecided": "undecided: {names}"}


def against(topic, outcomes):
    """A sentence that names the experiments of a topic's theme without an effect, if any."""
    names = themes.THEMES[topic] if topic == CARRY else ()
    own = [outcomes[name] for name in names if name in outcomes]
    asked = [(run.name, outcome.answer.verdict) for run, outcome in own if _judged(run, outcome)]
    lists = []
    for kind, text in WITHOUT_EFFECT.items():
        missing = [themes.short(name) for name, given in asked if given == kind]
        if missing:
            lists.append(filled(text, names=", ".join(missing)))
    if not lists:
        return ""
    text = "That need not be large, or used: of the {all} tests here, {lists}."
    return " " + filled(text, all=len(asked), lists="; ".join(lists))


def _judged(experiment, outcome):
    """Whether an experiment ran and had something to judge, such as heads with a direction."""
    if isinstance(outcome, single.Failure) or not outcome.answer:
        return False
    return outcome.answer.verdict != "nothing" and not experiment.answer.is_idle(outcome.result)


def enters(model):
    """How positions enter a model; an encoder-decoder's encoder. A table of zeros tells nothing."""
    stack = model.encoder or model
    names = context_extension.mechanisms(stack)
    if names == ["none"]:
        return translated(CAUSAL if stack.config.causal else NONE)
    return " ".join(translated(WAYS[name]) for name in names)


def _text(sentence, experiment, outcome, model):
    """The text of a sentence, "" where it does not hold."""
    is_of_pictures = model.config.picture is not None
    if isinstance(outcome, single.Failure) or sentence.of_pictures != is_of_pictures:
        return ""
    if nothing.KIND in outcome.result or (sentence.needs and sentence.needs not in outcome.result):
        return ""
    names = _names(experiment, outcome)
    kind = sentence.rule.verdict(names) if sentence.rule else outcome.answer.verdict
    return tell(sentence.pieces, names) if kind in verdict.EFFECTS else ""


def _names(experiment, outcome):
    """What a sentence may name: results, what the experiment's file has, and NAMED."""
    return Names(outcome.result, inspect.unwrap(experiment.run).__globals__ | NAMED)


# HTML

BOLD = re.compile(r"\*\*(.+?)\*\*")  # the figure of a line


def plain(text):
    """A line without the marks of its figure."""
    return BOLD.sub(r"\1", text)


def section(lines, link, beside="", leads="", short=""):
    """The section of these lines; each topic links to the answers of its theme.

    link: the Linker of the first screen. beside: pictures, as HTML. leads: a link above, as HTML.
    short: the sentence before all others.
    """
    items = ""
    for topic in dict.fromkeys(topic for topic, _, _ in lines):
        own = [line for line in lines if line[0] == topic]
        text = _bold(" ".join(link(text) for _, text, _ in own))
        name = next((name for *_, name in own if name), "")
        items += f"<li><b>{_headed(topic, name)}</b> {text}</li>"
    title = translated("What it does with positions")
    sentences = f'<div class="beside"><ul class="story">{items}</ul>{beside}</div>'
    first = f'<p class="short">{_bold(escape(short))} {leads}</p>'
    return f'<section id="story"><h2>{title}</h2>{first}{sentences}</section>'


def _bold(text):
    return BOLD.sub(r"<b>\1</b>", text)


def _headed(topic, name):
    """The topic of a line, linked to the answers of the experiment's theme."""
    text = escape(f"{translated(topic)}:")
    return f'<a href="#{themes.anchor(themes.of(name))}">{text}</a>' if name else text
