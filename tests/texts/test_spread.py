"""Documents from all parts of a long text, found by seeking."""

import gzip
import json
import pickle
import warnings

import numpy as np
import pytest

from minitx.analysis.texts import corpus, formats

T = 24  # tokens of a document
N = 8
WORDS = "the a man sea old house and went to of was that she looked night door then said".split()
LINES = [" ".join(line) for line in np.random.default_rng(0).choice(WORDS, (900, 14))]


def written(path, lines=LINES):
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def stream(model, text):
    """All tokens of a text as documents in a row are cut from."""
    return np.concatenate([*corpus.pieces(model, text, T)])


def starts(model, text, documents):
    """Where in the tokens of a text each document begins; none that is no piece of it."""
    tokens = stream(model, text)
    windows = np.lib.stride_tricks.sliding_window_view(tokens, documents.size)
    inner = documents.ordinary()
    return [int(np.flatnonzero((windows == x[inner]).all(axis=1))[0]) for x in documents], tokens


def test_a_document_comes_from_each_nth_of_a_long_text(bundled, tmp_path):
    text = written(tmp_path / "long.txt")
    documents = corpus.documents(bundled, text, N, T)
    places, tokens = starts(bundled, text, documents)
    assert documents.spread and len(documents) == N
    # a line's bytes and its tokens are not in the same proportion everywhere: half a line
    edges = np.arange(N + 1) * len(tokens) / N
    assert (places > edges[:-1] - T).all() and (places < edges[1:] + T).all()
    assert (np.diff(places) >= documents.size).all()
    again = corpus.documents(bundled, text, N, T)
    for other in (again, pickle.loads(pickle.dumps(documents))):  # --resume; a worker
        assert all(np.array_equal(a, b) for a, b in zip(documents, other, strict=True))


def test_documents_do_not_only_begin_where_lines_do(causal, tmp_path):
    text = written(tmp_path / "paragraphs.txt", [" ".join(LINES[i : i + 9]) for i in range(891)])
    places, tokens = starts(causal, text, corpus.documents(causal, text, 40, T))
    line_end = causal.tokenizer.encode("a\n", special=False)[-1]
    assert np.mean(tokens[np.array(places) - 1] == line_end) < 0.1


def test_what_lies_between_is_not_read(causal, tmp_path):
    text = written(tmp_path / "long.txt")
    documents = corpus.documents(causal, text, N, T)
    bodies = [causal.tokenizer.encode(f"{line}\n", special=False) for line in LINES]
    ends = np.cumsum([*map(len, bodies)])
    places = [*starts(causal, text, documents)[0], ends[-1] // 2]
    near = {i for place in np.searchsorted(ends, places) for i in range(place - 5, place + 6)}
    raw = [line.encode() for line in LINES]
    assert len(near) < 200
    for i in set(range(900)) - near:
        raw[i] = b"\xff" * len(raw[i])
    (tmp_path / "long.txt").write_bytes(b"".join(line + b"\n" for line in raw))
    assert np.array_equal([*documents], [*corpus.documents(causal, text, N, T)])
    with pytest.raises(ValueError, match=r"long.txt' is not valid UTF-8: line 1, byte 0"):
        corpus.documents(causal, text, 300, T)


@pytest.mark.parametrize("share, is_spread", [(1, False), (1.5, False), (2.5, True)])
def test_a_text_of_up_to_twice_what_is_asked_is_read_in_a_row(causal, tmp_path, share, is_spread):
    text = written(tmp_path / "text.txt", LINES[:300])
    n = int(len(stream(causal, text)) / T / share)
    documents = corpus.documents(causal, text, n, T)
    in_a_row = [*corpus.pieces(causal, text, T)][:n]
    assert documents.spread == is_spread and len(documents) == n
    assert np.array_equal([*documents], in_a_row) == (not is_spread)


def test_a_text_whose_last_part_is_blank_is_read_as_far_as_it_goes(causal, tmp_path):
    text = written(tmp_path / "blank.txt", LINES[:300] + [" " * 60] * 300)
    documents = corpus.documents(causal, text, N, T)
    assert len(documents) == N and not documents.spread


def test_objects_and_several_files_are_one_text(causal, tmp_path):
    whole = corpus.documents(causal, written(tmp_path / "long.txt"), N, T)
    (tmp_path / "parts").mkdir()
    for i in range(3):
        written(tmp_path / f"parts/{i}.txt", LINES[300 * i : 300 * i + 300])
    parts = corpus.documents(causal, str(tmp_path / "parts"), N, T)
    assert parts.spread and np.array_equal([*parts], [*whole])
    objects = [json.dumps({"id": "0" * 80, "body": line}) for line in LINES]
    text = formats.of(written(tmp_path / "long.jsonl", objects), column="body")
    documents = corpus.documents(causal, text, N, T)
    assert documents.spread and len(set(np.array(starts(causal, text, documents)[0]) // 3000)) > 3
    broken = formats.of(written(tmp_path / "broken.jsonl", objects), column="text")
    with pytest.raises(ValueError, match=r"broken.jsonl, byte \d+: no column 'text'"):
        corpus.documents(causal, broken, N, T)


def test_a_text_that_cannot_be_sought_says_that_its_beginning_is_read(causal, tmp_path):
    lines = "".join(f"{line}\n" for line in LINES)
    (tmp_path / "long.txt.gz").write_bytes(gzip.compress(lines.encode()))
    text = str(tmp_path / "long.txt.gz")
    with pytest.warns(UserWarning, match=r"long.txt.gz' is read from its beginning.* first 8 doc"):
        documents = corpus.documents(causal, text, N, T)
    assert np.array_equal([*documents], [*corpus.pieces(causal, text, T)][:N])
    with warnings.catch_warnings():  # what a sample draws is from all of it; a whole text is whole
        warnings.simplefilter("error")
        assert not corpus.documents(causal, formats.of(text, n=200, seed=1), N, T).spread
        assert len(corpus.documents(causal, text, tokens=T, most=10**6)) > N


def test_the_text_that_comes_along_is_read_in_a_row(causal):
    documents = corpus.documents(causal, "sample", N, T)
    assert not documents.spread
    assert np.array_equal(
        [*documents], [x for x, _ in zip(corpus.pieces(causal, "sample", T), range(N))]
    )
