"""What is measured: the cases, who takes part in each, and what is wanted of the ratios."""
from typing import NamedTuple

FORWARD = ("minitx/nothing", "minitx/pattern", "minitx/internals", "minitx/everything", "transformers/nothing",
           "transformers-eager/internals", "onnxruntime/nothing", "onnxruntime-fused/nothing")


class Case(NamedTuple):
    """One line of the table: peers as "system/task" on one input, in turn."""
    name: str
    peers: tuple
    shape: str
    batch: int
    tokens: int
    threads: int = 2
    rounds: int = 5        # in each set of processes


def _forward(shape, rounds=((1, 32, 9), (1, 128, 7), (1, 512, 5), (8, 32, 5), (8, 128, 5))):
    short = {"roberta-base": "roberta", "gpt2": "gpt2"}[shape]
    return [Case(f"{short}-{B}x{T}", FORWARD, shape, B, T, rounds=n) for B, T, n in rounds]


CASES = {case.name: case for case in (*_forward("roberta-base"), *_forward("gpt2"))}
