"""Published values beside what a run gives: every number and claim of the paper and the slides, with pass or fail.

A row of CLAIMS names an experiment and what in its result to look at. A number was published for one checkpoint and
is compared with that one only; a claim ("above its null") can be put to any model. Order: the list, its judgement,
its table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weights import KNOWN

from .results import Failure


@dataclass(frozen=True)
class Claim:
    """One published value or claim."""
    source: str              # figure, section or slide
    what: str
    experiment: str
    ours: Callable           # result -> this model's value; KeyError or IndexError where it has none
    published: object        # the value, or the claim in words
    of: str = ""             # the checkpoint whose value it is; "": a claim about any model
    on: str = ""             # the text that the value depends on
    null: Callable = None    # result -> what chance gives
    holds: Callable = None   # (ours, null or published) -> bool
    rule: str = ""           # what `holds` asks, in words


def near(tolerance):
    """Within so much of the published value."""
    return {"holds": lambda ours, value: bool(np.all(np.abs(np.asarray(ours) - value) <= tolerance)),
            "rule": f"within {tolerance:g}"}


ABOVE = {"holds": lambda ours, null: bool(ours > null), "rule": "above its null"}
NOT_ABOVE = {"holds": lambda ours, null: bool(ours <= null), "rule": "not above its null"}


def number(name):
    """The headline number of that name."""
    return lambda r: r[name].item() if r[name].ndim == 0 else r[name]


def at(name, layer, head):
    """The value of one head in an array [L H]."""
    return lambda r: r[name][layer, head].item()


# The checkpoints are those of weights.KNOWN.
R, B, G = "roberta-base", "bert-base-uncased", "gpt2"
CLAIMS = [
    Claim("figure 3", "position embeddings have a peak", "positions", number("amplitude"),
          "largest amplitude above chance", null=number("amplitude_null"), **ABOVE),
    Claim("figure 3", "word embeddings have none", "positions", number("words"), "largest amplitude no more than chance",
          null=number("words_null"), **NOT_ABOVE),
    Claim("figures 3, 5", "frequency of a peak, cycles in 512 tokens", "positions", lambda r: r["above"], 50, R,
          holds=lambda ours, value: bool(np.any(np.abs(ours - value) <= 5)), rule="one of them within 5"),
    Claim("figure 9", "variance held by 4 components", "positions", number("explained_4"), 0.5051, R, **near(0.0001)),
    Claim("figure 9", "variance held by 12 components", "positions", number("explained_12"), 0.9223, R, **near(0.0001)),
    Claim("figure 1", "most heads keep their direction whatever the text", "profiles", number("steady"),
          "more than half of the heads, and above chance", null=number("steady_null"),
          holds=lambda ours, null: bool(ours > max(0.5, null)), rule="above its null and a half"),
    Claim("figures 2, 7", "offset that head(8,9) attends to", "profiles", at("best_offset", 7, 8), -1, R, "WikiText-2", **near(0)),
    Claim("figures 2, 6", "offset that head(2,3) attends to", "profiles", at("best_offset", 1, 2), 1, R, "WikiText-2", **near(0)),
    Claim("removal", "cosine with and without positions", "remove-positions", number("cosine"), 0.7702, B, "IMDB reviews", **near(0.02)),
    Claim("removal", "cosine with and without positions", "remove-positions", number("cosine"), 0.9291, G, "IMDB reviews", **near(0.02)),
    Claim("removal", "perplexity with positions", "remove-positions", lambda r: r["mean_perplexity"][0].item(), 111.2409, G,
          "IMDB reviews", **near(5)),
    Claim("removal", "perplexity without positions", "remove-positions", lambda r: r["mean_perplexity"][1].item(),
          712014.3125, G, "IMDB reviews", **near(50000)),
]


def is_of(name, checkpoint):
    """Whether a model, as the user called it, is that checkpoint: by its name, its hub id, or its folder's name."""
    return str(name) in (checkpoint, KNOWN[checkpoint][0]) or Path(name).name == checkpoint


def judged(claim, name, results):
    """One row: what was published, what this run gives, what chance gives, and the verdict with its reason.

    results: experiment -> its Outcome or Failure.
    """
    of = f"{claim.of}, {claim.on}" if claim.on else claim.of or "any model"
    row = {"source": claim.source, "what": claim.what, "published": claim.published, "of": of, "ours": None, "null": None}
    outcome = results.get(claim.experiment, Failure("not run", True))
    if isinstance(outcome, Failure):
        return row | {"verdict": "not measured", "reason": outcome.reason}
    result = outcome.result
    try:
        row["ours"] = _plain(claim.ours(result))
        row["null"] = _plain(claim.null(result)) if claim.null else None
    except (KeyError, IndexError):
        row["reason"] = "this model has no such part"
    if claim.of and not is_of(name, claim.of):
        return row | {"verdict": "no published value", "reason": f"published for {claim.of} only"}
    if "reason" in row:
        return row | {"verdict": "not measured"}
    other = claim.null(result) if claim.null else claim.published
    verdict = "pass" if claim.holds(claim.ours(result), other) else "fail"
    return row | {"verdict": verdict, "reason": f"wanted: {claim.rule}"}


def _plain(value):
    return value.tolist() if isinstance(value, np.ndarray) else value


def rows(name, results):
    """Every claim, judged."""
    return [judged(claim, name, results) for claim in CLAIMS]


TITLES = ("where", "what", "published", "of", "this run", "null", "verdict", "reason")


def cells(row):
    """The texts of one row, as in TITLES."""
    return [row["source"], row["what"], words(row["published"]), row["of"], words(row["ours"]), words(row["null"]),
            row["verdict"], row["reason"]]


def markdown(judgements):
    """The table."""
    lines = [TITLES, ["---"] * len(TITLES), *map(cells, judgements)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def words(value):
    """A value for people: four digits, lists with commas, a dash for none."""
    if isinstance(value, list):
        return ", ".join(map(words, value)) or "none"
    return "–" if value is None else f"{value:.7g}" if isinstance(value, float) and abs(value) > 1000 else \
        f"{value:.4g}" if isinstance(value, float) else str(value)
