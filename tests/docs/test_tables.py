"""The measured tables of docs/pages/results.md: how they are filled; a wrong number is found.

`.ci/run` compares them with the report that it has made.
"""

import json

import numpy as np
import pytest
import tables

TEXT = tables.DOCUMENT.read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """A report of one experiment and one claim."""
    number = {"value": [0, 48, 28], "null": [1, 2, 3], "means": ""}
    claim = {"what": "a peak", "source": "figure 3", "ours": 1.298, "null": 0.9, "verdict": "pass"}
    claims = [claim, claim | {"verdict": "other checkpoint"}]
    dial = {"numbers": {"layer_n_exact": number}}
    experiments = {"dial": dial, "reviews": {"numbers": None}}
    report = {"model": tables.DEFAULT, "claims": claims, "experiments": experiments}
    (tmp_path / "report.json").write_text(json.dumps(report), encoding="utf-8")
    for name in ("scale-positions", "inject-positions"):
        np.savez(tmp_path / f"{name}.npz", losses=[2.5, 3.0], losses_null=[6.0, 7.0])
    return tmp_path


def test_a_number_is_read_with_its_null_and_place(folder):
    report = tables.report_in(folder)
    assert report["dial.layer_n_exact 1"] == 48 and report["dial.layer_n_exact null 2"] == 3
    assert tables.listed("scale-positions.losses_null", 1)(report) == "6.0 7.0"
    assert np.isnan(report["dial.nothing"])


@pytest.mark.parametrize(
    "old, new, is_same",
    [
        ("| 0.44 (0.21 to 0.66) |", "| 0.45 (0.21 to 0.66) |", True),
        ("| 0.44 (0.21 to 0.66) |", "| 0.46 (0.21 to 0.66) |", False),
        ("| 48 of 48 |", "| 47 of 48 |", True),
        ("| 48 of 48 |", "| 46 of 48 |", False),
        ("| 1,179,648 |", "| 1,179,640 |", False),
        ("| yes |", "| **no** |", False),
        ("| –0.1 |", "| 0.1 |", False),
    ],
)
def test_one_unit_of_the_last_digit_is_let_pass(old, new, is_same):
    assert (tables.differences(old, new) == []) == is_same


def test_the_document_has_every_table_and_row():
    for name, rows in tables.TABLES.items():
        start, end = tables.place(TEXT, name)
        labels = [line.strip("| ").split(" | ")[0] for line in TEXT[start:end].splitlines()[2:]]
        assert labels == [*rows], name
        assert f"`{tables.DEFAULT}`" in TEXT[start:end].splitlines()[0]
    start, end = tables.place(TEXT, "claims")
    assert TEXT[start:end].startswith(f"On `{tables.DEFAULT}`")
    assert "–" not in "".join(TEXT[slice(*tables.place(TEXT, name))] for name in tables.TABLES)


def test_a_document_that_differs_ends_with_1(folder, tmp_path, monkeypatch, capsys):
    document = tmp_path / "results.md"
    parts = [
        f"<!-- measured: {name} -->\n| a | `x` |\n|---|---|\n<!-- end -->" for name in tables.TABLES
    ]
    document.write_text("\n".join([*parts, "<!-- measured: claims -->\n<!-- end -->\n"]))
    monkeypatch.setattr(tables, "DOCUMENT", document)
    assert tables.main(["--check", str(folder)]) == 1
    assert tables.main([str(folder)]) == 0
    assert tables.main(["--check", str(folder)]) == 0
    document.write_text(document.read_text().replace("1.30", "1.32"))
    assert tables.main(["--check", str(folder)]) == 1
    assert "1.32" in capsys.readouterr().err
