"""Texts, documents, heads chosen by what they do, and what the layers read."""

import hashlib

import counting
import numpy as np
import pytest

import minitx
from minitx.analysis.maths import profiles
from minitx.analysis.measures import heads, inputs
from minitx.analysis.texts import corpus, formats, storage

# texts


def test_documents_are_full_pieces_of_the_text_one_after_another(bundled):
    documents = corpus.documents(bundled, "sample", 5)
    before, after = corpus.specials(bundled)
    T = bundled.config.n_ctx
    tokens = documents.first(5)
    assert tokens.shape == (5, T) and len(documents) == 5 and documents.T == T
    inner = tokens[:, len(before) : T - len(after)].ravel()
    whole = bundled.tokenizer.encode(corpus.whole_text("sample"), special=False)
    assert np.array_equal(inner, whole[: len(inner)])
    x = bundled.tokenizer.encode("x")
    for document in tokens:
        assert np.array_equal(document[: len(before)], x[: len(before)])
        assert np.array_equal(document[T - len(after) :], x[len(x) - len(after) :])
    # a second pass is the same
    assert all(np.array_equal(a, b) for a, b in zip(documents, documents))


def test_documents_can_be_shorter_than_the_model_reads(bundled):
    short = corpus.documents(bundled, "sample", 3, tokens=10)
    long = corpus.documents(bundled, "sample", 1)
    assert np.array_equal(short.first(3)[:, 1:-1].ravel(), long.first()[0, 1:25])


def test_without_a_number_there_are_as_many_documents_as_the_text_gives_up_to_a_hundred(
    causal, tmp_path
):
    text = tmp_path / "text.txt"
    text.write_text("A short line.\n\nAnother one, which is a little longer than the first.\n" * 4)
    n = len(causal.tokenizer.encode(corpus.whole_text(text) + "\n", special=False)) // 32
    assert len(corpus.documents(causal, text)) == n >= 2
    assert len(corpus.documents(causal, "sample")) == corpus.AS_MANY == 100


@pytest.mark.parametrize(
    "content, options, message",
    [
        ("", {}, r"has 0 tokens, 0 documents of 32 tokens each; wanted at least 1: a text of 32 "),
        ("\n \n", {}, "has 0 tokens"),
        (
            "a",
            {},
            r"has 2 tokens, 0 documents of 32 .* 1: --tokens 2, or a text of 32 tokens or more",
        ),
        ("a", {"any_length": False}, "wanted at least 1: a text of 32 tokens or more$"),
        ("a b c d", {"n": 9}, r"wanted 9: --documents 2 --tokens \d, or a text of 288 tokens"),
        (
            "Some words here and there. " * 20,
            {"n": 99},
            r"has \d+ tokens, (\d+) documents of 32 tokens each; wanted 99: --documents \1, or ",
        ),
        ("Some words.", {"tokens": 33}, "--tokens 33: this model reads 2 to 32 tokens"),
        ("Some words.", {"tokens": 1}, "--tokens 1: this model reads 2 to 32 tokens"),
        ("Some words.", {"n": -1}, "--documents is -1; wanted 1 or more"),
    ],
)
def test_what_cannot_be_read_is_said_before_any_work(causal, tmp_path, content, options, message):
    text = tmp_path / "text.txt"
    text.write_text(content)
    with pytest.raises(ValueError, match=message):
        corpus.documents(causal, str(text), **options)


def test_a_folder_is_its_text_files_in_order_of_name(tmp_path):
    (tmp_path / "deep").mkdir()
    for name, content in (
        ("b.txt", "third"),
        ("a.txt", "\ufefffirst\n\n  second  \n"),
        ("deep/c.txt", "fourth"),
        ("d.csv", "no"),
    ):
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert [*corpus.lines(str(tmp_path))] == ["first", "second", "third", "fourth"]
    assert formats.described(str(tmp_path))["files"] == 3
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no .txt file in the folder"):
        formats.files(str(tmp_path / "empty"))
    with pytest.raises(FileNotFoundError, match="no text file ''"):
        formats.files("")


def test_shuffling_keeps_the_tokens_and_the_special_ones_in_place(bundled):
    documents = corpus.documents(bundled, "sample", 2)
    before = len(documents.before)
    after = len(documents.after)
    mixed = [documents.shuffled(i, d, seed=0) for i, d in enumerate(documents)]
    for d, m in zip(documents, mixed):
        assert not np.array_equal(m, d) and np.array_equal(np.sort(m), np.sort(d))
        assert np.array_equal(m[:before], d[:before])
        assert np.array_equal(m[len(m) - after :], d[len(d) - after :])
    first = documents.first()[0]
    # whatever was done before
    assert np.array_equal(documents.shuffled(0, first, seed=0), mixed[0])
    # each document in its own order
    assert not np.array_equal(documents.shuffled(1, first, seed=0), mixed[0])


# documents as they are


