"""Which task heads a checkpoint's file holds, and which of them it is for."""

import re
from dataclasses import replace

from ..heads import HEADS, of_classes, saved_with

# GPT2LMHeadModel, BartForConditionalGeneration, MarianMTModel, LlamaForCausalLM, not GPT2Model;
# BartModel, since the published BARTs were trained with the head and saved without it
WITH_HEAD = re.compile("Head|ForConditionalGeneration|MTModel|ForCausalLM|^BartModel")


def with_head(config, family, stored, head=None):
    """The config with the task head that the file holds, and that head's activation.

    head: the one that is wanted, where the file holds several. Raises ValueError if it has not got
    that.
    """
    withheld = family.withheld(config, stored.tensors)
    held = [name for name in family.heads if _is_held(name, config, family, stored)]
    held = [name for name in held if name not in withheld]
    if head in withheld:
        raise ValueError(f"the head {head!r} of this checkpoint is not read: {withheld[head]}")
    if head is None:
        head = _task_head(config, family, stored, held)
        if head in withheld:
            return replace(config, task_head=None, no_head=withheld[head])
    elif head not in held:
        saved_from = config.architecture or config.model_type
        text = f"no head {head!r} in this checkpoint ({saved_from})"
        raise ValueError(f"{text}; available heads: {', '.join(held) or 'none'}")
    reads = family.head_reads.get(head, ())
    config = replace(config, task_head=head, head_reads=reads)
    if not of_classes(head):
        return config
    act = family.sequence_act if HEADS[head].is_pooled else None
    act = act or config.head_act
    return replace(config, head_act=act, unembed_scale=1.0, logit_cap=0.0)


def _is_held(head, config, family, stored):
    """Whether the file has all tensors of a head; a tied W_U is the word embedding."""
    tied = config.tied and not of_classes(head)
    table = family.heads[head]
    needed = [t for ours, t in table.items() if not t.optional and not (tied and ours == "W_U")]
    return all(map(stored.find, needed))


def _task_head(config, family, stored, held):
    """The head that a checkpoint is for, a name in HEADS or None; held: those that it has."""
    saved_from = config.architecture
    if classifiers := [name for name in saved_with(saved_from) if name in family.heads]:
        return classifiers[0]
    if "projection" in held:
        return "projection"
    if not saved_from and (classifiers := [n for n in ("sequence", "question") if n in held]):
        return classifiers[0]
    if "masked" in family.heads:
        return "masked" if stored.find(family.heads["masked"]["W_head"]) else None
    if "causal" not in family.heads:
        return None
    tied = config.tied and (not saved_from or bool(WITH_HEAD.search(saved_from)))
    return "causal" if tied or stored.find(family.heads["causal"]["W_U"]) else None
