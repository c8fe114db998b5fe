"""The layouts that texts come in, and what is wrong with them, by file, line, row and byte."""

import hashlib
import json
import sys

import counting
import pytest

from minitx.analysis.texts import formats, storage


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def records(text, **options):
    """Documents of a text as tuples: the text, its label, where it stands."""
    return [tuple(record) for record in formats.records(formats.of(text, **options))]


# layouts


def test_a_text_file_has_one_document_a_line(tmp_path):
    text = write(tmp_path / "a.txt", "\ufefffirst\n\n  second \r\n \nlast")
    assert records(text) == [
        ("first", None, "a.txt, line 1"),
        ("second", None, "a.txt, line 3"),
        ("last", None, "a.txt, line 5"),
    ]


def test_an_article_of_wikitext_is_a_document(tmp_path):
    text = write(
        tmp_path / "wiki.txt",
        " \n = One = \n \n Text of one . \n = 1 rad / s . \n"
        " \n = = Part = = \n \n More . \n \n = Two = \n \n Text of two . \n",
    )
    assert records(text) == [
        ("= One =\nText of one .\n= 1 rad / s .\n= = Part = =\nMore .", None, "wiki.txt, line 2"),
        ("= Two =\nText of two .", None, "wiki.txt, line 11"),
    ]


def test_a_formula_inside_a_paragraph_begins_no_article(tmp_path):
    text = write(
        tmp_path / "wiki.txt", " = One = \n \n an impedance k \n = 1 henry and C = \n 1 farad \n"
    )
    assert len(records(text)) == 1


def test_a_title_further_down_makes_no_wikitext(tmp_path):
    text = write(tmp_path / "a.txt", "A line.\n\n = Not a title here = \n\nAnother.\n")
    assert len(records(text)) == 3


def test_a_labelled_folder_gives_its_classes_in_turn(tmp_path):
    files = {
        "pos/1_9.txt": "good\nvery",
        "pos/2_8.txt": "fine",
        "pos/3_7.txt": "",
        "neg/0_1.txt": "bad",
        "neg/9_2.txt": "awful",
        "neg/notes.md": "no",
        "unsup/0.txt": "no",
        "urls.txt": "no",
    }
    for name, content in files.items():
        write(tmp_path / name, content)
    texts, labels, places = zip(*records(str(tmp_path)))
    assert texts == ("bad", "good\nvery", "awful", "fine", "")
    assert labels == ("neg", "pos", "neg", "pos", "pos")
    order = "neg/0_1.txt", "pos/1_9.txt", "neg/9_2.txt", "pos/2_8.txt", "pos/3_7.txt"
    assert places == order
    assert [*formats.lines(str(tmp_path))] == ["bad", "good", "very", "awful", "fine"]


def test_a_folder_reads_each_file_by_its_own_layout(tmp_path):
    write(tmp_path / "b.txt", " = One = \n \n Text . \n")
    write(tmp_path / "a.txt", "one\ntwo\n")
    write(tmp_path / "c.csv", "no")
    assert [text for text, *_ in records(str(tmp_path))] == ["one", "two", "= One =\nText ."]


def test_rows_of_a_table_are_documents(tmp_path):
    text = write(
        tmp_path / "t.csv", '\ufeffid,title,body,label\n1,"A, b","two\nlines",pos\n\n2,C,d,\n'
    )
    assert records(text, column="title, body") == [
        ("A, b two\nlines", "pos", "t.csv, row 2"),
        ("C d", "", "t.csv, row 4"),
    ]
    assert records(text, column="body", label="id")[1] == ("d", "2", "t.csv, row 4")


@pytest.mark.parametrize(
    "header, row, wanted",
    [
        # TruthfulQA's
        (
            "Type,Category,Question,Best Answer,Source",
            "a,b,Why?,Because.,c",
            ("Why? Because.", None),
        ),
        ("text,label", "good,1", ("good", "1")),
        ("anything", "a text", ("a text", None)),
        ("label", "a text", ("a text", None)),  # the only column is the text
    ],
)
def test_some_columns_are_known(tmp_path, header, row, wanted):
    assert records(write(tmp_path / "t.csv", f"{header}\n{row}\n"))[0][:2] == wanted


def test_a_column_may_have_a_comma_in_its_name(tmp_path):
    text = write(tmp_path / "t.csv", '"first, second",third\none,two\n')
    assert records(text, column="first, second")[0][0] == "one"


def test_a_cell_may_be_longer_than_the_csv_module_expects(tmp_path):
    long = "word " * 40_000
    assert records(write(tmp_path / "t.csv", f"text,label\n{long},pos\n"))[0][0] == long.strip()


