"""A hundred states in which users' folders are: each loads as the plain one, or says what to do."""

import folder_states
import numpy as np
import pytest
import tiny

import minitx


def arrays(model):
    """{name: array} of a model and of the stacks beside it."""
    named = {}
    for stack in filter(None, (model, model.encoder, model.text)):
        for name, x in tiny.walk(stack):
            named[len(named), name] = x
    return named


@pytest.mark.parametrize("state", folder_states.SAY, ids=lambda state: state.name)
def test_a_folder_that_does_not_load_says_what_it_is(tmp_path, state):
    path = folder_states.built(state, tmp_path / "model")
    with pytest.raises((ValueError, FileNotFoundError), match=state.says) as caught:
        minitx.load(path)
    said = str(caught.value)
    assert "\n" not in said and len(said) < 700
    assert "not a bundled model" not in said and "minitx fetch" not in said


@pytest.mark.parametrize(
    "state", folder_states.LOAD, ids=lambda state: f"{state.base}, {state.name}"
)
def test_a_folder_in_another_state_loads_as_the_plain_one(tmp_path, state):
    model = minitx.load(folder_states.built(state, tmp_path / "model"))
    plain = minitx.load(tiny.GOLDEN / state.base)
    assert model.config == plain.config
    own, expected = arrays(model), arrays(plain)
    assert own.keys() == expected.keys() and len(own) > 20
    assert all(np.array_equal(x, expected[key], equal_nan=True) for key, x in own.items())


@pytest.mark.parametrize("name", folder_states.TOKENIZER_FILES)
def test_a_tokenizer_file_that_is_a_pointer_is_named_before_it_is_read(tmp_path, name):
    folder = tiny.make(tmp_path / "model")
    for other in ("vocab.json", "merges.txt"):  # a form of which the file may be a part
        (folder / other).write_text("{}")
    (folder / name).write_bytes(folder_states.POINTER)
    model = minitx.load(folder)
    with pytest.raises(ValueError, match=rf"{name} is a Git LFS pointer.*: run `git lfs pull`"):
        model.tokenizer.encode("A text.")
