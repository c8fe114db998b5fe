"""benchmarks/large.py on a small shape: what it writes, what it measures."""

import json

import numpy as np

import minitx
from benchmarks import large

SHAPE = large.LLAMA | large.SMALL


def test_the_checkpoint_is_whole_random_and_in_bfloat16(tmp_path):
    large.write_checkpoint(tmp_path, SHAPE)
    model = minitx.load(tmp_path)
    assert not model.unused and model.config.n_layers == SHAPE["num_hidden_layers"]
    assert len([*tmp_path.glob("*.safetensors")]) == 2
    header = (tmp_path / "model-00001-of-00002.safetensors").read_bytes()[8:2000]
    assert b'"dtype": "BF16"' in header
    W, gain = model.layers[1].W_in, model.layers[0].ln1_w
    assert abs(W.std() - 0.02) < 0.001 and abs(gain.mean() - 1) < 0.02 and gain.std() > 0.01
    assert not np.array_equal(model.layers[0].W_gate, model.layers[0].W_in)


def test_the_shape_has_1_2_billion_weights():
    sizes = [np.prod(x) for shard in large.shapes(large.LLAMA).values() for x in shard.values()]
    assert sum(sizes) == 1_235_814_400


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
