"""Texts, documents, heads chosen by what they do, and what the layers read."""
import io

import numpy as np
import pytest

import minitx
from analysis import corpus, data, heads, inputs, profiles


# texts

def test_documents_are_full_pieces_of_the_text_one_after_another(bundled):
    documents = corpus.documents(bundled, "sample", 5)
    before, after = corpus.specials(bundled)
    T, tokens = bundled.config.n_ctx, documents.first(5)
    assert tokens.shape == (5, T) and len(documents) == 5 and documents.T == T
    inner = tokens[:, len(before):T - len(after)].ravel()
    whole = bundled.tokenizer.encode(corpus.read("sample"), special=False)
    assert np.array_equal(inner, whole[:len(inner)])
    one = bundled.tokenizer.encode("x")
    assert all(np.array_equal(d[:len(before)], one[:len(before)]) for d in tokens)
    assert all(np.array_equal(d[T - len(after):], one[len(one) - len(after):]) for d in tokens)
    assert all(np.array_equal(a, b) for a, b in zip(documents, documents))  # a second pass is the same


def test_documents_can_be_shorter_than_the_model_reads(bundled):
    short, long = corpus.documents(bundled, "sample", 3, tokens=10), corpus.documents(bundled, "sample", 1)
    assert np.array_equal(short.first(3)[:, 1:-1].ravel(), long.first()[0, 1:25])


