"""Published values and claims beside what a run gives: pass or fail.

The rows are those of claims.py. Order: the judgement, its table.
"""

import hashlib
from pathlib import Path

import numpy as np

from minitx.weights import KNOWN

from ..runner.results import Failure, words
from .claims import CHECKPOINTS, CLAIMS


def is_of(name, model, checkpoint):
    """Whether a model is that checkpoint.

    Its sizes must agree, and its position table or, where that is not known, its name. name: as the
    user called it: the checkpoint's name, its hub id, or a folder of that name.
    """
    cfg, W_pos = model.config, model.weights.W_pos
    sizes, digest = CHECKPOINTS[checkpoint]
    if (cfg.model_type, cfg.n_layers, cfg.d_model, cfg.n_vocab) != sizes:
        return False
    if digest and W_pos is not None:
        table = np.ascontiguousarray(W_pos, np.float32)
        return hashlib.sha256(table).hexdigest() == digest
    return str(name) in (checkpoint, KNOWN[checkpoint][0]) or Path(name).name == checkpoint


def judged(claim, name, model, results):
    """One row: what was published, what this run gives, what chance gives, the verdict and why.

    results: {experiment: Outcome or Failure}.
    """
    outcome = results.get(claim.experiment, Failure("not run", True))
    ours, null, missing = _values(claim, outcome)
    if claim.of and not is_of(name, model, claim.of):
        verdict, reason = "no published value", f"published for {claim.of} only"
    elif missing is not None:
        verdict, reason = "not measured", missing
    else:
        text = outcome.settings.get("options", {}).get("text", "")
        verdict, reason = _verdict(claim, ours, null, text)
    row = {"verdict": verdict, "reason": reason, "source": claim.source, "what": claim.what}
    row["published"] = claim.published
    row["of"] = f"{claim.of}, {claim.on}" if claim.on else claim.of or "any model"
    return row | {"ours": ours, "null": null}


def _values(claim, outcome):
    """This model's value, what chance gives, and why one of them is missing, else None."""
    if isinstance(outcome, Failure):
        return None, None, outcome.reason
    ours = null = None
    try:
        ours = claim.ours(outcome.result)
        null = claim.null(outcome.result) if claim.null else None
    except (KeyError, IndexError, ValueError):
        return ours, null, "not in this model or input, or no more than chance gives"
    return ours, null, None


def _verdict(claim, ours, null, text):
    """The verdict on a value that was measured on `text`, and its reason."""
    if claim.on and claim.on.split()[0].lower() not in text.lower():
        return "not comparable", f"published on {claim.on}; read here: {text}"
    passed = claim.holds(ours, null if claim.null else claim.published)
    return "pass" if passed else "fail", f"wanted: {claim.rule}"


def rows(name, model, results):
    """Every claim, judged."""
    return [judged(claim, name, model, results) for claim in CLAIMS]


TITLES = ("where", "what", "published", "of", "this run", "null", "verdict", "reason")


def cells(row):
    """The texts of one row, in the order of TITLES."""
    published = [row["source"], row["what"], str(row["published"]), row["of"]]
    numbers = [words(row["ours"], 4), words(row["null"], 4)]
    return [*published, *numbers, row["verdict"], row["reason"]]


def markdown(judgements):
    """The rows as a Markdown table."""
    lines = [TITLES, ["---"] * len(TITLES), *map(cells, judgements)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
