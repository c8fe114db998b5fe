"""Words of the field as the report uses them: what each means, and links to its meaning."""

import functools
import re
from html import escape
from typing import NamedTuple

from ..machine import language
from ..maths import profiles
from . import parts


class Term(NamedTuple):
    """An entry of the glossary."""

    slug: str  # the entry's name in links
    name: str
    forms: str  # regular expression for the forms in which it stands in texts
    meaning: str


TERMS = (
    Term(
        "head",
        "L0H0, head(1,1)",
        r"L\d+H\d+|heads?\(\d+,\d+\)",
        "Head 0 of layer 0: one of the attention units that work side by side in a layer. Layers "
        "and heads are counted from 0 here; the paper counts from 1 and writes head(1,1).",
    ),
    Term(
        "null",
        "null, chance",
        r"nulls?|(?:by )?chance",
        "What the same measure gives where the effect cannot be: with shuffled tokens, random "
        "directions, or the words alone. A value means something only where it is beyond its null.",
    ),
    Term(
        "quantile",
        "99% quantile",
        r"99(?:\.9)? % quantiles?|quantiles?",
        "The value below which 99% of the results stay when an experiment is repeated on "
        "shuffled or random data: chance alone exceeds it 1% of the time.",
    ),
    Term(
        "interval",
        "95% interval",
        r"95% intervals?|intervals?",
        "A range around the value of the documents that were read. Of 100 ranges that are computed "
        "in this way, each from other documents of the text, about 95 contain the value of the "
        "whole text.",
    ),
    Term(
        "pattern",
        "pattern, attention",
        r"(?:attention )?patterns?|attention weights?",
        "The weights of attention: a row for each token that asks, a column for each token looked "
        "at. A row sums to 1.",
    ),
    Term(
        "query",
        "query, key",
        r"quer(?:y|ies)|keys?",
        "A head makes a query of the token that asks and a key of each token that can be looked "
        "at; the better they fit (their product is the score), the more attention goes there.",
    ),
    Term(
        "sign",
        "red, blue",
        r"\b(?:[Rr]ed|[Bb]lue)\b",
        "In a map of numbers that may be below 0, red is above 0, blue below and white is 0, on "
        "every page. Lines, bars and dots have the colours of their legend.",
    ),
    Term(
        "offset",
        "offset",
        r"offsets?",
        "How far the token looked at stands from the token that asks, in tokens: −1 is the token "
        "before, +1 the one after.",
    ),
    Term(
        "lag",
        "lag",
        r"lags?",
        "How far one curve is moved against another before they are compared, in tokens; at the "
        "lag of the peak they fit best. To the right is positive, as with offsets.",
    ),
    Term(
        "profile",
        "profile",
        r"(?:attention )?profiles?",
        "Attention by offset: how much of it goes to the token 1 before, 2 before and so on, "
        "over all tokens that ask.",
    ),
    Term(
        "directed",
        "head with a direction",
        r"heads? with(?:out)? a direction",
        "A head that gives most of its attention near itself to one offset other than 0: at least "
        f"{profiles.LEAST} of all, and {profiles.TIMES} times what looking at all tokens equally "
        "would give.",
    ),
    Term(
        "wa",
        "W_A",
        r"W_A",
        "The product W_Q W_K^T of a head's query and key weights. Attention depends on these "
        "weights only through their product (biases aside).",
    ),
    Term(
        "svd",
        "singular value",
        r"singular values?|SVD",
        "How strongly a matrix carries one of its directions; W_A is a sum of pairs of directions, "
        "one read from the query's token and one from the key's, each times its singular value.",
    ),
    Term(
        "column",
        "column",
        r"columns?",
        "One number for each token, followed along the text: what a head reads along one direction "
        "of W_A, or one coordinate of a table of vectors.",
    ),
    Term(
        "table",
        "position table",
        r"position (?:tables?|embeddings?)",
        "The learned vectors, one for each position in the input, that are added to the words' "
        "vectors so that a model can tell places apart.",
    ),
    Term(
        "frequency",
        "frequency, period",
        r"frequenc(?:y|ies)|periods?|cycles?",
        "How fast a wave goes up and down along the text: its frequency is the number of cycles in "
        "the whole input, its period the number of tokens that one cycle takes.",
    ),
    Term(
        "spectrum",
        "amplitude, spectrum",
        r"amplitudes?|spectr(?:um|a)",
        "How much of a curve swings at a frequency; the amplitudes at all frequencies are its "
        "spectrum.",
    ),
    Term(
        "contrast",
        "contrast",
        r"contrasts?",
        "The amplitude at one frequency over the median amplitude at all of them: 1 where that "
        "frequency is nothing special.",
    ),
    Term(
        "rotation",
        "rotation",
        r"rotations?|rotated",
        "The map that turns the directions a head reads queries from into those it reads keys "
        "from. Turning a wave by an angle shifts it by a share of its period.",
    ),
    Term(
        "gauge",
        "gauge",
        r"gauge|completions?",
        "The choice that the weights leave open: a head's weights fix only a few directions of its "
        "rotation, and any basis can complete the others. What changes with that basis is not a "
        "property of the model.",
    ),
    Term(
        "xcorr",
        "cross-correlation",
        r"cross-(?:correlations?|covariances?)|xcorr|xcov",
        "How well one curve fits another at each lag; cross-covariance is the same before it is "
        "divided by the sizes of both.",
    ),
    Term(
        "stream",
        "residual stream",
        r"(?:residual )?streams?",
        "The vector that each token has in every layer: it begins as word plus position, and each "
        "part of the model adds to it.",
    ),
    Term(
        "component",
        "principal component",
        r"(?:principal )?components?|PCA",
        "The directions along which a cloud of vectors varies most, in order of their share of the "
        "variance.",
    ),
    Term(
        "cca",
        "canonical correlation",
        r"canonical correlations?|CCA",
        "How closely a direction of one space can follow a direction of another: 1 if one can be "
        "computed from the other. The first pair of directions is the closest; each further pair "
        "is uncorrelated with those before it.",
    ),
    Term(
        "effective",
        "effective number, rank",
        r"effective (?:numbers?|ranks?|keys)|entrop(?:y|ies)",
        "How many equally large entries would be as spread out: e to the entropy of the entries' "
        "shares. Of a row of attention it counts keys, of a matrix directions: its effective rank.",
    ),
    Term(
        "macs",
        "multiply-add",
        r"multiply-adds?",
        "One product of two numbers that is added to a sum, the unit in which products of matrices "
        "are counted: n times m times k of them for [n m] times [m k].",
    ),
    Term(
        "toeplitz",
        "Toeplitz",
        r"Toeplitz",
        "A table of scores is Toeplitz if a score depends only on how far the two tokens stand "
        "apart: it is the same along each diagonal.",
    ),
    Term(
        "cosine",
        "cosine",
        r"cosines?",
        "How alike the directions of two vectors are: 1 if they are the same, 0 if they have "
        "nothing in common.",
    ),
    Term(
        "loss",
        "loss, nats",
        r"loss(?:es)?|nats?",
        "How wrong a prediction is: minus the natural logarithm of the probability that the model "
        "gave to the right token, in nats. 0 is perfect.",
    ),
    Term(
        "pseudo",
        "pseudo-perplexity",
        r"pseudo-(?:perplexit(?:y|ies)|loss(?:es)?)",
        "Perplexity of a model that fills gaps: tokens are hidden one at a time and guessed from "
        "both sides. Not to be compared with the perplexity of a model that reads left to right.",
    ),
    Term(
        "perplexity",
        "perplexity",
        r"perplexit(?:y|ies)",
        "Among how many equally likely tokens the model seems to choose. Three conventions give "
        "different numbers: e to the mean loss per token, the mean over documents of each one's "
        "perplexity, and the mean over tokens of e to each loss.",
    ),
    Term(
        "probe",
        "probe",
        r"probes?",
        "A simple linear model that is trained to predict something, such as a token's position, "
        "from a model's vectors, and tested on documents it has not seen.",
    ),
    Term(
        "r2",
        "R²",
        r"R²",
        "The share of the variance that a prediction explains: 1 is perfect, 0 no better than the "
        "mean, and below 0 worse than the mean.",
    ),
)
MEANINGS = {term.slug: term.meaning for term in TERMS}


