"""benchmarks/large.py on a small shape: what it writes, what it measures."""

import json

from benchmarks import large

SHAPE = large.LLAMA | large.SMALL


def test_each_system_is_measured_and_both_ways_of_minitx_say_the_same(tmp_path, capsys):
    large.write_checkpoint(tmp_path, SHAPE)
    for system in large.SYSTEMS[:2]:
        large.measure(system, tmp_path, [5, 9])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["tokens"] for row in rows] == [5, 9, 5, 9]
    assert rows[0]["first"] == rows[2]["first"] != rows[1]["first"] == rows[3]["first"]
    assert all(row["peak"] > 10 and row["seconds"] >= 0 for row in rows)
    table = large.table(rows).splitlines()
    assert len(table) == 6 and table[2].startswith("| minitx, in its file | 5 | ")


def test_without_torch_minitx_alone_is_measured(tmp_path, capsys):
    out = tmp_path / "table.md"
    large.main(["--small", "--tokens", "4", "--out", str(out)])
    said = capsys.readouterr().out
    assert said.endswith(out.read_text()) and said.count("minitx, in memory") == 2
    assert "torch" not in said and "Load of the machine" in said
