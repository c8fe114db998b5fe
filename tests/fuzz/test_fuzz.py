"""Damaged folders: those that once failed are clear now, and the fuzzer finds what is planted.

Cases are forked, which a process with threads must not do: so each test of cases has a process of
its own. Linux only, as the fuzzer; `make fuzz` tries ten thousand.
"""

import ast
import json
import sys

import folders
import large_folders
import pytest
from processes import TOOLS, python

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="limits and /proc of Linux")


@needs_linux
def test_cases_that_once_failed_are_clear_now():
    status, text = python(str(TOOLS / "fuzz.py"), "--replay")
    n = len([*(folders.GOLDEN / "fuzz").glob("*.json")])
    assert (status, text.partition(" ")[0]) == (0, str(n)), text
    assert n > 10


LARGE = """
import fuzz, damage, large_folders
cases = {name: damage.Case(name, []) for name in large_folders.LARGE}
results = fuzz.run_all(cases)
print({name: (result.outcome, result.memory, result.size) for name, result in results.items()})
"""


@needs_linux
def test_large_folders_take_at_most_twice_their_size(tmp_path):
    """Measured: 1.0 to 1.4 of the file; of 16 bits, which become 32 in memory, 2.4."""
    status, text = python("-c", LARGE, TMPDIR=str(tmp_path))
    assert status == 0, text
    results = ast.literal_eval(text)
    assert results.keys() == large_folders.LARGE.keys()
    for name, (outcome, memory, size) in results.items():
        assert outcome == "sound", name
        assert size > 40e6
        assert memory < (2.7 if large_folders.is_converted(name) else 1.7) * size, name


# what is planted in place of minitx.load -> the outcome that the fuzzer must give
PLANTED = {
    "raise KeyError('vocab_size')": "KeyError",
    "raise type('PanicException', (BaseException,), {})('config.json')": "PanicException",
    "raise ValueError('a size is wrong')": "names nothing",
    "raise ValueError('config.json: \\x1b[2J')": "more than one line",
    "raise ValueError('config.json' * 200)": "a long message",
    "raise FileNotFoundError('no config.json')": "clear",
    "warnings.warn('config.json')": "warning",
    "os._exit(0)": "crash",
    "while True: pass": "hang",
    "bytearray(1 << 40)": "MemoryError",
    "bytearray(64 << 20); raise ValueError('config.json')": "memory",
    "m = load(path, **more); w = minitx.arrays.Weights(**vars(m.weights) | {'b_U': m.weights.b_U"
    " + 1e38}); m.layers[0].W_out.dtype; return dataclasses.replace(m, weights=w)": "sound",
    "m = load(path, **more); c = dataclasses.replace(m.config, unembed_scale=float('nan'))"
    "; return dataclasses.replace(m, config=c)": "NaN",
}
PLANT = """
import dataclasses, json, os, sys, time, warnings
import fuzz, damage, ordeal, minitx
load, fork = minitx.load, ordeal.os.fork
fuzz.warm_up()
outcomes = {}
for code in json.loads(sys.argv[1]):
    inside = {}
    exec("def planted(path, **more):\\n    " + code, globals(), inside)
    minitx.load = inside["planted"]
    case = damage.Case("bert-masked", [])
    outcomes[code] = fuzz.run_case(1, ("planted", case), ordeal.Limits(cpu=1, clock=4)).outcome
print(json.dumps(outcomes))
"""


@needs_linux
def test_what_is_planted_is_found():
    status, text = python("-c", PLANT, json.dumps([*PLANTED]))
    assert status == 0, text
    assert json.loads(text) == PLANTED
