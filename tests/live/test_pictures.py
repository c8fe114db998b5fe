"""The live page of a model of pictures: its pictures by number, its changes, what it refuses."""

import numpy as np
import pytest
import served
from elements import Elements

import minitx
from minitx.analysis.live import server
from minitx.analysis.live.changes import Changes
from minitx.analysis.live.runs import Runs
from minitx.analysis.pages import packing
from minitx.weights import shapes


@pytest.fixture(scope="module")
def client():
    models = {name: minitx.load(name) for name in ("tiny-vit", "tiny-bert")}
    return served.client(Runs(models), server.first_text(models["tiny-vit"]))


def ask(client, path="run", **values):
    """The answer to a request for the seventh picture."""
    return client.post(f"/api/{path}", json={"model": "tiny-vit", "text": "sample:7"} | values)


def pattern(run):
    return packing.unpack(run["arrays"]["pattern"])


def tokens():
    """Those of the seventh picture."""
    pictures, _ = shapes.draw(1, seed=7)
    return minitx.load("tiny-vit").encode(images=pictures[0]).tokens[0]


def test_the_page_begins_with_a_drawn_picture(client):
    data = Elements(client.get("/").text).data
    assert data["runs"][0]["text"] == server.PICTURE and data["runs"][0]["picture"]["rows"] == 8
    models = data["live"]["server"]["models"]
    assert models["tiny-vit"]["picture"] and not models["tiny-bert"]["picture"]


@pytest.mark.parametrize(
    "changes",
    [
        {"positions": "zero"},
        {"positions": "shuffled"},
        {"dial": 1},
        {"dial_down": -2},
        {"dial": 3, "dial_down": 1},
        {"heads_off": [[0, 1]]},
        {"layers_off": [1]},
    ],
)
def test_changes_of_a_picture_are_those_of_the_python_that_is_shown(client, changes):
    runs = ask(client, changes=changes).json()["runs"]
    assert [run["name"] for run in runs] == ["as is", "changed"]
    trace = minitx.run(minitx.load("tiny-vit"), tokens(), "pattern")
    assert abs(pattern(runs[0]) - trace.stack("pattern")[:, 0]).max() < 1e-5
    code = ask(client, "code", changes=changes).json()["code"]
    names, asked = {}, "minitx.run(model, tokens, "
    exec(code.replace(f"{asked}edits", f"{asked}'pattern', edits"), names)
    assert abs(pattern(runs[1]) - names["trace"].stack("pattern")[:, 0]).max() < 1e-5
    assert abs(pattern(runs[1]) - pattern(runs[0])).max() > 0.01


def test_the_dial_moves_keys_of_patches_across_and_down():
    model = minitx.load("tiny-vit")
    grid = np.arange(64).reshape(8, 8)
    keys = [grid[(r + 1) % 8, (c + 3) % 8] for r in range(8) for c in range(8)]
    table = model.weights.W_pos[np.concatenate([[0], 1 + np.array(keys)])]
    moved = minitx.run(model, tokens(), ["k"], edits={"pos_embed": table[None]})
    edits = Changes(dial=3, dial_down=1).edits(model, tokens())
    assert {name for name, _ in edits} == {"k"}
    assert all(np.array_equal(edits["k", layer], moved["k", layer]) for layer in range(4))


def test_the_class_keeps_its_position_where_those_of_patches_are_shuffled(client):
    code = ask(client, "code", changes={"positions": "shuffled"}).json()["code"]
    names = {}
    exec(code, names)
    order = names["order"]
    assert order[0] == 0 and np.array_equal(np.sort(order), np.arange(65))
    assert (order[1:] != np.arange(1, 65)).mean() > 0.9


@pytest.mark.parametrize(
    "path, values, reason",
    [
        ("run", {"text": "/etc/hostname"}, "the picture is '/etc/hostname'; wanted sample, or"),
        ("run", {"text": "sample:-1"}, "wanted sample, or sample:N"),
        ("run", {"words": True}, "words need a text; tiny-vit reads pictures"),
        ("run", {"hidden": [1]}, "only a masked model predicts hidden tokens"),
        ("run", {"target": "a"}, "this model (vit) has a single stack"),
        ("run", {"changes": {"mask": {"family": "alibi"}}}, "patches are in rows and columns"),
        ("run", {"changes": {"dial": 8}}, "dial is 8; 8 columns take less than 8"),
        ("run", {"changes": {"dial_down": -8}}, "dial_down is -8; 8 rows take less than 8"),
        ("run", {"changes": {"positions": "shifted", "shift": 1}}, "can stand at most 0 later"),
        ("patch", {"other": "sample"}, "this model reads pictures"),
        ("lengths", {"other": "sample"}, "this model reads pictures"),
        ("writers", {"place": 0}, "are not attributed"),
        ("next", {}, "only a causal model without an encoder"),
    ],
)
def test_what_makes_no_sense_of_a_picture_is_refused(client, path, values, reason):
    answer = ask(client, path, **values)
    assert answer.status_code == 400 and reason in answer.json()["error"]


def test_the_page_that_is_saved_has_the_picture(client):
    runs = Elements(ask(client, "save", changes={"positions": "zero"}).text).data["runs"]
    assert [run["picture"]["pixels"] for run in runs] == [runs[0]["picture"]["pixels"]] * 2
    assert ask(client, "kinds").json() == {"": None}
