"""Published values and claims of the papers and the slides: one row each.

A row names an experiment, the options and the text under which it was published, and what in the
result to look at. A number was published for one checkpoint and is compared with that one only; a
claim ("above its null") can be put to any model.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..contract import verdict
from ..maths import profiles
from ..measures import heads
from ..measures.conditions import CONDITIONS
from ..measures.perplexities import CONVENTIONS


@dataclass(frozen=True)
class Claim:
    """One published value or claim."""

    source: str  # figure, section or slide
    what: str
    experiment: str
    # result -> this model's value; KeyError or IndexError where it has none
    ours: Callable
    published: object  # the value, or the claim in words
    of: str = ""  # the checkpoint whose value it is; "": a claim about any model
    on: str = ""  # the text that the value depends on
    null: Callable = None  # result -> what chance gives
    holds: Callable = None  # (ours, null or published) -> bool
    rule: str = ""  # what `holds` asks, in words
    options: dict = field(default_factory=dict)  # of the experiment, as published
    # readings that the source leaves open: `ours` has a value for each, one that holds is enough
    readings: tuple = ()
    mechanism: str = ""  # what tells places in the models that it is about; "": in any
    causal: bool | None = None  # whether these hide the future; None: either


class Text(NamedTuple):
    """A text on which a value was published; the user names the file or folder that holds it."""

    flag: str  # of `minitx published`
    what: str
    documents: int  # in all of it
    labelled: bool  # a folder with pos/ and neg/


def near(*tolerance):
    """The rule that values differ by at most `tolerance` from what was published.

    One tolerance for all of them, or one for each.
    """

    def holds(ours, value):
        distance = np.abs(np.asarray(ours) - value)
        return bool(np.all(distance <= np.array(tolerance)))

    return {"holds": holds, "rule": "within " + " and ".join(f"{x:g}" for x in tolerance)}


def in_some_convention(*tolerance):
    """`near` in one of the conventions of perplexity, where the source names none.

    All values have to fit by the same convention: one of the six fits a single number by accident
    (on TruthfulQA tiny-gpt2 has 112.3 where 111.2409 was published for gpt2).
    """
    rule = near(*tolerance)
    words = f"{rule['rule']} by one convention (the slides do not name theirs)"
    return rule | {"rule": words, "readings": (*CONVENTIONS.values(),)}


def between(least, most, of_each=False):
    """The rule that one of the values or more, or each of them, lies in a range."""
    enough = np.all if of_each else np.any

    def holds(ours, _):
        ours = np.asarray(ours)
        return bool(enough((ours >= least) & (ours <= most)))

    return {"holds": holds, "rule": f"{least:g} to {most:g}{' each' * of_each}"}


def above(least):
    """The rule that the value is above a number."""
    return {"holds": lambda ours, _: bool(ours > least), "rule": f"above {least:g}"}


def below(most):
    """The rule that the value is below a number."""
    return {"holds": lambda ours, _: bool(ours < most), "rule": f"below {most:g}"}


def above_null(most=1.0, margin=None, least=-np.inf):
    """The rule that an effect exceeds its null by the common margin of all answers.

    most, margin: as in `verdict.beside`: for shares and correlations a tenth of 1, for amplitudes
    and ratios (most inf) a tenth of the null. least: what it has to exceed as well.
    """

    def holds(ours, null):
        shown = verdict.beside(ours, null, most=most, margin=margin).verdict in verdict.EFFECTS
        return bool(shown and ours > least)

    also = "" if least == -np.inf else f" and above {least:g}"
    return {"holds": holds, "rule": f"{_margin(most, margin)} above its null{also}"}


def not_above_null(most=1.0, margin=None):
    """The rule that there is no such effect."""
    words = f"not {_margin(most, margin)} above its null"

    def holds(ours, null):
        return verdict.beside(ours, null, most=most, margin=margin).verdict == "no"

    return {"holds": holds, "rule": words}


def below_null(most=1.0, margin=None):
    """The rule that the value is below its null by the common margin."""

    def holds(ours, null):
        return verdict.below(ours, null, most=most, margin=margin).verdict in verdict.EFFECTS

    return {"holds": holds, "rule": f"{_margin(most, margin)} below its null"}


def _margin(most, margin):
    """The margin in words: '0.1', 'a tenth', 'more than 1'."""
    if margin is not None:
        return f"more than {margin:g}"
    return f"more than {verdict.MARGIN * most:g}" if np.isfinite(most) else "more than a tenth"


ONE = {"most": np.inf, "margin": 1}  # of counts, by which one has to exceed its null
SHARE = above_null()  # of shares and correlations
RATIO = above_null(np.inf)  # of amplitudes, and of quotients
HALF = above_null(least=0.5)  # most of them, and more than chance gives
GENTLE = {  # of two values: attention to all tokens around, and to the offset with most
    "holds": lambda ours, null: SHARE["holds"](ours[0], null) and ours[1] < heads.SHARP,
    "rule": f"{SHARE['rule']}, and less than {heads.SHARP:g} at one offset",
}


def before_or_after(*tolerance):
    """`near`, before or after moving and scaling: two digests of the paper leave open which."""
    rule = near(*tolerance)
    words = f"{rule['rule']}, before or after (known only from two digests of the paper)"
    return rule | {"rule": words, "readings": ("before", "moved and scaled")}


def number(name, i=None):
    """The headline number of that name, or the i-th of a list."""
    return lambda r: r[name].tolist() if i is None else r[name][i].item()


def of_queries_and_keys(reduce, name, layer):
    """The smaller or larger (min, max) of a layer's two results, for queries and for keys."""
    return lambda r: reduce(r[name.format(x)][layer].item() for x in "qk")