def texts_of(model, tmp_path, content, name="t.jsonl", column="", label="", **options):
    (tmp_path / name).write_text(content, encoding="utf-8")
    text = formats.of(tmp_path / name, column=column, label=label)
    return corpus.texts(model, text, **options)


ROWS = (
    '{"text": "A good film, and a long one.", "label": "pos"}\n{"text": " ", "label": "pos"}\n'
    '{"text": "Bad.", "label": "neg"}\n{"text": "a", "label": "neg"}\n'
    '{"text": "So so, as far as I can see.\\nYes."}\n'
)


@pytest.mark.parametrize("kind", ["bundled", "causal"])
def test_texts_are_whole_and_as_the_tokenizer_has_them(kind, request, tmp_path):
    model = request.getfixturevalue(kind)
    documents = texts_of(model, tmp_path, ROWS)
    texts = "A good film, and a long one.", "Bad.", "So so, as far as I can see.\nYes."
    wanted = [model.tokenizer.encode(text) for text in texts]
    assert len(documents) == 3 and documents.cut == 0
    assert documents.T == max(map(len, wanted))
    assert documents.labels == ["pos", "neg", None]
    for _ in range(2):  # a second pass is the same
        assert all(np.array_equal(a, b) for a, b in zip(documents, wanted, strict=True))


def test_what_is_left_out_is_counted_once(bundled, tmp_path):
    documents = texts_of(bundled, tmp_path, ROWS)
    assert documents.skipped == {"empty": 1, "of one token": 1}
    assert len([*documents]) == len([*documents]) == 3
    assert documents.skipped == {"empty": 1, "of one token": 1}
    # none after these
    assert texts_of(bundled, tmp_path, ROWS, documents=2).skipped == {"empty": 1, "of one token": 0}


def test_long_texts_are_cut_where_asked_with_their_special_tokens(bundled, tmp_path):
    whole = texts_of(bundled, tmp_path, ROWS)
    shortened = texts_of(bundled, tmp_path, ROWS, tokens=6)
    assert shortened.cut == sum(len(document) > 6 for document in whole) == 2
    assert shortened.T == 6
    for long, short in zip(whole, shortened):
        n = min(len(long), 6)
        assert len(short) == n
        assert np.array_equal(short[: n - 1], long[: n - 1])
        assert short[-1] == long[-1]


def test_texts_may_be_longer_than_the_model_reads(causal):
    assert corpus.texts(causal, "sample", 3).T > causal.config.n_ctx


def test_texts_can_be_shuffled_like_documents(bundled, tmp_path):
    documents = texts_of(bundled, tmp_path, ROWS)
    for i, document in enumerate(documents):
        mixed = documents.shuffled(i, document, seed=1)
        assert np.array_equal(np.sort(mixed), np.sort(document))
        assert mixed[0] == document[0] and mixed[-1] == document[-1]


@pytest.mark.parametrize(
    "content, options, message",
    [
        ("", {}, r"t.jsonl' has 0 documents; wanted at least 1"),
        (
            '{"text": ""}\n{"text": "a"}\n',
            {},
            r"has 0 documents \(left out: 1 empty, 1 of one token\); wanted at least 1",
        ),
        (
            ROWS,
            {"documents": 4},
            r"has 3 documents \(left out: 1 empty, 1 of one token\); wanted 4",
        ),
        (ROWS, {"documents": -1}, "--documents is -1; wanted 1 or more"),
        (ROWS, {"tokens": 3}, "--tokens is 3; wanted 4 or more"),
        (ROWS, {"column": "body"}, "no column 'body'; .* available: text, label"),
    ],
)
def test_texts_that_cannot_be_given_are_said_before_any_work(
    bundled, tmp_path, content, options, message
):
    with pytest.raises(ValueError, match=message):
        texts_of(bundled, tmp_path, content, **options)


def test_memory_does_not_grow_with_the_text(bundled, tmp_path):
    """What is held between two documents is small, however many there are."""
    path = tmp_path / "t.txt"
    peaks = []
    for n in (200, 2000):
        words = "some words on every line of a file. " * 8
        with open(path, "w", encoding="utf-8") as file:
            file.write("Some words, again and again, on every line of a file. " * 8 + "\n")
            file.writelines(f"Line {i}: {words}\n" for i in range(n))
        with counting.memory() as used:
            assert sum(1 for _ in corpus.texts(bundled, str(path))) == n + 1
        peaks.append(used.peak)
    # bytes: 1,800 more lines are 530,000, their labels and lengths 29,000
    assert peaks[1] < peaks[0] + 100_000


# heads


def test_heads_are_chosen_by_what_they_do():
    attention = np.full((2, 2, 21), 0.01)
    attention[0, 0, 9] = 0.8
    attention[0, 1, 9] = 0.9
    attention[1, 1, 12] = 0.7
    attention[1, 0, 5:10] = 0.15
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
        expected = q[layer, 1]
        difference = X[layer] @ W_Q + b_Q - expected
        assert np.abs(difference).max() < 1e-5 * np.abs(expected).max()  # float32 sums