def test_objects_by_line_are_documents(tmp_path):
    rows = [
        {"text": " a\nb ", "label": 1},
        {"text": "c", "label": None, "other": []},
        {"text": "d", "label": "x"},
    ]
    text = write(tmp_path / "t.jsonl", "\n\n".join(map(json.dumps, rows)))
    assert records(text) == [
        ("a\nb", "1", "t.jsonl, line 1"),
        ("c", "", "t.jsonl, line 3"),
        ("d", "x", "t.jsonl, line 5"),
    ]
    text = write(tmp_path / "nan.jsonl", '{"text": "a", "label": NaN}')  # an empty cell of pandas
    assert records(text)[0][1] == ""
    write(tmp_path / "two.jsonl", '{"q": "why?", "a": "so", "stars": 5}\n')
    assert records(str(tmp_path / "two.jsonl"), column="q,a", label="stars")[0][:2] == (
        "why? so",
        "5",
    )


def test_standard_input_is_a_text_file(piped):
    piped("A line.\nAnother.\n")
    for _ in range(2):  # a second pass is the same
        assert [text for text, *_ in records("-")] == ["A line.", "Another."]
    assert [*formats.lines("-")] == ["A line.", "Another."]
    assert formats.described("-")["name"] == "standard input"


def test_the_sample_is_the_projects_own_wherever_one_stands(tmp_path, monkeypatch):
    for name in formats.CLASSES:
        write(tmp_path / "sample" / name / "0.txt", "other")
    monkeypatch.chdir(tmp_path)
    assert formats.files("sample") == [formats.SAMPLE] and len(records("sample")) > 900


def test_records_are_read_one_at_a_time(tmp_path):
    """What is wrong further down is found when one gets there: nothing is read ahead."""
    text = formats.records(write(tmp_path / "t.jsonl", '{"text": "a"}\n' * 3 + "broken"))
    assert [next(text).text for _ in range(3)] == ["a"] * 3
    with pytest.raises(ValueError, match="line 4"):
        next(text)


def test_tabs_and_arrays_are_read_as_what_they_are(tmp_path):
    """Quotes of a .tsv file are letters; a .json file may have lines of objects."""
    table = write(tmp_path / "t.tsv", 'text\tlabel\n"So, he\tneg\na, b\tpos\n')
    assert records(table) == [('"So, he', "neg", "t.tsv, row 2"), ("a, b", "pos", "t.tsv, row 3")]
    texts = write(tmp_path / "a.json", '[\n "one, two",\n "three"\n]')
    assert records(texts)[1] == ("three", None, "a.json, item 2")
    objects = write(tmp_path / "o.json", '[{"body": "one", "n": 1}, {"body": "two", "n": 2}]')
    assert records(objects, column="body", label="n")[1] == ("two", "2", "o.json, item 2")
    assert records(str(tmp_path)) == records(table)  # arrays beside a table are about it
    lines = write(tmp_path / "l.json", '{"text": "one"}\n{"text": "two"}\n')
    assert [record[0] for record in records(lines)] == ["one", "two"]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("t.tsv", "a\tb\n1\t2\n", "t.tsv: no column of a known name; .*; available: a, b"),
        ("t.json", '["a", 5]', "t.json, item 2 is 5; wanted a text or an object"),
        ("t.json", '["a", ', "t.json: not JSON: "),
        ("t.json", '[{"a": "x", "b": "y"}]', "t.json, item 1: no column of a known name"),
        ("t.zip", b"PK\x03\x04", "'t.zip' is an archive or packed as .zip; unpack it"),
        ("t.csv.bz2", b"BZh", "'t.csv.bz2' is an archive or packed as .bz2"),
        ("t.txt.gz.gz", b"", "'t.txt.gz.gz' is packed twice; unpack it once"),
    ],
)
def test_what_is_not_read_is_refused_by_name(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message):
        records(write(tmp_path / name, content))


def test_views_of_texts_are_read_and_bytes_that_are_none_are_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    if hasattr(pa, "string_view"):
        table = pa.table({"text": pa.array(["one", "two"], pa.string_view())})
        try:
            pyarrow.parquet.write_table(table, tmp_path / "v.parquet")
        except pa.ArrowNotImplementedError:  # of an older pyarrow, which writes none
            pass
        else:
            assert records(str(tmp_path / "v.parquet"))[1][0] == "two"
    broken = pa.Array.from_buffers(
        pa.string(), 2, pa.array([b"one", b"a\xff"], pa.binary()).buffers()
    )
    pyarrow.parquet.write_table(pa.table({"text": broken}), tmp_path / "b.parquet")
    message = "b.parquet, row 2: column 'text' is not valid UTF-8: byte 1"
    with pytest.raises(ValueError, match=message):
        records(str(tmp_path / "b.parquet"))


