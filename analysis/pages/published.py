"""Published values and claims beside what a run gives, measured as they were published.

The rows are those of claims.py, mechanism_claims.py and circuit_claims.py. Rows that need the same
experiment, options and text share a run, which has a label: the experiment's name where it needs no
options or text of its own.
"""

import hashlib
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitx.weights import KNOWN

from ..contract import registry, sides
from ..contract.wording import in_sentence, words
from ..machine import escapes
from ..machine.files import finite, writable
from ..machine.language import filled, label, translated
from ..measures import context_extension
from ..running import many
from ..running.single import Failure
from ..texts import formats
from . import circuit_claims, claims, mechanism_claims
from .claims import CHECKPOINTS, TEXTS

CLAIMS = [*claims.CLAIMS, *mechanism_claims.CLAIMS, *circuit_claims.CLAIMS]
VERDICTS = "pass", "fail", "other checkpoint", "needs its text", "not measured"
UNJUDGED = {  # how many were not judged, and why
    "other checkpoint": "{n} of other checkpoints",
    "needs its text": "{n} on texts that were not given",
    "not measured": "{n} not measured",
}


class Need(NamedTuple):
    """What a run needs: rows that need the same share one."""

    experiment: str
    text: str  # a name of TEXTS; "": any
    options: tuple  # (name, value) pairs


def need(claim):
    """What the run behind a claim needs."""
    return Need(claim.experiment, claim.on, tuple(sorted(claim.options.items())))


def labels(claims):
    """{need: label of its run}, in the order of the claims."""
    labelled = {}
    for claim in claims:
        wanted = need(claim)
        stem = f"{claim.experiment}-{TEXTS[claim.on].flag}" if claim.on else claim.experiment
        taken = [claim.experiment, *labelled.values()]
        if wanted == (claim.experiment, "", ()):
            labelled[wanted] = stem
        elif wanted not in labelled:
            further = (f"{stem}-{n}" for n in range(2, len(taken) + 3))
            labelled[wanted] = next(x for x in (stem, *further) if x not in taken)
    return labelled


def outcomes(name, model, given, texts, out, resume=False, claims=None):
    """Run what this model's rows of these claims (None: all) need -> {label: Outcome or Failure}.

    given: options for the runs that need none of their own. texts: {name in TEXTS: file or folder};
    a run whose text is not among them is left out. A run with options of its own has a folder of
    its own in `out`, named by its label. Raises ValueError, before any work, for a text that is not
    what its name says.
    """
    wanted = {need(claim): claim for claim in _all(claims) if concerns(claim, name, model)}
    for text, location in texts.items():
        check_text(text, location)
        if not any(x.text == text for x in wanted):
            line = filled("no number on {text} is published for this model", text=text)
            print(f"minitx: {line}", file=sys.stderr)
    measured = {}
    for x, stem in labels(CLAIMS).items():
        if x not in wanted or (x.text and x.text not in texts):
            continue
        options, folder = given, out
        if stem != x.experiment:
            options = dict(x.options) | ({"text": str(texts[x.text])} if x.text else {})
            options = registry.with_text(options, own=["seed"])
            folder = writable(out / stem)
            print(f"{stem}: {command(wanted[x])}")
        experiments = [registry.get(x.experiment)]
        for _, outcome, _ in many.every(experiments, model, name, options, folder, resume):
            measured[stem] = outcome
    return measured


def _all(claims):
    return CLAIMS if claims is None else claims


def concerns(claim, name, model):
    """Whether a claim can be put to this model."""
    if claim.mechanism:
        reader = sides.reader(model)
        same = context_extension.mechanisms(reader) == [claim.mechanism]
        return same and claim.causal in (None, reader.config.causal)
    return not claim.of or is_of(name, model, claim.of)


def of(claim):
    """What a claim is about, in words."""
    if claim.mechanism:
        return mechanism_claims.models(claim)
    return claim.of or "any model"


def command(claim):
    """The experiment behind a claim, with its options as flags and the name of its text."""
    flags = [flag(name, value) for name, value in claim.options.items()]
    text = [f"on {claim.on}"] if claim.on else []
    return " ".join([claim.experiment, *flags, *text]).replace("'", '"')


def flag(name, value):
    """An option as a flag of the command line."""
    name = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return f"--{name} {value!r}"


def check_text(name, location):
    """Raise ValueError or OSError if the text at `location` cannot be the one of this name."""
    text = TEXTS[name]
    columns = {claim.options.get("column", "") for claim in CLAIMS if claim.on == name}
    for column in sorted(columns):
        try:
            first = next(formats.records(formats.of(location, column=column)), None)
        except (ValueError, FileNotFoundError) as error:
            raise ValueError(f"--{text.flag}: {error}; wanted: {text.what}") from None
        if first is None or text.labelled != (first.label in formats.CLASSES):
            raise ValueError(f"--{text.flag} {str(location)!r}; wanted: {text.what}")


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


