"""What an experiment reads of an encoder-decoder: the one place that decides.

encoder: `model.encoder`, a Model of its own, whose texts and weights are read as those of a BERT.
decoder: its weights alone, as of a partial checkpoint. A decoder reads no text without a source,
and what it computes depends on the source as much as on the text.
cross: what looks from the decoder's tokens to those of a source.
both: the encoder-decoder as a whole.

An experiment that names its sides (attention, alignment) takes a source by itself; it gets the
whole model for a decoder and for cross-attention.
"""

from dataclasses import replace
from typing import Literal

from ..machine.language import filled
from .options import understand
from .registry import EXPERIMENTS, NotApplicable

AUTO = "auto"
SIDES = "encoder", "decoder", "cross", "both"
HELP = "part of an encoder-decoder to analyse (auto: what the experiment concerns, or its encoder)"
OPTION = understand("side", Literal["auto", "encoder", "decoder", "cross", "both"], AUTO, HELP)
SOURCE = "a source for each text"  # what a decoder by itself lacks
SENTENCES = {
    "": "",
    "encoder": "This is of the encoder alone.",
    "decoder": "This is of the decoder.",
    "cross": "This is of cross-attention.",
    "both": "This is of encoder and decoder together.",
}


def split(options):
    """The side among some options, checked, and the others."""
    others = dict(options)
    return OPTION.checked(others.pop(OPTION.name, AUTO)), others


def has_own(experiment):
    """Whether an experiment has a keyword `side` by itself."""
    return OPTION.name in experiment.option_names


def of(experiment):
    """The sides that an experiment can read; the first is read where none is named."""
    if experiment.sides:
        return experiment.sides
    return SIDES[:2] if experiment.weights_only else SIDES[:1]


def side_of(experiment, model, side=AUTO):
    """The side of a model that an experiment reads; "" in a single stack.

    Raises NotApplicable for one that it cannot read, or that the model does not have.
    """
    if model.encoder is None:
        _check_single(experiment, model, side)
        return ""
    if side == AUTO:
        side = of(experiment)[0]
    if side not in of(experiment):
        raise NotApplicable(_refusal(experiment, side))
    return side


def part(experiment, model, side):
    """The Model in which an experiment reads that side."""
    if side == "encoder":
        return model.encoder
    if side == "decoder" and not experiment.sides:
        return replace(model, encoder=None, missing=(*model.missing, SOURCE))
    return model


def model_of(experiment, model, options):
    """The Model in which an experiment with these options reads."""
    side, _ = split(options)
    return part(experiment, model, side_of(experiment, model, side))


def lacking(model):
    """What a model lacks that is to be looked at by its weights alone."""
    if SOURCE in model.missing:
        return "a decoder reads no text without a source"
    return f"{len(model.missing)} tensors of this checkpoint are missing"


def reader(model):
    """The Model that reads texts: an encoder-decoder's encoder, or the model itself."""
    return model if model.encoder is None else model.encoder


def _check_single(experiment, model, side):
    """Raise NotApplicable where a single stack is to have sides."""
    kind = model.config.model_type
    if side != AUTO:
        raise NotApplicable(
            f"--side is {side}, but this model ({kind}) has a single stack; leave it out"
        )
    if "encoder" not in of(experiment):
        text = "{name} needs an encoder-decoder; this model ({kind}) has a single stack"
        raise NotApplicable(filled(text, name=experiment.name, kind=kind))


def _refusal(experiment, side):
    """Why an experiment does not read a side, what it reads, and what reads that side."""
    why = {
        "encoder": "is about how a decoder reads its source",
        "decoder": "runs texts, which a decoder cannot read without a source",
        "cross": "is about one stack by itself",
        "both": "is about one stack at a time",
    }
    others = [other.name for other in EXPERIMENTS.values() if side in of(other)]
    wanted = " or ".join(of(experiment))
    if experiment.sides:
        why["decoder"] = why["encoder"]
    return (
        f"--side is {side}, but {experiment.name} {why[side]}; wanted {wanted} "
        f"(--side {side} is read by {', '.join(others)})"
    )