def numbers(*names):
    """Several headline numbers, one for each reading."""
    return lambda r: [r[name].item() for name in names]


def of_head(name, layer, head):
    """The value of one head in the array [L H] of that name."""
    return lambda r: r[name][layer, head].item()


def fastest(r):
    """The highest frequency of the position table that is above chance, in cycles per token."""
    return (r["above_all"].max() / r["T"]).item()


def periodic(r):
    """Periodic columns of query and key both, the median of the heads with a direction.

    Raises KeyError for a model in which no head has a direction, and for input of positions alone,
    where nearly all columns are periodic.
    """
    if r["input"] != "text" or not r["n_directed"]:
        raise KeyError("typical")
    return r["typical"].item() * int(r["r"])


def peak_of(name):
    """The highest peak, away from 0, of the position table of one of the models compared.

    Raises ValueError if the model is not among them.
    """
    return lambda r: r["peak"][r["models"].tolist().index(name)].item()


def around(layer, head):
    """Attention of one head within reach, its own token left out, and to its best offset there."""

    def ours(r):
        attention = r["attention"][layer, head][r["offsets"] != 0]
        return [attention.sum().item(), attention.max().item()]

    return ours


def around_by_chance(r):
    """What uniform attention gives to the tokens within reach, a token itself left out."""
    uniform = profiles.mean_attention(r["uniform"], int(r["T"]))
    return uniform[r["offsets"] != 0].sum().item()


def sharpness(least, most):
    """Median sharpness of the peaks of heads with a direction, by the attention to their offset.

    least <= attention < most, or 1. Raises KeyError for a model without such heads.
    """

    def ours(r):
        attention = r["attention_of_heads"]
        inside = r["directed"] & (attention >= least) & ((attention < most) | (most == 1))
        if not inside.any():
            raise KeyError("sharpness_of_heads")
        return np.median(r["sharpness_of_heads"][inside]).item()

    return ours


def adding(name):
    """Median over the heads drawn that have a direction; raises KeyError without any."""

    def ours(r):
        if not r["drawn_directed"].any():
            raise KeyError(name)
        return np.median(r[name][r["drawn_directed"]]).item()

    return ours


def contrast(*names):
    """The largest of the contrasts of these names; raises KeyError for a table without a peak."""

    def largest(r):
        if not r["is_peak"]:
            raise KeyError("peak")
        return max(r[name].item() for name in names)

    return largest


