"""`minitx decode`: the text, the table of steps, JSON and the figure."""

import json
import re

import numpy as np
import pytest
import talking
import tiny

import minitx
from minitx.analysis import __main__ as cli
from minitx.analysis.measures import decoding
from minitx.analysis.pages import decode

TEXT = "The cat sat on the mat."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return talking.folder(tmp_path_factory.mktemp("talking"))


def printed(capsys, *arguments):
    """What a command prints."""
    assert cli.main(["decode", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_text_alone(folder, capsys):
    model = minitx.load(folder)
    beams = {"num_beams": 3, "length_penalty": 2.0, "n": 7}
    for flags, options in (
        ([], {"n": 20}),
        (["--n", 5], {"n": 5}),
        (["--beams", 3, "--length-penalty", 2, "--n", 7], beams),
    ):
        ids = minitx.generate(model, source=TEXT, **options)
        assert printed(capsys, folder, TEXT, *flags) == model.tokenizer.decode(ids[1:]) + "\n"


def test_a_line_for_each_step(folder, capsys):
    decoded = decoding.steps(minitx.load(folder), TEXT, 6)
    out = printed(capsys, folder, TEXT, "--steps", "--n", 6)
    _, table, says = out.strip().split("\n\n")
    head, *lines = table.splitlines()
    assert head.split("  ")[0] == "step" and len(lines) == len(decoded.said)
    for i, line in enumerate(lines):
        number, asks, looks, said, best = re.split("  +", line)
        assert number == str(i + 1)
        assert asks == decode.visible(decoded.asking_pieces[i])
        assert said == decode.visible(decoded.said_pieces[i])
        j = decoded.attention[i].argmax()
        piece = decode.visible(decoded.source_pieces[j])
        assert looks.startswith(f"{piece} {decoded.attention[i, j]:.2f}, ")
        first = f"{decoded.logits[i, 0]:.2f}, {decoded.probabilities[i, 0]:.3f}"
        assert best.split(" | ")[0] == f"{decode.visible(decoded.best_pieces[i, 0])} {first}"
    assert "token that is said" in says and "token that asks" in says


def test_json_holds_every_number(folder, capsys):
    decoded = decoding.steps(minitx.load(folder), TEXT, 6, layer=0, head=1)
    record = json.loads(printed(capsys, folder, TEXT, "--json", "--n=6", "--layer=0", "--head=1"))
    assert record["source"]["pieces"] == decoded.source_pieces.tolist()
    assert np.allclose([step["attention"] for step in record["steps"]], decoded.attention)
    for i, step in enumerate(record["steps"]):
        assert step["said"]["id"] == decoded.said[i]
        assert step["asking"]["piece"] == decoded.asking_pieces[i]
        assert [best["id"] for best in step["best"]] == decoded.best[i].tolist()
        assert np.allclose([best["logit"] for best in step["best"]], decoded.logits[i])
    assert record["strongest_is"]["said"].keys() == {"n", "share", "null"}


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_figure_names_who_asks_and_what_is_said(folder, tmp_path, capsys, ending):
    out = tmp_path / f"steps.{ending}"
    assert f"{out} written" in printed(capsys, folder, TEXT, "--out", out, "--n", 4)
    content = out.read_bytes()
    if ending == "png":
        assert content.startswith(b"\x89PNG")
        return
    words = re.findall(r">([^<>]+)</text>", content.decode())
    decoded = decoding.steps(minitx.load(folder), TEXT, 4)
    pieces = [*decoded.source_pieces, *decoded.asking_pieces]
    for piece in map(decode.visible, pieces):
        assert piece.replace("<", "&lt;").replace(">", "&gt;") in words
    probability = f"{decoded.said_probabilities[1]:.2f}"
    assert f"{decode.visible(decoded.said_pieces[1])}  {probability}" in words
    assert f"({folder}, layer 1)" in content.decode()
    printed(capsys, folder, TEXT, "--out", out, "--n", 4)
    assert out.read_bytes() == content
    printed(capsys, folder, TEXT, "--out", out, "--n", 4, "--head", -1, "--layer", 0)
    assert f"({folder}, L0H2)" in out.read_text(encoding="utf-8")


def test_ids_where_there_is_no_tokenizer(tmp_path, capsys):
    (tmp_path / "ids.txt").write_text("\n11, 12, 13\n14 15\n")
    golden = tiny.GOLDEN / "generated" / "bart"
    ids = minitx.generate(minitx.load(golden), source=[11, 12, 13], n=5)[1:]
    out = printed(capsys, golden, "--ids", tmp_path / "ids.txt", "--n", 5, "--steps")
    assert out.startswith(" ".join(map(str, ids)) + "\n")
    assert "<11>" in out


def test_what_decode_refuses(folder, tmp_path, capsys):
    (tmp_path / "empty.txt").write_text("\n")
    for arguments, message in (
        ([folder], "wanted a TEXT or --ids FILE"),
        ([folder, TEXT, "--ids", "x"], "wanted a TEXT or --ids FILE to decode, one of them"),
        ([folder, TEXT, "--steps", "--beams", 2], "--beams 2: --steps shows greedy decoding"),
        ([folder, TEXT, "--out", "x.pdf"], "--out x.pdf: wanted a file that ends in .svg or .png"),
        ([folder, "--ids", tmp_path / "empty.txt"], "has no token ids"),
        ([folder, TEXT, "--n", 30], "this model reads at most 24"),
        (["tiny-gpt2", TEXT], "gpt2 has no cross-attention; minitx.generate"),
        (["tiny-roberta", TEXT], "wanted an encoder-decoder"),
    ):
        assert cli.main(["decode", *map(str, arguments)]) == 2
        assert message in capsys.readouterr().err, message
