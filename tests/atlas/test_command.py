"""`minitx atlas`: what it prints and writes, and what it refuses."""

import pytest

from minitx.analysis.__main__ import main


def test_two_models_stand_on_one_page(tmp_path, capsys):
    """Written twice, they are the same bytes."""
    command = ["atlas", "tiny-roberta", "--sentences", "3", "--beside", "zoo/causal-rotary"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "tiny-roberta: All 3 sentences are drawn." in said
    assert "zoo/causal-rotary: All 3 sentences are drawn." in said
    assert "are among the 10 nearest in the plane" in said and "keys shuffled" in said
    assert "atlas.html written" in said
    page = (tmp_path / "atlas.html").read_bytes()
    assert main([*command, "--out", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "atlas.html").read_bytes() == page
    assert not [*tmp_path.glob(".atlas*.state.npz")]


def test_two_texts_of_one_model_are_told_apart(tmp_path, capsys):
    command = ["atlas", "tiny-roberta", "--sentences", "3", "--beside-text", "dates"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    for name in ("tiny-roberta, 'sample': All 3", "tiny-roberta, 'dates': All 3"):
        assert name in said
    page = (tmp_path / "atlas.html").read_text(encoding="utf-8")
    assert "<title>Atlas of tiny-roberta, &#x27;sample&#x27; and tiny-roberta, " in page


WRONG = {
    "--sentences is -1; wanted 0 or more": ["--sentences", "-1"],
    "--text a.txt and --ids b.txt: wanted one of them": ["--text", "a.txt", "--ids", "b.txt"],
    "--second names a column of the table that --text names; there is none": ["--second", "b"],
    "--projection 'pcb'; available: pca, tsne, tsne3, umap, umap3": ["--projection", "pcb"],
    "no text file 'nowhere.txt': wanted a file with one document": ["--text", "nowhere.txt"],
}


@pytest.mark.parametrize("message", WRONG)
def test_what_makes_no_sense_is_refused(message, tmp_path, capsys):
    assert main(["atlas", "tiny-roberta", *WRONG[message], "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out" / "atlas.html").exists()
