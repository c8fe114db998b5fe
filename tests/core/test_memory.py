"""Freed memory stays for the next arrays: counted in page faults of a process of its own."""

import os
import subprocess
import sys

import pytest

LINUX = sys.platform == "linux" and os.confstr("CS_GNU_LIBC_VERSION") is not None
pytestmark = pytest.mark.skipif(not LINUX, reason="this C library keeps freed memory otherwise")
# page faults of ten rounds in which three arrays are made and freed
COUNTED = """
import resource
import numpy as np
import minitx
{before}

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        arrays = [np.ones({size}) for _ in range(3)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""
LOADED = "minitx.load('tiny-bert')"
NONE_KEPT = LOADED + "; minitx.memory.keep_freed_memory(0)"
# page faults: measured none where memory is kept; else 10,000 to 15,000, and where the system hands
# out large pages still 12 a round
FEW, MANY = 20, 100


def faults(before, size=1 << 20, **environment):
    """Page faults of a process in which `before` is run first."""
    tuned = ("MALLOC_", "GLIBC_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(tuned)}
    command = [sys.executable, "-c", COUNTED.format(before=before, size=size)]
    options = {"capture_output": True, "text": True, "timeout": 100}
    done = subprocess.run(command, env=clean | environment, check=True, **options)
    return int(done.stdout)


def test_a_loaded_model_keeps_freed_memory_and_an_import_does_not():
    assert faults(LOADED) < FEW
    assert faults("") > MANY
    assert faults(NONE_KEPT) > MANY


def test_what_the_environment_says_is_left_alone():
    assert faults(LOADED, MALLOC_TRIM_THRESHOLD_="100000") > MANY


def test_learning_keeps_arrays_of_any_size_and_its_end_does_not():
    size = 6 << 20  # 48 MiB: glibc hands out memory of their own for each of these
    learning = LOADED + "; kept = minitx.memory.all_freed_memory_kept(); kept.__enter__()"
    assert faults(LOADED, size) > MANY
    assert faults(learning, size) < FEW
    assert faults(learning + "; kept.__exit__(None, None, None)", size) > MANY