def fewest(name):
    """The least of a headline number's values by layer."""
    return lambda r: min(r[name].tolist())


def high_by_chance(r):
    """As many by chance, of positions in random order the most, of random weights the fewest."""
    by_random = (r["correlations_random"] >= HIGH).sum(axis=1)
    return max(*r["high_null"].tolist(), int(by_random.min()))


def fitted_directions(r):
    """Directions with a high correlation on the documents of their own fit, by layer."""
    return (r["correlations_fitted"] >= HIGH).sum(axis=-1).tolist()


def kept(name, condition):
    """Of the heads with a direction: the share that keeps it under a condition, or its null.

    Raises KeyError for a model in which no head has a direction.
    """

    def ours(r):
        if not r["n_directed"]:
            raise KeyError(name)
        return (r[name][INPUTS.index(condition)] / r["n_directed"]).item()

    return ours


def deeper(r):
    """Heads with a direction behind the first layer, [L H] bool; raises KeyError without any."""
    directed = r["directed"].copy()
    directed[0] = False
    if not directed.any():
        raise KeyError("directed")
    return directed


def kept_deeper(condition):
    """Of the heads with a direction behind the first layer: the share that keeps it."""
    return lambda r: r["keeps"][INPUTS.index(condition)][deeper(r)].mean().item()


def highest_there(condition=""):
    """Of the same heads: the share whose mean score is highest, lag 0 left out, at their offset.

    condition "": inputs in random order.
    """

    def ours(r):
        scores = r["scores"][INPUTS.index(condition)] if condition else r["scores_shuffled"]
        heads = deeper(r)
        return (highest_lags(scores, r)[heads] == r["offset_of_heads"][heads]).mean().item()

    return ours


def highest_lags(scores, r):
    """The lag, other than 0, of the highest mean score: [L H R] -> [L H]."""
    lags = r["lags"]
    compared = (lags < 0) | ((lags > 0) & ~r["causal"])
    return lags[np.where(compared, scores, -np.inf).argmax(axis=-1)]


def score_at(condition, layer, head):
    """Share of the peak of one head's scores that stays under a condition."""
    return lambda r: r["score_kept_of_heads"][INPUTS.index(condition), layer, head].item()


def lag_under(condition, layer, head):
    """Lag of one head's highest mean score under a condition."""
    return lambda r: highest_lags(r["scores"][INPUTS.index(condition)], r)[layer, head].item()


def column_peaks(condition):
    """Largest correlation of a column of query and key at a lag other than 0, without its sign.

    The median over the columns of the heads drawn that have a direction behind the first layer.
    """

    def ours(r):
        drawn = deeper(r)[tuple(r["drawn"].T)]
        if not drawn.any():
            raise KeyError("drawn")
        curves = r["xcorr"][INPUTS.index(condition), drawn]  # [n R J]
        return np.median(abs(curves[:, r["lags"] != 0]).max(axis=1)).item()

    return ours


def perplexities(*conditions):
    """The perplexities under these conditions, by every convention."""

    def ours(r):
        names = r["tables"] if "tables" in r else r["conditions"]
        columns = [names.tolist().index(condition) for condition in conditions]
        return r["perplexities"][:, columns].tolist()

    return ours


