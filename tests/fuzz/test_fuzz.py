"""Damaged folders: those that once failed are clear now, and the fuzzer finds what is planted.

Cases are forked, which a process with threads must not do: so each test of cases has a process of
its own. Linux only, as the fuzzer; `make fuzz` tries ten thousand.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import damage
import folders
import large_folders
import pytest

TOOLS = Path(damage.__file__).parent
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="limits and /proc of Linux")
FOLDERS = folders.bases()


SETTINGS = os.environ | {"PYTHONPATH": os.pathsep.join([str(folders.ROOT), str(TOOLS)])}


def python(*arguments, **more):
    """What a Python process in tests/tools prints; more: of its environment."""
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, env=SETTINGS | more, capture_output=True, text=True, timeout=200, check=False
    )
    return done.returncode, done.stdout + done.stderr


@needs_linux
def test_cases_that_once_failed_are_clear_now():
    status, text = python(str(TOOLS / "fuzz.py"), "--replay")
    n = len([*(folders.GOLDEN / "fuzz").glob("*.json")])
    assert (status, text.partition(" ")[0]) == (0, str(n)), text
    assert n > 10


UNDAMAGED = """
import fuzz, damage
cases = {name: damage.Case(name, []) for name in fuzz.bases()}
results = fuzz.run_all(cases)
print([(name, result) for name, result in results.items() if result.outcome != "sound"])
"""


@needs_linux
def test_every_folder_is_sound_before_it_is_damaged():
    assert python("-c", UNDAMAGED) == (0, "[]\n")


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
    "raise UnicodeDecodeError('utf-8', b'a', 0, 1, 'config.json')": "UnicodeDecodeError",
    "raise type('PanicException', (BaseException,), {})('config.json')": "PanicException",
    "raise ValueError('a size is wrong')": "names nothing",
    "raise ValueError('config.json\\nand more')": "more than one line",
    "raise ValueError('config.json: \\x1b[2J')": "more than one line",
    "raise ValueError('config.json' * 200)": "a long message",
    "raise FileNotFoundError('no config.json')": "clear",
    "warnings.warn('config.json')": "warning",
    "os.kill(os.getpid(), 11)": "crash",
    "os._exit(0)": "crash",
    "time.sleep(60)": "hang",
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


def test_a_case_is_its_seed_and_number():
    cases = [damage.draw(1, number, FOLDERS) for number in range(60)]
    assert [damage.draw(1, number, FOLDERS) for number in range(60)] == cases
    assert [damage.draw(2, number, FOLDERS) for number in range(60)] != cases
    # drawn from random() alone, whose numbers are the same in every version of Python
    dice = damage.Dice("1 4711")
    assert [dice.below(1000) for _ in range(4)] == [811, 125, 102, 995]