@functools.cache
def forms(tongue):
    """A regular expression of all forms in a language, each term a group named by its slug."""
    if tongue == "en":
        named = "|".join(f"(?P<{term.slug}>{term.forms})" for term in TERMS)
        return re.compile(rf"(?<![\w-])(?:{named})(?![\w-])")
    with language.using(tongue):
        names = {term.slug: language.translated(term.name).split("、") for term in TERMS}
    longest = sorted(
        ((len(n), n, slug) for slug, each in names.items() for n in each), reverse=True
    )
    alone = "|".join(re.escape(name) for _, name, _ in longest)
    return re.compile(rf"L\d+H\d+|{alone}")


def _slug(match):
    """The term of a match of `forms`."""
    if match.lastgroup:
        return match.lastgroup
    return next(
        (t.slug for t in TERMS if match[0] in language.translated(t.name).split("、")), "head"
    )


class Linker:
    """Turns texts of one section into HTML: each term is a link where it first stands."""

    def __init__(self):
        self.linked = set()

    def __call__(self, text):
        """A text as HTML: its links, and the escaped text between them."""
        html, end = "", 0
        for match in forms(language.current()).finditer(text):
            slug = _slug(match)
            if slug in self.linked:
                continue
            self.linked.add(slug)
            html += escape(text[end : match.start()]) + _link(slug, match[0])
            end = match.end()
        return html + escape(text[end:])


def _link(slug, word):
    """A word as a link to its entry; the meaning shows when the pointer is on it."""
    meaning = escape(language.translated(MEANINGS[slug]))
    return f'<a class="term" href="#term-{slug}" title="{meaning}">{escape(word)}</a>'


def section():
    """The glossary, in alphabetical order."""
    entries = ""
    for term in sorted(TERMS, key=lambda term: term.name.lower()):
        name, meaning = (escape(language.translated(text)) for text in (term.name, term.meaning))
        entries += f'<div id="term-{term.slug}"><dt>{name}</dt><dd>{meaning}</dd></div>'
    title = language.translated("Glossary")
    return f'<section id="glossary">{parts.whole(title, f"<dl>{entries}</dl>")}</section>'