# The checkpoints are those of weights.KNOWN; a frequency of 1/16 separates the slow waves from the
# others.
INPUTS = [*CONDITIONS]
# the map that decides in figure 6; the published picture adds columns that the weights leave open
THIN = "by the thin map: the columns that the weights settle"
HIGH = 0.9  # canonical correlation that counts as high; the paper gives no number
R, B, G, X = "roberta-base", "bert-base-uncased", "gpt2", "xlm-roberta-base"
IMDB, TRUTHFULQA, WIKI_AUTO = "IMDB reviews", "TruthfulQA", "Wiki-Auto"
WIKITEXT = "WikiText-2"
TEXTS = {
    IMDB: Text("imdb", "folder with pos/ and neg/ of the 25,000 test reviews", 25_000, True),
    TRUTHFULQA: Text("truthfulqa", "TruthfulQA.csv: 817 questions with answers", 817, False),
    WIKI_AUTO: Text("wikiauto", "file of 200 sentences of Wiki-Auto, one a line", 200, False),
    WIKITEXT: Text("wikitext", "file of WikiText-2, raw: 400 documents of 512 tokens", 400, False),
}
# The slides take features and predictions of each text by itself, whole or as much of it as the
# model reads; zeros replace the position table. They do not say whether longer texts were cut (here
# they are), and which part of TruthfulQA was read (so there is a row for each of two).
EACH_B = {"documents": 0, "whole": True, "tokens": 512, "ways": "zero", "every": 512}
EACH_G = {"documents": 0, "whole": True, "tokens": 1024, "ways": "zero"}
LINEAR = {"documents": 0, "tokens": 1024, "evaluations": 0}
LINEAR |= {"family": "linear", "meaning": "library-2023"}
QUESTIONS = LINEAR | {"column": "Question"}
ANSWERED = LINEAR | {"column": "Question,Best Answer"}
# AttentionViz: products as they are, against cosine distances; the mean over heads and sentences.
# The paper itself was not available, so the sentences and the way of averaging are not known.
JOINT = {"documents": 0, "distance": "cosine", "products": "plain"}
# The paper fits to 200 documents of 512 tokens and gives the correlations of that fit. `cca` fits
# to half of what it reads, so 400 are read, and the fit's own are counted. Of the table it takes 64
# components, so that there can be more than 20 directions, and it leaves special tokens out.
FITTED = {"documents": 400, "components": 64}
KEPT, ZERO = "positions kept, no mask", "positions zero, no mask"
MASKED = "linear(low=0.1) as library-2023"
SLIDES = [111.2409, 712014.3125, 11897.4824]  # a table: one convention has to fit all of them
# type, layers, width and vocabulary; sha256 of the position table in float32, where it is known
CHECKPOINTS = {
    R: (("roberta", 12, 768, 50265), ""),
    B: (("bert", 12, 768, 30522), ""),
    X: (("xlm-roberta", 12, 768, 250002), ""),
    G: (
        ("gpt2", 12, 768, 50257),
        "29c69587e2af826b7c159c38620a32e549a925e6d9a0dc37cb563f377f5be772",
    ),
}
# A source without a name is the short paper (2023); "EMNLP" is the longer paper of that year.
CLAIMS = [
    Claim(
        "figure 1",
        "heads with a direction that keep to one cluster whatever the text",
        "profiles",
        number("steady_directed"),
        "most of them",
        null=number("steady_directed_null"),
        **HALF,
    ),
    Claim(
        "figures 2, 7",
        "offset that head(8,9) attends to",
        "profiles",
        of_head("best_offset", 7, 8),
        -1,
        R,
        **near(0),
    ),
    Claim(
        "figures 2, 6",
        "offset that head(2,3) attends to",
        "profiles",
        of_head("best_offset", 1, 2),
        1,
        R,
        **near(0),
    ),
    *(
        Claim(
            "figure 2",
            f"attention of head({layer + 1},{head + 1}) to the tokens around it, and to the offset "
            "with most (null: the first in uniform attention)",
            "profiles",
            around(layer, head),
            "leans gently to those around",
            R,
            null=around_by_chance,
            **GENTLE,
        )
        for layer, head in ((0, 0), (6, 4))
    ),
    Claim(
        "figure 3",
        "highest peak of the position embeddings, slow drift left out",
        "positions",
        number("peak"),
        "has a peak",
        null=number("peak_null"),
        **RATIO,
    ),
    Claim(
        "figures 3, 8",
        "rise of the position embeddings' amplitudes towards faster waves (1: they only fall)",
        "positions",
        number("rise"),
        "peaks away from 0",
        null=number("rise_null"),
        **RATIO,
    ),
    Claim(
        "figure 3",
        "highest peak of word embeddings, slow drift left out",
        "positions",
        number("words_peak"),
        "has none",
        null=number("words_peak_null"),
        **not_above_null(np.inf),
    ),
    Claim(
        "figures 3, 5",
        "frequencies of the peaks, cycles per token",
        "positions",
        lambda r: (r["peaks_away"] / r["T"]).tolist(),
        "one near 50 / 512",
        R,
        **between(45 / 512, 55 / 512),
    ),
    *(
        Claim(
            "figure 8",
            "fastest wave above chance, cycles per token",
            "positions",
            fastest,
            published,
            of,
            **rule,
        )
        for of, published, rule in (
            (R, "away from 0", between(1 / 16, 1 / 2)),
            (B, "away from 0", between(1 / 16, 1 / 2)),
            (G, "low frequencies only", between(0, 1 / 16)),
        )
    ),
    *(
        Claim(  # all have 512 positions
            source,
            "highest peak of the position embeddings, raw amplitude (null: that of BERT)",
            "models",
            peak_of(of),
            published,
            of,
            null=peak_of(B),
            holds=lambda ours, null: bool(ours > null),
            rule=f"above that of {B}",
            options={"others": B},
        )
        for source, of, published in (
            ("figure 8", R, "RoBERTa's are higher"),
            ("EMNLP appendix B", X, "xlm-roberta-base's are higher too"),
        )
    ),
    Claim(
        "EMNLP figure 2",
        "heads whose documents fall into one or two clusters",
        "profiles",
        number("few"),
        "each head",
        null=number("few_null"),
        **above_null(least=0.9),
    ),
    Claim(
        "EMNLP figure 6",
        "spectra of queries and keys: correlation with the table's, the smaller one, first layer",
        "extraction",
        of_queries_and_keys(min, "correlation_{}", 0),
        "the table's peaks are there",
        null=of_queries_and_keys(max, "correlation_{}_null", 0),
        **above_null(least=0),
    ),
    Claim(
        "EMNLP figure 6",
        "spectra of queries and keys: correlation with the table's, the larger one, last layer "
        "(null: the smaller one, first layer)",
        "extraction",
        of_queries_and_keys(max, "correlation_{}", -1),
        "they fade with depth",
        null=of_queries_and_keys(min, "correlation_{}", 0),
        **below_null(),
    ),
    Claim(
        "figure 6",
        "heads with a direction whose map has a line of one shift (null: a horizontal band)",
        "rotation",
        number("lines_directed"),
        "lines of constant Delta",
        null=number("bands_directed"),
        **HALF,
    ),
    Claim(
        "EMNLP appendix C",
        "heads whose map has a horizontal band (null: a line of one shift)",
        "rotation",
        number("bands"),
        "horizontal bands",
        G,
        null=number("lines"),
        options={"completion": "lapack"},
        **SHARE,
    ),
    Claim(  # the count is of a width of 768: any model is asked for one direction
        "EMNLP figure 4",
        f"directions of the stream that follow the position table, held out ({HIGH} or more), the "
        "fewest of all layers (null: positions in random order, and random weights)",
        "cca",
        fewest("high"),
        "highly correlated in each layer",
        null=high_by_chance,
        **above_null(**ONE),
    ),
    Claim(
        "EMNLP figure 4",
        f"directions that follow the position table, held out ({HIGH} or more), output "
        "(null: before layer 0)",
        "cca",
        number("high", -1),
        "fewer in deeper layers",
        null=number("high", 0),
        **below_null(**ONE),
    ),
    Claim(
        "EMNLP figure 4",
        f"directions that follow the position table, on the documents of the fit ({HIGH} or more), "
        "by layer; special tokens left out",
        "cca",
        fitted_directions,
        "5 to 20",
        R,
        WIKITEXT,
        options=FITTED,
        **between(5, 20, of_each=True),
    ),
    Claim(
        "EMNLP figure 11",
        "heads with a direction that keep half of their attention to it with words shuffled",
        "conditions",
        kept("n_kept", "shuffled"),
        "the peak stays",
        null=kept("n_kept_null", "shuffled"),
        **HALF,
    ),
    Claim(  # published of head(8,9), so heads of the first layer are left out
        "EMNLP figure 9",
        "heads with a direction behind the first layer that keep half of their attention to it on "
        "positions alone",
        "conditions",
        kept_deeper("positions"),
        "the peak vanishes",
        **below(0.5),
    ),
    Claim(
        "EMNLP figure 9",
        "those heads: columns' highest correlation of query and key on words alone, median (null: "
        "on the text)",
        "conditions",
        column_peaks("words"),
        "mostly flat",
        null=column_peaks("text"),
        holds=lambda ours, null: ours < 0.5 * null,
        rule="below half of its null",
    ),
    Claim(
        "EMNLP figure 9",
        "those heads: mean score on words alone is highest at their offset (null: inputs in random "
        "order)",
        "conditions",
        highest_there("words"),
        "the sum is large at the neighbour",
        null=highest_there(),
        **HALF,
    ),
    Claim(
        "EMNLP figure 11",
        "share of the peak of head(8,9)'s scores that stays with words shuffled",
        "conditions",
        score_at("shuffled", 7, 8),
        "stays",
        R,
        **above(0.5),
    ),
    Claim(
        "EMNLP figure 9",
        "share of the peak of head(8,9)'s scores that stays on positions alone",
        "conditions",
        score_at("positions", 7, 8),
        "vanishes",
        R,
        **below(0.5),
    ),
    Claim(
        "EMNLP figure 9",
        "lag of the highest mean score of head(8,9) on words alone",
        "conditions",
        lag_under("words", 7, 8),
        -1,
        R,
        **near(0),
    ),
    *(
        Claim(
            "AttentionViz",
            "Spearman's correlation of products and cosine distances, before and after",
            "joint-grid",
            numbers("spearman_before_mean", "spearman_mean"),
            published,
            of,
            WIKI_AUTO,
            options=JOINT,
            **before_or_after(0.02),
        )
        for of, published in ((B, -0.938), (G, -0.792))
    ),
    Claim(
        "AttentionViz",
        "Spearman's correlation of products and cosine distances, after moving and scaling "
        "(null: queries rotated at random)",
        "joint-grid",
        number("spearman_mean"),
        "distance tells the product",
        null=number("spearman_mean_null"),
        **below_null(),
    ),
    *(
        Claim(
            "figure 9",
            f"share of variance in {n} components",
            "positions",
            number(f"explained_{n}"),
            published,
            R,
            **near(0.0001),
        )
        for n, published in ((4, 0.5051), (12, 0.9223))
    ),
    Claim(
        "figure 4, appendix B",
        "columns of a head that are periodic in query and key (median, heads with a direction)",
        "queries-keys",
        periodic,
        "about 4 to 12 columns",
        null=lambda r: r["typical_null"].item() * int(r["r"]),
        holds=lambda ours, null: 4 <= ours <= 12 and RATIO["holds"](ours, null),
        rule=f"4 to 12, and {RATIO['rule']}",
    ),
    Claim(
        "figure 5",
        "contrast of the position peak in the input of layer 0",
        "extraction",
        contrast("contrast_x"),
        "absent",
        null=contrast("contrast_x_null"),
        **not_above_null(np.inf),
    ),
    *(
        Claim(
            "figure 5",
            f"contrast of the position peak in {of} (null: in their input, in random directions)",
            "extraction",
            contrast(f"contrast_{x}"),
            "present",
            null=contrast("contrast_x", f"contrast_{x}_null"),
            **RATIO,
        )
        for of, x in (("queries", "q"), ("keys", "k"))
    ),
    *(
        Claim(
            "figure 5",
            f"contrast in {of} of the last layer (null: of the first)",
            "extraction",
            contrast(f"last_{x}"),
            "fades with depth",
            null=contrast(f"last_{x}_null"),
            **below_null(np.inf),
        )
        for of, x in (("queries", "q"), ("keys", "k"))
    ),
    Claim(
        "figure 6",
        f"heads with a direction whose rotation fits the offset that they attend to ({THIN})",
        "rotation",
        number("agree_directed"),
        "most of them",
        null=number("agree_directed_null"),
        **HALF,
    ),
    Claim(
        "figure 6",
        f"offset that the rotation of head(1,1) gives ({THIN})",
        "rotation",
        of_head("offset_of_heads", 0, 0),
        "-3 to -1",
        R,
        **between(-3, -1),
    ),
    Claim(
        "figure 6",
        f"offset that the rotation of head(2,3) gives ({THIN})",
        "rotation",
        of_head("offset_of_heads", 1, 2),
        1,
        R,
        **near(0),
    ),
    Claim(
        "figure 7",
        "lag of the highest mean score of head(1,1)",
        "lags",
        of_head("lag_of_heads", 0, 0),
        -2,
        R,
        **near(0),
    ),
    Claim(
        "figure 7",
        "lag of the highest mean score of head(8,9)",
        "lags",
        of_head("lag_of_heads", 7, 8),
        -1,
        R,
        **near(0),
    ),
    Claim(
        "figure 7",
        "heads with a direction in which position × position makes the peak of the scores",
        "lags",
        number("share_positions"),
        "most of them",
        null=number("share_positions_null"),
        **HALF,
    ),
    Claim(
        "figure 7",
        "sharpness of the peak of head(1,1)'s mean score (null: of head(8,9)'s; a wave has 1.4, a "
        "spike 4.7)",
        "lags",
        of_head("sharpness_of_heads", 0, 0),
        "gentle",
        R,
        null=of_head("sharpness_of_heads", 7, 8),
        **below_null(np.inf),
    ),
    Claim(
        "figure 7",
        "sharpness of the peak of head(8,9)'s mean score (null: query positions shuffled)",
        "lags",
        of_head("sharpness_of_heads", 7, 8),
        "sharp",
        R,
        null=number("sharpness_null"),
        **RATIO,
    ),
    Claim(
        "figure 7",
        "sharpness of the peak of the mean score, heads with half of their attention or more at "
        "their offset, median (null: query positions shuffled)",
        "lags",
        sharpness(heads.SHARP, 1),
        "sharp, as their attention",
        null=number("sharpness_null"),
        **RATIO,
    ),
    Claim(
        "figure 7",
        "sharpness of the peak of the mean score, heads with a direction and less than half of "
        "their attention at their offset, median (null: of those with more)",
        "lags",
        sharpness(0, heads.SHARP),
        "gentle, as their attention",
        null=sharpness(heads.SHARP, 1),
        **below_null(np.inf),
    ),
    Claim(
        "figure 7",
        "columns' parts of the score at its peak: their sum over the sum of their sizes, heads "
        "drawn that have a direction, median (null: inputs in random order, their own peak)",
        "lags",
        adding("adding_at_peak"),
        "maxima add at the peak",
        null=adding("adding_at_peak_null"),
        **SHARE,
    ),
    Claim(
        "figure 7",
        "the same at the farthest lags drawn, ±30 where the text is long enough (null: inputs in "
        "random order)",
        "lags",
        adding("adding_far"),
        "maxima and minima cancel at ±30",
        null=adding("adding_far_null"),
        **not_above_null(),
    ),
    *(
        Claim(
            "removal",
            "cosine with and without positions, mean over all tokens",
            "remove-positions",
            number("cosine"),
            published,
            of,
            IMDB,
            options=options,
            **near(0.02),
        )
        for of, published, options in ((B, 0.7702, EACH_B), (G, 0.9291, EACH_G))
    ),
    Claim(
        "removal",
        "perplexity with and without positions",
        "remove-positions",
        perplexities("kept", "zero"),
        [111.2409, 712014.3125],
        G,
        IMDB,
        options=EACH_G,
        **in_some_convention(5, 50000),
    ),
    *(
        Claim(
            "mask",
            f"perplexity with positions, without, with a linear mask as in 2023{read_of}",
            "mask-positions",
            perplexities(KEPT, ZERO, MASKED),
            SLIDES,
            G,
            text,
            options=options,
            **in_some_convention(5, 50000, 1000),
        )
        for text, read_of, options in (
            (TRUTHFULQA, ", questions", QUESTIONS),
            (TRUTHFULQA, ", with answers", ANSWERED),
            (IMDB, "", LINEAR),
        )
    ),
]