# what is wrong with a text


WRONG = {  # name -> content, what is said, and options
    "t.csv": [
        ("", "t.csv: no column of a known name; .*; available: none"),
        (
            "a,b\n1,2\n",
            "t.csv: no column of a known name; name the text's with --column, .*; available: a, b",
        ),
        ("a,b\n1,2\n", "t.csv: no column 'c'; .*; available: a, b", {"column": "a,c"}),
        ("a,b\n1,2\n", "t.csv: no column 'd'; .* available: a, b", {"column": "a", "label": "d"}),
        ("text,b\n1,2\n3\n", "t.csv, row 3: 1 cells, but the header has 2: text, b"),
        ("text,b\n1,2,3\n", "t.csv, row 2: 3 cells, but the header has 2: text, b"),
        (
            'text\n"never closed\nmore\n',
            "'t.csv' is not a .csv file: line 3: unexpected end of data",
        ),
        ("text\rone\r", "'t.csv' is not a .csv file: line 1: new-line character"),
        (
            b"text\n\xc3\xa9\nna\xefve\n",
            r"'t.csv' is not valid UTF-8: line 3, byte 10 of the file \(invalid",
        ),
        ("text;label\na;b\n", "t.csv: one column 'text;label'; .* by ';': save"),
        ("text\tlabel\na\tb\n", r"t.csv: one column .* by '\\t': save it"),
        ("text\n", "'t.csv' has no rows below its header: text"),
        (
            "text,n,text\na,1,b\n",
            "'t.csv' has more than one column 'text'; available: text, n, text",
        ),
    ],
    "t.jsonl": [
        ('{"text": "a"}\n[1, 2]\n', r"t.jsonl, line 2: no object, but '\[1, 2\]'"),
        ('{"text": "a"}\n{"text": \n', "t.jsonl, line 2: not JSON: Expecting value"),
        ("[" * 100_000, "t.jsonl, line 1: not JSON: "),
        (
            '{"text": "a"}\n{"txt": "b", "n": 1}\n',
            "t.jsonl, line 2: no column of a known name; .*: txt, n",
        ),
        (
            '{"text": "a"}\n',
            "t.jsonl, line 1: no column 'review'; .* available: text",
            {"column": "review"},
        ),
        ('{"text": 5}\n', "t.jsonl, line 1: 'text' is not a text but 5"),
        (
            '{"text": "a"}\n{"text": "cut \\ud83d"}\n',
            r"t.jsonl, line 2: 'text' is not valid UTF-8: '\\ud83d' at character 4",
        ),
        ('{"text": "a", "label": "\\udc00"}\n', "t.jsonl, line 1: 'label' is not valid UTF-8: "),
        ('{"text": "a", "label": [1]}\n', r"t.jsonl, line 1: 'label' is not a label but \[1\]"),
        (
            b'{"text": "a"}\n{"text": "\xff"}\n',
            "'t.jsonl' is not valid UTF-8: line 2, byte 24 of the file",
        ),
    ],
    "t.txt": [
        (
            "a line\n",
            "'t.txt' has no columns: --column and --label go with .csv, .tsv, .jsonl, .json",
            {"column": "text"},
        ),
        ("a line\n", "'t.txt' has no columns", {"label": "label"}),
        (b"one\nna\xefve", "'t.txt' is not valid UTF-8: line 2, byte 6 of the file"),
    ],
    "pos/0.txt": [
        ("a line\n", "'test_what_is_wrong_is_named.*' has no columns", {"label": "x"}),
        (b"ab\ncd\xff", "'pos/0.txt' is not valid UTF-8: line 2, byte 5 of the file"),
    ],
}


@pytest.mark.parametrize("name, row", [(name, row) for name in WRONG for row in WRONG[name]])
def test_what_is_wrong_is_named(tmp_path, name, row):
    content, message, *options = row
    (tmp_path / "neg").mkdir()
    text = write(tmp_path / name, content)
    with pytest.raises(ValueError, match=message):
        records(str(tmp_path) if name.startswith("pos") else text, **dict(*options))


def test_columns_that_are_not_read_may_have_one_name(tmp_path):
    assert records(write(tmp_path / "t.csv", "text,,\na,1,2\n"))[0][0] == "a"


@pytest.mark.parametrize("name", ["pos", "neg"])
def test_one_class_alone_is_no_labelled_folder(tmp_path, name):
    write(tmp_path / name / "0.txt", "a line")
    with pytest.raises(ValueError, match=f"has {name}/ alone; wanted neg/ and pos/, or neither"):
        records(str(tmp_path))
    # the class itself is a plain folder
    assert records(str(tmp_path / name))[0][:2] == ("a line", None)