def test_without_a_number_there_are_as_many_documents_as_the_text_gives_up_to_a_hundred(causal, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("A short line.\n\nAnother one, which is a little longer than the first.\n" * 4)
    n = len(causal.tokenizer.encode(corpus.read(text) + "\n", special=False)) // 32
    assert len(corpus.documents(causal, text)) == n >= 2
    assert len(corpus.documents(causal, "sample")) == corpus.AS_MANY == 100


@pytest.mark.parametrize("content, options, message", [
    ("", {}, r"has 0 tokens, 0 documents of 32 tokens each; wanted at least 1"),
    ("\n \n", {}, "has 0 tokens"),
    ("a", {}, r"has 2 tokens, 0 documents of 32 tokens each"),
    ("Some words here and there. " * 20, {"n": 99}, r"has \d+ tokens, \d+ documents of 32 tokens each; wanted 99"),
    ("Some words.", {"tokens": 33}, "--tokens 33: this model reads 2 to 32 tokens"),
    ("Some words.", {"tokens": 1}, "--tokens 1: this model reads 2 to 32 tokens"),
    ("Some words.", {"n": -1}, "--documents is -1; wanted 1 or more")])
def test_what_cannot_be_read_is_said_before_any_work(causal, tmp_path, content, options, message):
    text = tmp_path / "text.txt"
    text.write_text(content)
    with pytest.raises(ValueError, match=message):
        corpus.documents(causal, str(text), **options)


def test_a_folder_is_its_text_files_in_order_of_name(tmp_path):
    (tmp_path / "deep").mkdir()
    for name, content in (("b.txt", "third"), ("a.txt", "\ufefffirst\n\n  second  \n"), ("deep/c.txt", "fourth"),
                          ("d.csv", "no")):
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert [*corpus.lines(str(tmp_path))] == ["first", "second", "third", "fourth"]
    assert data.described(str(tmp_path))["files"] == 3
    with pytest.raises(FileNotFoundError, match="no .txt file in the folder"):
        data.files(str(_empty(tmp_path)))
    with pytest.raises(FileNotFoundError, match="no text file ''"):
        data.files("")


def _empty(folder):
    (folder / "empty").mkdir()
    return folder / "empty"


def test_the_settings_tell_two_texts_apart(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.txt").write_text(name)
    one, two = (data.described(str(tmp_path / f"{name}.txt")) for name in ("one", "two"))
    assert one["name"] == "one.txt" and one["sha256"] != two["sha256"]


def test_standard_input_can_be_read_twice(monkeypatch):
    monkeypatch.setattr(data.sys, "stdin", io.TextIOWrapper(io.BytesIO(b"A line.\nAnother.\n")))
    data._standard_input.cache_clear()
    assert [*corpus.lines("-")] == [*corpus.lines("-")] == ["A line.", "Another."]
    assert data.described("-")["name"] == "standard input"
    data._standard_input.cache_clear()


def test_text_that_is_not_utf8_is_named_with_line_and_byte(tmp_path):
    (tmp_path / "latin.txt").write_bytes("one\nna\u00efve".encode("latin-1"))
    with pytest.raises(ValueError, match="latin.txt' is no UTF-8 text: line 2, byte 6 of the file"):
        corpus.read(str(tmp_path / "latin.txt"))


def test_shuffling_keeps_the_tokens_and_the_special_ones_in_place(bundled):
    documents = corpus.documents(bundled, "sample", 2)
    before, after = map(len, (documents.before, documents.after))
    mixed = [documents.shuffled(i, d, seed=0) for i, d in enumerate(documents)]
    for d, m in zip(documents, mixed):
        assert not np.array_equal(m, d) and np.array_equal(np.sort(m), np.sort(d))
        assert np.array_equal(m[:before], d[:before]) and np.array_equal(m[len(m) - after:], d[len(d) - after:])
    first = documents.first()[0]
    assert np.array_equal(documents.shuffled(0, first, seed=0), mixed[0])     # whatever was done before
    assert not np.array_equal(documents.shuffled(1, first, seed=0), mixed[0])  # each document in its own order


# documents as they are

def texts_of(model, tmp_path, content, name="t.jsonl", **options):
    (tmp_path / name).write_text(content, encoding="utf-8")
    return corpus.texts(model, str(tmp_path / name), **options)


ROWS = ('{"text": "A good film, and a long one.", "label": "pos"}\n{"text": " ", "label": "pos"}\n'
        '{"text": "Bad.", "label": "neg"}\n{"text": "a", "label": "neg"}\n'
        '{"text": "So so, as far as I can see.\\nYes."}\n')


@pytest.mark.parametrize("kind", ["bundled", "causal"])
def test_texts_are_whole_and_as_the_tokenizer_has_them(kind, request, tmp_path):
    model = request.getfixturevalue(kind)
    read = texts_of(model, tmp_path, ROWS)
    wanted = [model.tokenizer.encode(text) for text in
              ("A good film, and a long one.", "Bad.", "So so, as far as I can see.\nYes.")]
    assert len(read) == 3 and read.T == max(map(len, wanted)) and read.cut == 0
    assert read.labels == ["pos", "neg", None]
    for _ in range(2):  # a second pass is the same
        assert all(np.array_equal(a, b) for a, b in zip(read, wanted, strict=True))


def test_what_is_left_out_is_counted_once(bundled, tmp_path):
    read = texts_of(bundled, tmp_path, ROWS)
    assert read.skipped == {"empty": 1, "of one token": 1}
    assert len([*read]) == len([*read]) == 3 and read.skipped == {"empty": 1, "of one token": 1}
    assert texts_of(bundled, tmp_path, ROWS, documents=2).skipped == {"empty": 1, "of one token": 0}  # none after these


def test_long_texts_are_cut_where_asked_with_their_special_tokens(bundled, tmp_path):
    whole, read = texts_of(bundled, tmp_path, ROWS), texts_of(bundled, tmp_path, ROWS, tokens=6)
    assert read.cut == sum(len(document) > 6 for document in whole) == 2 and read.T == 6
    for long, short in zip(whole, read):
        n = min(len(long), 6)
        assert len(short) == n and np.array_equal(short[:n - 1], long[:n - 1]) and short[-1] == long[-1]


def test_texts_may_be_longer_than_the_model_reads(causal):
    assert corpus.texts(causal, "sample", 3).T > causal.config.n_ctx


def test_texts_can_be_shuffled_like_documents(bundled, tmp_path):
    read = texts_of(bundled, tmp_path, ROWS)
    for i, document in enumerate(read):
        mixed = read.shuffled(i, document, seed=1)
        assert np.array_equal(np.sort(mixed), np.sort(document))
        assert mixed[0] == document[0] and mixed[-1] == document[-1]


@pytest.mark.parametrize("content, options, message", [
    ("", {}, r"t.jsonl' has 0 documents; wanted at least 1"),
    ('{"text": ""}\n{"text": "a"}\n', {}, r"has 0 documents \(left out: 1 empty, 1 of one token\); wanted at least 1"),
    (ROWS, {"documents": 4}, r"has 3 documents \(left out: 1 empty, 1 of one token\); wanted 4"),
    (ROWS, {"documents": -1}, "--documents is -1; wanted 1 or more"),
    (ROWS, {"tokens": 3}, "--tokens is 3; wanted 4 or more"),
    (ROWS, {"column": "body"}, "no column 'body'; .* there are: text, label")])
def test_texts_that_cannot_be_given_are_said_before_any_work(bundled, tmp_path, content, options, message):
    with pytest.raises(ValueError, match=message):
        texts_of(bundled, tmp_path, content, **options)


def test_memory_does_not_grow_with_the_text(bundled, tmp_path):
    """What is held between two documents is small, however many there are."""
    import tracemalloc
    peaks = []
    for n in (200, 2000):
        (tmp_path / "t.txt").write_text("Some words, again and again, on every line of a file. " * 8 + "\n")
        with open(tmp_path / "t.txt", "a", encoding="utf-8") as file:
            file.writelines(f"Line {i}: " + "some words on every line of a file. " * 8 + "\n" for i in range(n))
        tracemalloc.start()
        assert sum(1 for _ in corpus.texts(bundled, str(tmp_path / "t.txt"))) == n + 1
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 100_000  # bytes: 1,800 more lines are 530,000, their labels and lengths 29,000


# heads

def test_heads_are_chosen_by_what_they_do():
    attention = np.full((2, 2, 21), 0.01)
    attention[0, 0, 9], attention[0, 1, 9], attention[1, 1, 12], attention[1, 0, 5:10] = 0.8, 0.9, 0.7, 0.15
    assert heads.auto(attention) == [(0, 1), (1, 1), (1, 0)]  # left, right, broad
    only_left = np.where(profiles.offsets() > 0, 0, attention)
    assert heads.auto(only_left) == [(0, 1), (1, 0)]


def test_heads_have_both_numberings():
    assert heads.name(0, 11) == "L0H11" and heads.papers_name(7, 8) == "head(8,9)"


# what the layers read

@pytest.mark.parametrize("kind", ["bundled", "causal"])
def test_queries_are_the_input_times_the_weights(kind, request):
    model = request.getfixturevalue(kind)
    document = corpus.documents(model, "sample", 1).first()[0]
    q = minitx.run(model, document, keep=["q"]).stack("q")[:, 0]  # [L H T d]
    X = inputs.of_text(model, document)
    for layer in inputs.layers(model):
        W_Q, _, b_Q, _ = inputs.query_key(model, layer, 1, bias=True)
        assert np.abs(X[layer] @ W_Q + b_Q - q[layer, 1]).max() < 1e-5 * np.abs(q[layer, 1]).max()  # float32 sums


@pytest.mark.parametrize("kind", ["bundled", "causal"])
def test_the_input_of_positions_is_that_of_a_text_without_words(kind, request):
    model = request.getfixturevalue(kind)
    document = corpus.documents(model, "sample", 1).first()[0]
    silent = inputs.of_text(model, document, {"embed": np.zeros_like})[0]
    assert np.abs(inputs.of_positions(model) - silent).max() < 1e-5 * np.abs(silent).max()


def test_rows_that_no_token_reaches_are_no_positions(bundled):
    cfg, rows = bundled.config, inputs.reachable(bundled)
    assert len(rows) == cfg.n_ctx == len(bundled.weights.W_pos) - cfg.offset
    pos = minitx.run(bundled, corpus.documents(bundled, "sample", 1).first(), keep=["pos_embed"])["pos_embed"]
    assert np.array_equal(pos[0], rows)
