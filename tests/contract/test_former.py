"""Names that results had in 1.0: an array is a number with a warning; what went says so."""

import numpy as np
import pytest
import surface

from minitx import analysis
from minitx.analysis.contract import former
from minitx.loading.files import read_json

RELEASED = read_json(surface.ARRAYS)


@pytest.fixture(scope="module")
def result(bundled):
    """A run that takes no time."""
    return analysis.run("positions", bundled, shuffles=5)


def test_a_number_that_is_an_array_now_is_read_with_a_warning(result):
    with pytest.warns(DeprecationWarning, match=r"use result.arrays\['n_slow'\]") as seen:
        number = result.numbers["n_slow"]
    assert seen[0].filename == __file__
    assert number.value == result.arrays["n_slow"] and number.null is None
    with pytest.warns(DeprecationWarning):
        assert result.numbers["words"].null == result.arrays["words_null"]
    assert "n_slow" not in result.numbers and "n_slow" not in result.table()["number"]


@pytest.mark.parametrize("name", ["n_peaks", "n_peaks_null"])
def test_a_name_that_went_says_what_it_was(result, name):
    with pytest.raises(KeyError, match=rf"no '{name}' since 1.1; it was len"):
        result.arrays[name]
    with pytest.raises(KeyError, match="since 1.1; it was len"):
        result.numbers[name]


def test_a_name_that_never_was_says_which_is_close(result):
    with pytest.raises(KeyError, match="no 'peack'; did you mean peak"):
        result.arrays["peack"]


def test_what_it_was_is_made_of_what_there_is(bundled, result):
    """Formulas of the table, beside the numbers of 1.0.0 of the same model."""
    was = {"n_peaks": 1, "n_components": [7, 12, 63], "n_above": 22}
    scope = {"arrays": result.arrays, "np": np, "len": len}
    for name, value in was.items():
        again = eval(former.WENT["positions"][name], scope)
        assert np.array_equal(again, value), name


def test_only_what_1_0_had_is_said_to_have_gone():
    for experiment, names in former.WENT.items():
        assert {*names} <= {*RELEASED[experiment].split()}
