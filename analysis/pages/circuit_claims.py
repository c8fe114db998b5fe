"""Published claims about heads of GPT-2 small: induction, and who is the indirect object.

They are of one checkpoint, which was not at hand when these rows were written: nothing here was
measured on it. Heads are judged on random words that occur twice (`heads`), and on prompts that ask
which of two people is given something (`paths`). The prompts have the form of Wang et al. 2022, but
other sentences, and are fewer; no token stands before the text. Direct effects, and effects on the
queries of the name movers, are as published: what a head writes in a text with three other names is
put into the run of the prompt, heads between keep still, MLPs are computed again. The published
heads are those that stood out in a figure; here it is asked whether they are among as many heads
with the largest effects.
"""

import numpy as np

from ..maths import nulls
from .claims import SHARE, Claim, G

INDUCTION = (5, 1), (5, 5), (6, 9), (7, 2), (7, 10)
PREVIOUS = (2, 2), (4, 11)
DUPLICATE = (0, 1), (0, 10), (3, 0)
MOVERS = (9, 6), (9, 9), (10, 0)
NEGATIVE = (10, 7), (11, 10)
INHIBITION = (7, 3), (7, 9), (8, 6), (8, 10)
OLSSON, WANG = "Olsson et al. 2022; Wang et al. 2022", "Wang et al. 2022"
ASKED = {"pairs": "names", "n_pairs": 48, "writers": "L9H6,L9H9,L10H0", "reads": "q"}


def listed(heads):
    """Names of heads as published: 9.6, 9.9."""
    return ", ".join(f"{layer}.{head}" for layer, head in heads)


def least(kind, heads):
    """The least of these heads' attention to what heads of a kind look at."""
    return lambda r: min(r[f"{kind}_of_heads"][head].item() for head in heads)


def most_by_chance(kind):
    """The most that any head has by chance."""
    return lambda r: r[f"{kind}_of_heads_null"].max().item()


def among(name, heads, sign=1):
    """Share of these heads that are among as many with the largest effects; sign -1: the least."""

    def ours(r):
        effects = sign * r[name]
        least_of_them = np.sort(effects, axis=None)[-len(heads)]
        return np.mean([effects[head] >= least_of_them for head in heads]).item()

    return ours


def drawn(name, heads):
    """What 99% of as many heads, drawn at random, stay within."""

    def null(r):
        k = len(heads)
        from scipy import stats

        return stats.hypergeom(r[name].size, k, k).ppf(nulls.CHANCE).item() / k

    return null


def of_attention(source, kind, heads, what):
    """A claim on what heads look at where random words are said twice."""
    what = f"attention of {listed(heads)} to {what}, the least; random words that occur twice"
    value, null = least(kind, heads), most_by_chance(kind)
    return Claim(source, what, "heads", value, f"{kind} heads", G, null=null, **SHARE)


def of_names(heads, name, what, published, sign=1):
    """A claim on effects on the name of the indirect object."""
    what = f"share of {listed(heads)} among the {len(heads)} heads with {what} (other sentences)"
    rule = {"null": drawn(name, heads), "options": ASKED, **SHARE}
    return Claim(WANG, what, "paths", among(name, heads, sign), published, G, **rule)


CLAIMS = [
    of_attention(OLSSON, "induction", INDUCTION, "the token after the first occurrence"),
    of_attention(OLSSON, "previous", PREVIOUS, "the token before"),
    of_attention(WANG, "duplicate", DUPLICATE, "the first occurrence"),
    of_names(
        MOVERS,
        "lost_by_direct",
        "the largest direct effects on the indirect object's name",
        "name movers",
    ),
    of_names(
        NEGATIVE,
        "lost_by_direct",
        "the largest direct effects against it",
        "negative name movers",
        sign=-1,
    ),
    of_names(
        INHIBITION,
        "lost_by_through",
        "the largest effects through the name movers' queries",
        "S-inhibition heads",
    ),
]