@pytest.mark.parametrize("kind", ["bundled", "causal"])
def test_the_input_of_positions_is_that_of_a_text_without_words(kind, request):
    model = request.getfixturevalue(kind)
    document = corpus.documents(model, "sample", 1).first()[0]
    silent = inputs.of_text(model, document, {"embed": np.zeros_like})[0]
    assert np.abs(inputs.of_positions(model) - silent).max() < 1e-5 * np.abs(silent).max()


def test_rows_that_no_token_reaches_are_no_positions(bundled):
    cfg = bundled.config
    rows = inputs.reachable(bundled)
    assert len(rows) == cfg.n_ctx == len(bundled.weights.W_pos) - cfg.offset
    document = corpus.documents(bundled, "sample", 1).first()
    trace = minitx.run(bundled, document, keep=["pos_embed"])
    assert np.array_equal(trace["pos_embed"][0], rows)


def test_the_hint_for_a_short_text_is_right(bundled):
    """The number of tokens that the error names makes one document of the whole text."""
    text = "The cat sat on the mat, and the dog ran after it."
    message = r"\(2 of them special\), 0 documents .* at least 1"
    with pytest.raises(ValueError, match=message) as error:
        corpus.documents(bundled, text)
    tokens = int(str(error.value).partition("--tokens ")[2].partition(",")[0])
    (document,) = corpus.documents(bundled, text, tokens=tokens)
    assert bundled.tokenizer.decode(document).strip() == text


@pytest.mark.parametrize(
    ("name", "itself"),
    [
        ("The cat sat.", True),
        ("What? [No] *one* knows", True),
        ("two words\nand a line", True),
        (" the" * 3000, True),  # longer than a path may be
        ("word", False),
        ("", False),
        ("-", False),
        ("my texts/a.txt", False),
        ("my texts/a.jsonl.gz", False),
        ("s3://bucket/my texts/", False),
        ("ids: a passport", True),
    ],
)
def test_several_words_are_the_text_itself(name, itself):
    assert storage.is_literal(name) == itself


def test_what_is_there_is_read_before_the_words_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my texts").mkdir()
    (tmp_path / "my texts/a").write_text("inside")
    (tmp_path / "my notes").write_text("first\nsecond")
    assert [*corpus.lines("my notes")] == ["first", "second"]
    assert [*corpus.lines("my t*/a")] == ["inside"] and [*corpus.lines("my text")] == ["my text"]
    with pytest.raises(FileNotFoundError, match="no .txt file in the folder"):
        formats.files("my texts")


SPOKEN = " The old man gave the girl a book.\n\nShe thanked him."


def test_a_text_itself_is_read_as_a_trace_reads_it(bundled):
    """With no line break that it does not have; the hint names as many tokens as a trace has."""
    expected = bundled.tokenizer.encode(SPOKEN)
    with pytest.raises(ValueError, match=f"has {len(expected)} tokens .*--tokens {len(expected)},"):
        corpus.documents(bundled, SPOKEN)
    (document,) = corpus.documents(bundled, SPOKEN, tokens=len(expected))
    assert document.tolist() == expected.tolist()
    assert corpus.whole_text(SPOKEN) == SPOKEN


@pytest.mark.parametrize(
    ("text", "expected"),
    [(SPOKEN, SPOKEN), ("The cat sat.\n", "The cat sat.\n"), (" a\n\n b c\n", "a\nb c\n")],
)
def test_standard_input_has_a_line_break_at_its_end_where_one_is(
    bundled, tmp_path, piped, text, expected
):
    """Without one it is read as it stands; with one as a file is."""
    piped(text)
    (tokens,) = corpus.pieces(bundled, "-", 1000)
    assert bundled.tokenizer.decode(tokens) == expected
    (tmp_path / "a.txt").write_text("The cat sat.")
    (of_a_file,) = corpus.pieces(bundled, str(tmp_path / "a.txt"), 1000)
    assert bundled.tokenizer.decode(of_a_file) == "The cat sat.\n"


def test_the_settings_of_a_text_itself():
    stated = formats.described("The cat sat.")
    assert stated["name"] == "the text itself" and stated["files"] == 1
    assert stated["sha256"] == hashlib.sha256(b"The cat sat.").hexdigest()


@pytest.mark.parametrize(
    "names, pairs",
    [
        ("L0H0,L1H2", [(0, 0), (1, 2)]),
        ("L1", [(1, 0), (1, 1), (1, 2)]),
        ("head(1,1) head(2, 3),L0H0", [(0, 0), (1, 2)]),  # the paper counts from 1
    ],
)
def test_heads_are_named_one_by_one_by_layer_or_as_the_paper_counts(causal, names, pairs):
    assert heads.parse(names, causal.config) == pairs


@pytest.mark.parametrize("name", ["L9", "head(0,1)", "head(1,9)", "L0H", "H0"])
def test_a_name_that_is_no_head_says_what_names_there_are(causal, name):
    with pytest.raises(ValueError, match=r"is not a head of this model: wanted L0H0 to .*L0 for"):
        heads.parse(name, causal.config)
