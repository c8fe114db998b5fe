"""Damage to a checkpoint folder, as data: ["set", "config.json", ["hidden_size"], "1e400"].

A mutation is a list whose first word is a kind of damage (damage_json.py, damage_files.py), which
says how it is drawn and how it is done. What is drawn depends on `random()` alone, whose sequence
for a seed is the same in every version of Python: so a case is its seed and number, which a library
of random tests does not promise from one version to the next.
"""

import random
from typing import NamedTuple

import damage_files
import damage_json
from folders import WITH_TOKENIZER

KINDS = damage_json.KINDS | damage_files.KINDS
OFTEN = [*KINDS, *["set"] * 6, "add", "bytes", "line"]  # what is drawn, some of it more often


class Case(NamedTuple):
    """A base folder's name, and the mutations that are done to it, in order."""

    base: str
    mutations: list


class Dice:
    """Random choices that are the same in every version of Python."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def below(self, n):
        return int(self.random() * n)

    def pick(self, options):
        """A member of a sequence, all as likely."""
        return options[self.below(len(options))]


def draw(seed, number, folders):
    """Case `number` of a seed: one to six mutations, most often one."""
    dice = Dice(f"{seed} {number}")
    with_text = [name for name in WITH_TOKENIZER if name in folders]
    name = dice.pick(with_text if with_text and dice.random() < 0.5 else sorted(folders))
    folder, mutations = dict(folders[name]), []
    wanted = dice.pick([1, 1, 1, 1, 1, 1, 2, 2, 3, 6])
    while folder and len(mutations) < wanted:
        kind = dice.pick(OFTEN)
        files = sorted(file for file in folder if KINDS[kind].reads(file, folder))
        drawn = KINDS[kind].draw(dice, folder, dice.pick(files)) if files else None
        if drawn is not None:
            mutations.append([kind, *drawn])
            folder = mutated(folder, mutations[-1])
    return Case(name, mutations)


def damaged(case, folders):
    folder = dict(folders[case.base])
    for mutation in case.mutations:
        folder = mutated(folder, mutation)
    return folder


def mutated(folder, mutation):
    kind, *given = mutation
    folder = dict(folder)
    KINDS[kind].do(folder, *given)
    return folder