def judged(claim, name, model, outcome=None):
    """One row: what was published, what this run gives, what chance gives, the verdict and why.

    outcome: Outcome or Failure of the run that the claim needs; None if there was none.
    """
    ours, null, missing = _values(claim, outcome)
    if not concerns(claim, name, model):
        reason = filled("published for {models} only", models=translated(of(claim)))
        verdict = "other checkpoint"
    elif outcome is None and claim.on:
        flag = TEXTS[claim.on].flag
        what = translated(TEXTS[claim.on].what)
        verdict, reason = "needs its text", f"minitx published … --{flag}: {what}"
    elif missing is not None:
        verdict, reason = "not measured", missing
    else:
        verdict, reason = _verdict(claim, ours, null)
    row = {"verdict": verdict, "reason": reason, "source": claim.source, "what": claim.what}
    row["published"] = claim.published
    row["of"] = f"{of(claim)}, {claim.on}" if claim.on else of(claim)
    row |= {"ours": finite(ours), "null": finite(null), "readings": [*claim.readings]}
    return row | {"measured": command(claim) + _documents(claim, outcome)}


def _documents(claim, outcome):
    """How many documents of a claim's own text were read: ', 2,000 of 25,000 documents'."""
    if not claim.on or outcome is None or isinstance(outcome, Failure):
        return ""
    n = int(outcome.result["documents"])
    numbers = {"n": n, "all": TEXTS[claim.on].documents}
    return filled(", {n:,} of {all:,} documents", **numbers)


NOT_RUN = {  # whether a claim has options of its own
    False: "not run",
    True: "not run, with the options it was published under: minitx published",
}


def _values(claim, outcome):
    """This model's value, what chance gives, and why one of them is missing, else None."""
    if outcome is None:
        return None, None, translated(NOT_RUN[bool(claim.options)])
    if isinstance(outcome, Failure):
        return None, None, outcome.reason
    ours = null = None
    try:
        ours = claim.ours(outcome.result)
        null = claim.null(outcome.result) if claim.null else None
    except (KeyError, IndexError, ValueError):
        reason = "not in this model or input, or no more than chance gives"
        return ours, null, translated(reason)
    return ours, null, None


def _verdict(claim, ours, null):
    """The verdict on a value, and its reason."""
    against = null if claim.null else claim.published
    reason = translated("wanted: " + claim.rule)
    if claim.readings:
        fitting = [x for x, value in zip(claim.readings, ours) if claim.holds(value, against)]
        passed = bool(fitting)
        names = "; ".join(map(translated, fitting)) or translated("none")
        reason += filled("; fits: {names}", names=names)
    else:
        passed = claim.holds(ours, against)
    return "pass" if passed else "fail", reason


def rows(name, model, outcomes, claims=None):
    """Each claim, judged; outcomes: {label of a run: Outcome or Failure}."""
    labelled = labels(CLAIMS)
    return [judged(x, name, model, outcomes.get(labelled[need(x)])) for x in _all(claims)]


def tally(judgements):
    """How many hold and how many were not judged: '9 of 12 claims hold; 7 of other checkpoints'."""
    n = {verdict: [row["verdict"] for row in judgements].count(verdict) for verdict in VERDICTS}
    text = filled("{n} of {all} claims hold", n=n["pass"], all=n["pass"] + n["fail"])
    others = [filled(UNJUDGED[verdict], n=n[verdict]) for verdict in UNJUDGED if n[verdict]]
    return "; ".join([text, *others])


TITLES = (
    "where",
    "what",
    "published",
    "of",
    "this run",
    "null",
    "verdict",
    "reason",
    "measured with",
)


def cells(row):
    """The texts of one row, in the order of TITLES."""
    about = row["source"], row["what"], words(row["published"], 10), row["of"]
    ours = words(row["ours"], 4)
    if row["readings"] and row["ours"]:
        pairs = zip(map(translated, row["readings"]), row["ours"])
        ours = "; ".join(f"{name}: {words(value, 4)}" for name, value in pairs)
    reason = row["reason"]
    if row["verdict"] == "not measured":  # an error's text, with names in it
        reason = escapes.in_markdown(reason)
    verdict = in_sentence(row["verdict"])
    measured = [ours, words(row["null"], 4), verdict, label(reason), row["measured"]]
    return [*map(label, about), *measured]


def markdown(judgements):
    """The rows as a Markdown table."""
    return escapes.table([[*map(translated, TITLES)], *map(cells, judgements)])
