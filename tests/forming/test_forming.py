"""How positions form: what is measured of snapshots, what is said of them, the files."""

import json
import re

import numpy as np
import pytest
from elements import Elements

import minitx
from minitx import weights
from minitx.analysis import commands, forming
from minitx.analysis.forming import figure, moments, seeds, words
from minitx.analysis.pages import forming as film

NAME = weights.histories()[0]
FEW = forming.What(documents=12, shuffles=9)


@pytest.fixture(scope="module")
def history():
    """The first, a middle and the last snapshot of the bundled history."""
    whole = minitx.History.from_folder(NAME)
    kept = {step: whole._kept[step] for step in (0, 204, 665, 1200)}
    return minitx.History(whole.model, whole.losses, kept)


@pytest.fixture(scope="module")
def results(history):
    done = []
    measured = forming.compute(history, FEW, done.append)
    assert done == [*range(1, len(history.snapshots) + 1)]
    return measured


def test_every_measure_has_its_null_at_every_snapshot(history, results):
    n = len(history.snapshots)
    for m in moments.MEASURES:
        assert results[m.name].shape == results[f"{m.name}_null"].shape == (n,)
        assert np.isfinite(results[m.name]).all()
    assert results["looks"].shape == (n, 2, 4, 21) and len(results["losses"]) == 1200


def test_the_bundled_history_learns_where_words_stand(results):
    """At the start no head has a direction and positions save nothing; at the end they do."""
    assert results["sharp"][0] < 2 * results["sharp_null"][0] and results["follow"][0] == 0
    assert results["sharp"][-1] > 0.6 and results["follow"][-1] > 2 * results["follow_null"][-1]
    assert abs(results["gain"][0]) < 0.2 and results["gain"][-1] > 1
    assert results["loss"][0] - results["loss"][-1] > 2.5


def planted(rise):
    """Results in which each measure rises at a step of its own, or never: {name: step or None}."""
    steps = np.array([0, 1, 10, 100, 1000])
    r = {"steps": steps}
    for m in moments.MEASURES:
        rises = rise.get(m.name)
        r[m.name] = np.zeros(5) if rises is None else 1.0 * (steps >= rises)
        r[f"{m.name}_null"] = np.full(5, 0.1)
    return r


def test_sentences_say_what_was_planted():
    said = words.of_history(planted({"sharp": 10, "gain": 1000, "follow": 100}))
    assert said[1] == "The loss leaves its plateau after 317 steps."
    assert said[2].startswith("Attention of the sharpest head to its offset: after 4 steps (0.00")
    assert said[3].startswith("Attention that follows moved positions: after 32 steps")
    assert all("did not form" in text for text in said[4:]) and len(said) == 7
    assert "does not leave its plateau in 1000 steps" in words.of_history(planted({}))[1]


def test_what_is_above_chance_from_the_start_is_not_said_to_form():
    r = planted({"gain": 10})
    r["kept"] = np.full(5, 0.9)
    text = next(text for text in words.of_history(r) if text.startswith("Positions in the last"))
    assert "there from the start" in text


def of_seeds(rotary, sharp):
    """Arrays of two kinds, whose loss falls after about 100 steps in three seeds of the first."""
    steps = np.array([0, 10, 20, 40, 80, 160, 320])
    arrays = {}
    for kind, rise in ("learned", [80, 160, 80]), ("rotary", rotary):
        rising = np.array([1.0 * (steps >= x) for x in rise])
        arrays |= {f"{kind}.steps": np.array([steps] * 3), f"{kind}.gain": rising}
        arrays |= {f"{kind}.gain_null": np.full((3, 7), 0.1), f"{kind}.loss": 4 - rising}
    arrays["learned.sharp"] = np.array([1.0 * (steps >= x) for x in sharp])
    return arrays | {"learned.sharp_null": np.full((3, 7), 0.1)}


def test_seeds_say_sooner_only_where_the_interval_does():
    compared = seeds.of_arrays(of_seeds(rotary=[20, 40, 20], sharp=[20, 40, 20]))
    assert compared.sooner["rotary"][2] < 1
    said = words.of_seeds(compared)
    assert "formed before the loss fell" in said[0] and said[1].endswith(": sooner.")
    unsure = words.of_seeds(seeds.of_arrays(of_seeds([20, 320, 160], sharp=[320, 40, 160])))
    assert "formed neither before nor after" in unsure[0]
    assert unsure[1].endswith("no clear difference.")


def test_what_does_not_form_in_every_seed_has_no_quotient():
    arrays = of_seeds(rotary=[20, 999, 20], sharp=[999, 999, 999])
    said = words.of_seeds(seeds.of_arrays(arrays))
    assert "formed in 0 of 3 seeds" in said[0]
    assert "the loss left its plateau in 2 of 3 seeds" in said[1]


def test_the_bundled_seeds():
    """Rotary positions are learned sooner, in every seed; the table moves before the loss falls."""
    compared = seeds.seeds_of(weights.find(NAME))
    steps = {kind: formed["gain"] for kind, formed in compared.formed.items()}
    assert len(steps["learned"]) == len(steps["rotary"]) == 3
    assert compared.after["swing"][1] > 1  # 0.84 of the step, 0.80 to 0.88
    assert (steps["rotary"] < steps["learned"]).all() and compared.sooner["rotary"][2] < 1
    assert seeds.seeds_of(weights.find("tiny-bert")) is None


def test_a_model_without_a_table_has_what_needs_none():
    history = minitx.History.from_folder(NAME)
    model = minitx.load("zoo/masked-rotary")
    measured = moments.measured(model, FEW)
    assert {m.name for m in moments.MEASURES if not m.of_table} <= measured.keys()
    assert "waves" not in measured and "cca" not in measured
    r = moments.stacked([measured, measured]) | {"steps": np.array([0, 5])}
    picture = figure.picture(r | {"losses": history.losses})
    assert len([axes for axes in picture.axes if axes.axison]) == 2


def test_the_film_has_all_numbers_and_reaches_nothing(results):
    html = film.page("a <b> name", results, words.of_history(results))
    assert "a &lt;b&gt; name" in html and "{{" not in html
    assert not re.search(r"(src|href)=[\"'](?!data:)", html) and "default-src 'none'" in html
    data = Elements(html).data
    assert data["steps"] == results["steps"].tolist()
    assert np.allclose(data["looks"], results["looks"], rtol=1e-3)


def test_the_command_writes_its_files(tmp_path, capsys, history, monkeypatch):
    monkeypatch.setattr(minitx.History, "from_folder", lambda folder: history)
    line = ["forming", NAME, "--out", str(tmp_path), "--documents", "12", "--shuffles", "9"]
    assert commands.run_command(line) == 0
    assert "The loss leaves its plateau after" in capsys.readouterr().out
    record = json.loads((tmp_path / "forming.json").read_text())
    assert record["results"]["steps"] == history.snapshots
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"forming.json", "forming.html", "forming.svg"}


def test_what_is_no_history_is_refused_before_work(capsys, tmp_path):
    assert commands.run_command(["forming", "tiny-bert", "--out", str(tmp_path)]) == 2
    assert "has no finished training: there is no train.json" in capsys.readouterr().err
    assert commands.run_command(["forming", "nothing-there", "--out", str(tmp_path)]) == 2
    assert "is not a bundled model" in capsys.readouterr().err
    single = minitx.History(None, np.zeros(1), {5: None})
    with pytest.raises(ValueError, match="the history has 1 snapshots; wanted 2 or more"):
        forming.compute(single, FEW)