def test_labels_further_down_are_not_lost(tmp_path):
    for part in ("train", "test"):
        for name in formats.CLASSES:
            write(tmp_path / "imdb" / part / name / "0.txt", "a line")
    message = "labelled folders inside; name one of them: .*imdb/test, .*imdb/train"
    with pytest.raises(ValueError, match=message):
        records(str(tmp_path / "imdb"))
    assert [label for _, label, _ in records(str(tmp_path / "imdb/train"))] == ["neg", "pos"]


def test_a_quote_that_is_never_closed_does_not_swallow_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "CELL", 1000)
    text = write(tmp_path / "t.csv", 'text\n"open\n' + "a line\n" * 10_000)
    message = r"'t.csv' is not a .csv file: line \d+: field larger than field limit"
    with pytest.raises(ValueError, match=message):
        records(text)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_an_empty_file_has_no_documents(tmp_path, name):
    assert records(write(tmp_path / name, "")) == []


# what the settings say


def test_a_review_that_changes_its_class_is_another_text(tmp_path):
    for name in ("pos/1.txt", "pos/2.txt", "neg/1.txt"):
        write(tmp_path / name, name)
    before = formats.described(str(tmp_path))
    (tmp_path / "pos/2.txt").rename(tmp_path / "neg/2.txt")
    after = formats.described(str(tmp_path))
    assert before["files"] == after["files"] == 3 and before["sha256"] != after["sha256"]


@pytest.mark.parametrize(
    "name, content", [("t.csv", "text\na\n"), ("t.jsonl", '{"text": "a"}'), ("t.txt", "a\n")]
)
def test_one_file_is_known_by_its_own_hash(tmp_path, name, content):
    digest = hashlib.sha256(content.encode()).hexdigest()
    stated = {"name": name, "files": 1, "sha256": digest}
    assert formats.described(write(tmp_path / name, content)) == stated


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("t.txt", "short\n" + "a " * 60 + "\n", "t.txt, line 2 is longer than 100 ch.*fold -s"),
        ("t.jsonl", '{"text": "' + "a " * 60 + '"}\n', "t.jsonl, line 1 is longer than 100 ch"),
        ("t.csv", 'text\n"' + "a\n" * 60 + '"\n', "'t.csv' is not a .csv file: line 5.: field lar"),
        ("t.txt", "= Title =\n\n" + "a formula\n" * 30, "t.txt, line 1 is longer than"),
        ("pos/0.txt", "a line\n" * 30, "pos/0.txt is longer than 100 characters"),
    ],
    ids=range(5),
)
def test_a_line_that_would_take_all_memory_is_refused_by_its_number(
    tmp_path, monkeypatch, name, content, message
):
    """Of 10 MB in one line all was cut into tokens, 2 GB, for four documents."""
    monkeypatch.setattr(storage, "LONGEST", 100)
    monkeypatch.setattr(formats, "LONGEST", 100)
    monkeypatch.setattr(formats, "CELL", 100)
    (tmp_path / "neg").mkdir()
    path = write(tmp_path / name, content)
    text = tmp_path if name.startswith("pos/") else path
    with pytest.raises(ValueError, match=message):
        list(formats.records(text))


def test_a_long_line_is_not_read_to_its_end(tmp_path):
    """400 MB without a line break, of which no more than the limit is read."""
    path = tmp_path / "t.txt"
    with open(path, "wb") as file:
        file.truncate(400_000_000)
    message = "t.txt, line 1 is longer than 4,194,304 characters"
    with counting.memory() as used, pytest.raises(ValueError, match=message):
        list(formats.records(path))
    assert used.peak < 20e6  # 8.5 MB


def test_a_link_to_nothing_among_others_is_named(tmp_path):
    """It hid the whole folder: no .txt file in it."""
    write(tmp_path / "a.txt", "one\n")
    (tmp_path / "b.txt").symlink_to(tmp_path / "nowhere")
    message = "has '.*/b.txt', which is not a file: a link to what"
    with pytest.raises(FileNotFoundError, match=message):
        list(formats.records(tmp_path))


@pytest.mark.parametrize("name", ["text.txt", "ids.txt"])
def test_a_user_who_is_not_there_is_a_file_that_is_not_there(name):
    text = formats.of(f"~nouser/{name}", is_ids=name == "ids.txt")
    with pytest.raises(FileNotFoundError, match="no (text )?file '~nouser/"):
        formats.files(text)


def test_standard_input_that_is_closed_is_said(monkeypatch):
    storage._spooled.cache_clear()
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="standard input is closed; give a file in place of -"):
        formats.files("-")


def test_names_of_columns_stand_in_one_line(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a\x1bb,c\u202ed\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"available: a\\x1bb, c\\u202ed$"):
        [*formats.records(str(path))]
