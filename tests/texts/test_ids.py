"""Token ids from a file: the documents that they make, for a model with a tokenizer and without."""

import shutil

import numpy as np
import pytest

import minitx
from minitx import analysis, weights
from minitx.analysis import commands
from minitx.analysis.contract import registry
from minitx.analysis.texts import corpus, formats, ids


def ids_file(folder, *lines):
    """A file of these lines -> the option that names it."""
    path = folder / "some.ids"
    path.write_text("\n".join(lines) + "\n")
    return formats.of(path, is_ids=True)


@pytest.fixture(scope="module")
def without_tokenizer(tmp_path_factory):
    """tiny-roberta without its tokenizer."""
    folder = tmp_path_factory.mktemp("bare")
    for name in ("config.json", "model.safetensors"):
        shutil.copy(weights.find("tiny-roberta") / name, folder / name)
    return folder


def test_ids_make_the_documents_that_their_text_makes(bundled, without_tokenizer, tmp_path):
    expected = corpus.documents(bundled, "sample", 4, 32).first(4)
    text = ids_file(tmp_path, *(" ".join(map(str, row)) for row in expected))
    for model in (bundled, minitx.load(without_tokenizer)):
        of_ids = corpus.documents(model, text, 4, 32)
        assert np.array_equal(of_ids.first(4), expected)
        assert (of_ids.before.tolist(), of_ids.after.tolist()) == ([0], [2])
        assert [x.tolist() for x in corpus.texts(model, text)] == expected.tolist()
    cut = corpus.texts(bundled, text, tokens=10)
    assert [x.tolist() for x in cut] == [[*row[:9], 2] for row in expected]
    assert cut.cut == 4


@pytest.mark.parametrize("line", ["5 6 7", "5,6,7", "[5, 6, 7]", " 5\t6  7 "])
def test_blanks_commas_and_brackets_part_the_numbers(bundled, tmp_path, line):
    text = ids_file(tmp_path, line, "", "8 9")
    assert [x.tokens.tolist() for x in ids.lines(text, bundled.config)] == [[5, 6, 7], [8, 9]]


def test_special_tokens_are_those_of_every_line_of_several(bundled, tmp_path):
    def ends(*lines):
        return [x.tolist() for x in ids.ends(ids_file(tmp_path, *lines), bundled.config)]

    assert ends("0 5 6 2", "0 7 2") == [[0], [2]]
    assert ends("0 5 6 2", "0 7 3") == [[0], []]
    assert ends("0 5 6 2") == [[], []]
    assert ends("4", "4") == [[4], []]  # one token is not both ends


@pytest.mark.parametrize(
    "line,message",
    [
        (
            "5 x 7",
            "some.ids, line 2: 'x' is not a token id; wanted whole numbers, one document per",
        ),
        ("5 -6", "line 2: '-6' is not a token id"),
        ("5 6.0", "line 2: '6.0' is not a token id"),
        ("5 ٦", "line 2: '٦' is not a token id"),
        ("5 1024", "line 2: 1024 is not in this model's vocabulary; wanted 0 to 1023"),
        ("5 " + "9" * 30, "line 2: '99999999999999999999' is not a token id"),
        ("5 1", "line 2: 1 is padding; leave it out"),
    ],
)
def test_what_is_no_id_is_named_with_its_line(bundled, tmp_path, line, message):
    text = ids_file(tmp_path, "5 6 7", line)
    for load in (corpus.documents, corpus.texts):
        with pytest.raises(ValueError, match=message):
            load(bundled, text, 1, 8)


def test_files_of_ids_that_cannot_be_read(bundled, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file '.*none.ids': wanted token ids"):
        corpus.documents(bundled, formats.of(tmp_path / "none.ids", is_ids=True))
    with pytest.raises(ValueError, match=r"some.ids' has 3 tokens, 0 documents of 8 tokens"):
        corpus.documents(bundled, ids_file(tmp_path, "5 6 7"), 1, 8)
    with pytest.raises(ValueError, match="--column and --label cannot be used with --ids"):
        corpus.texts(bundled, formats.of(ids_file(tmp_path, "5 6 7"), column="text"))
    with pytest.raises(ValueError, match=r"--ids '.*some.ids' is empty"):
        formats.described(ids_file(tmp_path, " "))


def test_without_a_tokenizer_labels_are_numbers(bundled, without_tokenizer):
    assert corpus.labels(minitx.load(without_tokenizer), [5, 6]) == ["<5>", "<6>"]
    assert corpus.labels(bundled, [5, 6]) == bundled.tokenizer.pieces([5, 6])


@pytest.mark.usefixtures("empty_figures")
def test_the_flag_and_the_option_from_python_read_the_same(without_tokenizer, tmp_path):
    numbers = np.random.default_rng(0).integers(4, 1024, 300)
    text = ids_file(tmp_path, " ".join(map(str, numbers)))
    path = text.name
    result = analysis.run("positions", without_tokenizer, ids=path, shuffles=1)
    assert result.settings["options"]["text"] == text
    assert result.settings["text"]["name"] == "some.ids"
    out = tmp_path / "out"
    argv = ["run", "positions", str(without_tokenizer), "--ids", path, "--shuffles", "1"]
    assert commands.run_command([*argv, "--out", str(out)]) == 0
    with np.load(out / "positions.npz") as arrays:
        assert np.array_equal(arrays["words_mean"], result.arrays["words_mean"])


def test_text_or_ids_not_both_and_only_where_texts_are_read():
    lags = registry.get("lags")
    with pytest.raises(ValueError, match=r"text is 'b.txt' and ids 'a.ids'; wanted one of them"):
        lags.checked({"text": "b.txt", "ids": "a.ids"})
    with pytest.raises(ValueError, match="ids is empty"):
        lags.checked({"ids": ""})
    assert lags.checked({"ids": "a.ids"}) == {"text": formats.Text("a.ids", is_ids=True)}
    without_texts = next(x for x in registry.EXPERIMENTS.values() if not x.reads_texts)
    with pytest.raises(ValueError, match="has no option 'ids'"):
        without_texts.checked({"ids": "a.ids"})


@pytest.mark.parametrize(
    "name, option",
    [("ids:a.ids", "--ids FILE"), ("column:b:a.csv", "--column"), ("draw:3:0:a.txt", "--sample N")],
)
def test_a_prefix_of_1_0_names_the_option_in_its_place(name, option):
    with pytest.raises(FileNotFoundError, match=f"{name}'; use {option}: wanted a file"):
        formats.files(name)
