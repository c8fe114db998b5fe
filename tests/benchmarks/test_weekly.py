"""Weekly tasks beside other kits: ours run, none takes more lines, and the table."""

import numpy as np
import pytest

from benchmarks import weekly
from minitx import weights


@pytest.mark.parametrize("task", weekly.TASKS)
def test_no_task_takes_more_lines(task):
    own, *others = (
        weekly.lines_of(getattr(kind, task))
        for kind in weekly.SYSTEMS.values()
        if hasattr(kind, task)
    )
    assert 0 < own <= min(others)


def test_each_task_of_minitx_gives_what_is_compared(tmp_path):
    system = weekly.Minitx(weights.find("tiny-gpt2"), 1)
    for task in weekly.TASKS:
        path = tmp_path / f"{task}.npz"
        answer = weekly.carried_out(system, {"task": task, "arrays": str(path)})
        assert answer["seconds"] > 0 and np.isfinite(np.load(path)["seen"]).all()


def test_differences_are_of_numbers_or_of_tokens():
    ones = np.ones(3)
    assert weekly.difference("loss", ones, 2 * ones) == "1.0e+00 of 2"
    ids, other = np.array([1, 2, 3]), np.array([1, 2, 4])
    assert weekly.difference("steer", ids, other) == "1 of 20 tokens"
    both = np.stack([other, ids])
    assert weekly.difference("generate", ids, both) == "1 of 20 tokens; 0 without its cache"


def test_the_table_says_where_minitx_is_behind():
    systems, of = [*weekly.SYSTEMS], lambda *values: dict(zip(weekly.SYSTEMS, values))
    nothing = {"transformer-lens": "0"}
    ahead = weekly.Row("sweep", of(1, 2), nothing, of(0.1, 0.2), of(10, 20))
    behind = weekly.Row("lens", of(3, 4, 1), nothing, of(0.2, 0.3, 0.1), of(10, 20, 30))
    text = weekly.page({"tiny-gpt2": [ahead, behind]}, "settings", systems)
    sweep = "1 · 2 · - | 100 · 200 (2) · - | 10 · 20 · - | 0 · -"
    assert f"| every head patched, one at a time | {sweep} |" in text
    assert "3 · 4 · 1 | 200 · 300 (1.5) · 100 (0.5) | 10 · 20 · 30 | 0 · - |" in text
    lens = "logit lens of all layers"
    assert f"Behind in time: {lens}. Behind in lines: {lens}." in text
