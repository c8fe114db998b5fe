"""The report: one page that stands alone and answers first, whatever happens to its parts."""

import base64
import hashlib
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread
from planted import HOSTILE, Page, answers, bad, giving, good, plant, unfit

import minitx
from minitx import weights
from minitx.analysis import __main__ as cli
from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry, verdict, wording
from minitx.analysis.contract.numbers import Fact, Number
from minitx.analysis.drawing import draw
from minitx.analysis.pages import overview, parts, passage, report, section, themes
from minitx.analysis.running import many, single
from minitx.analysis.texts.formats import sha256

ROOT = Path(__file__).parents[2]
OF_PAIRS = {"alignment"}  # which a single stack has not


FEW = {"documents": 2, "tokens": 64, "texts": 4, "n_pairs": 4, "steps": 3, "evaluations": 8}
FEW |= {"shuffles": 20, "random": 10}
PROGRAM = f"""
import pathlib, sys
from minitx.analysis import experiments
from minitx.analysis.pages import report
from minitx.analysis.running import single
model, name = single.loaded("tiny-roberta")
report.EVERY = 600  # one page in between; another test looks at more
sys.exit(report.make(model, name, pathlib.Path(sys.argv[1]), {FEW}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A report on the bundled model, made once in a process of its own, with few of everything."""
    out = tmp_path_factory.mktemp("report")
    command = [sys.executable, "-c", PROGRAM, str(out)]
    process = subprocess.run(
        command, cwd=ROOT, text=True, capture_output=True, timeout=900, check=False
    )
    assert process.returncode == 0, process.stderr
    for name in (*registry.EXPERIMENTS, "all"):
        assert re.search(rf"^{name} +\d+\.\d s", process.stdout, re.M)
    assert process.stderr == ""  # no warnings
    (out / "stdout").write_text(process.stdout)
    return out


@pytest.fixture(scope="module")
def text(folder):
    return (folder / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_the_page_needs_no_network_and_no_other_file(page):
    tags = [tag for tag, _ in page.tags]
    assert not {"link", "iframe", "object", "base"} & {*tags} and tags.count("script") == 1
    kinds = []
    for source in page.all("src"):
        kind, _, data = source.partition(",")
        kinds.append(kind)
        content = base64.b64decode(data)
        if kind == "data:image/png;base64":
            assert content.startswith(b"\x89PNG") and len(content) < 40_000
            continue
        svg = content.decode()
        ElementTree.fromstring(svg)
        inside = re.findall(r'(?:href|src)="([^"]*)"', svg)
        assert all(link.startswith(("#", "data:")) for link in inside)
        assert not re.search(r"@import|url\((?!#)", svg)
    n = len(registry.EXPERIMENTS) - len(OF_PAIRS)
    further = len(kinds) - 2 * n  # of at most three panels each
    assert kinds == n * ["data:image/png;base64"] + (n + further) * ["data:image/svg+xml;base64"]
    assert further > 20
    assert not re.search(r"@import|url\(", report.STYLE)


def test_a_figure_is_described_by_its_answer_or_its_panels(page, folder):
    alts = [text for text in page.all("alt") if text]
    names = registry.EXPERIMENTS.keys() - OF_PAIRS
    answers = [json.loads((folder / f"{name}.json").read_text())["answer"] for name in names]
    answers = [answer for answer in answers if answer]
    assert len(answers) > 30
    for answer in answers:
        shown = parts.typeset(f"{answer['measure']}: {answer['value']}")
        assert any(text.startswith(f"Figure: {shown}") for text in map(parts.typeset, alts))
    assert not [text for text in alts if text in ("Figure", "Another figure", "Figure: : ")]
    questions = [experiment.question for experiment in registry.EXPERIMENTS.values()]
    assert not [text for text in alts if any(question in text for question in questions)]


def test_percent_and_minus_are_written_one_way_on_the_page_and_in_its_figures(text, page):
    texts = [re.sub(r"<(pre|code|style|script)\b.*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL)]
    for source in page.all("src"):
        if source.startswith("data:image/svg"):
            svg = base64.b64decode(source.partition(",")[2]).decode()
            texts += re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert not [
        apart for shown in texts for apart in re.findall(r".{0,20}\d %|[ (]-\d.{0,20}", shown)
    ]
    assert sum("%" in shown for shown in texts) > 50 < sum("−" in shown for shown in texts)


def test_the_policy_lets_in_this_style_this_program_and_images_alone(text, page):
    (policy,) = (tag["content"] for _, tag in page.tags if "http-equiv" in tag)
    assert text.index("Content-Security-Policy") < text.index("<style>")
    digests = []
    for tag in "style", "script":
        content = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digests.append(base64.b64encode(hashlib.sha256(content.encode()).digest()).decode())
    style, program = digests
    assert policy.split("; ") == [
        "default-src 'none'",
        "img-src data:",
        f"style-src 'sha256-{style}'",
        f"script-src 'sha256-{program}'",
        "base-uri 'none'",
    ]
    for _, attributes in page.tags:  # the policy would refuse these
        assert not [name for name in attributes if name == "style" or name.startswith("on")]


def test_every_link_leads_somewhere(folder, page):
    ids = page.all("id")
    assert len(ids) == len(set(ids))
    for link in page.all("href"):
        if not link.startswith("data:"):  # a picture
            assert link[1:] in ids if link.startswith("#") else (folder / link).is_file()


def test_every_experiment_has_its_question_texts_numbers_and_files(page, folder):
    for name, experiment in registry.EXPERIMENTS.items():
        question = experiment.question
        assert page.text.count(question) == 2  # answers and heading
        if name in OF_PAIRS:
            assert f"Left out for this model: {name} needs an encoder-decoder" in page.of(name)
            continue
        shown = page.of(name)
        for text in (question, experiment.look, experiment.published, experiment.summary):
            assert parts.typeset(text) in shown
        stated = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for number in stated["headline"].values():
            assert parts.typeset(number["means"]) in shown
            assert parts.typeset(number.get("null_means", "")) in shown
            is_share = number["means"].startswith("share")
            value = section._times_100(number["value"]) if is_share else number["value"]
            values = value if isinstance(value, list) else [value]
            assert all(parts.typeset(wording.words(value)) in shown for value in values)
        for ending in (".svg", ".npz", ".json"):
            assert f"{name}{ending}" in page.all("href")


def test_the_header_says_what_the_model_is(page):
    path = weights.find("tiny-roberta")
    cfg = minitx.load(path).config
    for text in (
        "What tiny-roberta computes",
        f"{cfg.n_layers} layers × {cfg.n_heads} heads, width {cfg.d_model}",
        f"at most {cfg.n_ctx} tokens, vocabulary {cfg.n_vocab}",
        sha256(path / "model.safetensors"),
        f"{(path / 'model.safetensors').stat().st_size / 1e6:.1f} MB on disk",
    ):
        assert text in page.text


def test_losses_of_the_unchanged_model_stand_together_and_say_why_they_differ():
    def run(name, **result):
        return SimpleNamespace(name=name), SimpleNamespace(result=result), 0

    runs = [run("shift", loss=2.377, change_zero=4.1, documents=1)]
    runs += [run("notch", loss=1.5616, loss_documents=4, documents=12), run("cca", loss=9)]
    runs += [run("dial", loss=1.5598, loss_documents=4), run("predict", loss=1.56)]
    runs += [run("remove-positions", loss=2.5, loss_zero=6.0, documents=20)]
    runs += [run("probe", loss_on=2.5, loss_off=6.0, documents=np.array([36, 12, 12]))]
    text = report.several(runs, report.UNCHANGED)
    same = "1.56 (notch, dial: 4 documents); 1.56 (predict: one sentence)"
    others = "2.50 (probe: 12 documents); 2.50 (remove-positions: 20 documents)"
    assert text.startswith(f"{same}; 2.38 (shift: 1 document); {others}. They differ")
    at_zero = others.replace("2.50", "3.50")
    assert report.several(runs, report.AT_ZERO).startswith(f"{at_zero}; 4.10 (shift: 1 document)")
    assert report.several(runs[1:2], report.UNCHANGED) == "1.56 (notch: 4 documents)"
    assert report.several(runs[2:3], report.UNCHANGED) == ""
    left_out = single.Failure("no head", left_out=True)
    assert report.several([(runs[0][0], left_out, 0)], report.UNCHANGED) == ""


def test_parts_are_named_for_those_who_do_not_see_the_page(page):
    tags = [tag for tag, _ in page.tags]
    assert tags.count("h1") == tags.count("main") == tags.count("nav") == 1
    assert tags.count("h2") == tags.count("section") == len(registry.EXPERIMENTS) + 4
    scopes = "col", "row", "rowgroup"
    assert all(attributes.get("scope") in scopes for tag, attributes in page.tags if tag == "th")
    assert all("alt" in attributes for tag, attributes in page.tags if tag == "img")
    skip = next(attributes for tag, attributes in page.tags if tag == "a")
    assert skip["href"] == "#answers"


# the answers


def test_the_answers_come_first(reported):
    text, page = reported(good, answer=answers("partly"))
    assert text.index('id="answers"') < text.index('id="good"') < text.index('id="published"')
    for where in ("answers", "good"):
        shown = page.of(where, folded=False)
        assert "◐ Partly" in shown and "Is good <tame>?" in shown
        assert f"heads beyond their null {HOSTILE}" in shown
        assert re.search(r"7 of 9 ?\(?chance: 1 of 9", shown)
    counts = "◐ Partly\N{NO-BREAK SPACE}1"
    counted = f"1 question about this model: {counts} {overview.MEANING}Left out: nothing."
    assert counted in page.text
    assert f"Other questions{counts}" in page.text  # where a phone folds them
    assert text.count('class="mark partly"') == 4
    assert page.text.index("◐ partly") < page.text.index("◐ good")  # what the sign means


def test_numbers_below_zero_have_a_minus_sign_on_the_page(reported, tmp_path):
    """The record keeps what programs read; a command keeps what is typed."""
    text, page = reported(good, answer=answers("no", "-0.5 (L0-L2)"), published="At -1, `--x -2`.")
    assert "−0.5 (L0-L2)" in page.of("answers") and "-0.5" not in page.of("answers")
    assert "At −1, `--x −2`." in page.of("good")
    assert re.search('alt="Figure: [^"]*: −0.5 ', text)
    record = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert record["experiments"]["good"]["answer"]["value"] == "-0.5 (L0-L2)"
    assert parts.typeset('<p id="a-1">1e-05, a-1</p><code>-1</code>') == (
        '<p id="a-1">1e−05, a-1</p><code>-1</code>'
    )


def test_words_from_right_to_left_keep_their_side_on_the_page(reported):
    _, page = reported(good, answer=answers("no", "כלב 0.5"), published="`--x כלב 2`.")
    assert "\u200eכלב\u200e 0.5" in page.of("answers") and "`--x כלב 2`" not in page.text
    assert parts.typeset('<p title="א 1">א ב 1</p><code>א 1</code>') == (
        '<p title="א 1">\u200eא ב\u200e 1</p><code>א 1</code>'
    )


def test_questions_stand_by_theme_and_statements_on_any_transformer_are_counted_apart(text, page):
    """Whether this model is what its architecture is said to be is no finding about it."""
    heads = [t for t, tags, _ in page.texts if tags[-2:] == ("tr", "th") and "tbody" in tags]
    used = {themes.of(name) for name in registry.EXPERIMENTS}
    assert [head for head in heads if head in used] == [x for x in themes.THEMES if x in used]
    others = [name for name in registry.EXPERIMENTS if themes.of(name) == themes.OTHER]
    names = [name for own in themes.THEMES.values() for name in own or others]
    assert {*names} == {*registry.EXPERIMENTS} and len(names) == len(registry.EXPERIMENTS)
    rows = re.findall(r'<th scope="row"><a href="#([^"]*)">', text)
    ids = [id_ for id_ in page.all("id") if id_ in registry.EXPERIMENTS]
    assert rows == ids == names
    own, stated = re.findall(r"(\d+) (?:questions about this|statements about any)", text)
    of_any = themes.THEMES[themes.ANY]
    assert (int(own), int(stated)) == (len(registry.EXPERIMENTS) - len(of_any), len(of_any))


@pytest.mark.parametrize("seconds", [0, 60])  # between two pages; the first waits for none
def test_the_first_answers_are_on_a_page_before_the_last(reported, tmp_path, monkeypatch, seconds):
    before = []

    def late(model, run, *, documents: int = 20):
        before.append((tmp_path / "index.html").read_text(encoding="utf-8"))
        return good(model, run, documents=documents)

    monkeypatch.setattr(report, "EVERY", seconds)
    text, _ = reported(good, late, answer=answers("partly"))
    (draft,) = before
    page = Page(draft)
    assert "1 experiment to come" in page.text and "◐ Partly" in page.of("answers")
    inside = {link[1:] for link in page.all("href") if link.startswith("#")}
    assert inside <= {*page.all("id")}
    assert 'http-equiv="refresh"' in draft and 'http-equiv="refresh"' not in text


@pytest.mark.parametrize("kind", verdict.VERDICTS)
def test_every_verdict_is_a_word_a_sign_and_a_colour(kind):
    mark = parts.mark(kind)
    assert Page(mark).text == f"{parts.SIGNS[kind]} {kind.capitalize()}"
    assert f'class="mark {kind}"' in mark and f".mark.{kind} {{" in report.STYLE
    assert len({parts.SIGNS[other] for other in verdict.VERDICTS}) == len(verdict.VERDICTS)


def test_without_an_answer_the_first_number_stands_there(reported):
    _, page = reported(good)
    shown = page.of("answers")
    assert "Measured" in shown and "a & b" in shown and "2chance: 0.5" in shown


def test_documents_left_out_are_counted(reported):
    lossy = giving("lossy", n_skipped=2, skipped=np.array([1, 0]))
    _, page = reported(lossy, good, unfit)
    left = "1 experiment not applicable to this model; 3 documents in 1"
    assert f"Left out: {left} experiment (empty, or of one token)." in page.text
    assert "Note: 3 documents left out, empty or of one token." in page.of("lossy")
    assert "Note" not in page.of("good")


# one section


def test_six_numbers_are_shown_and_the_others_folded(reported):
    wordy = giving("wordy", **{f"n{i}": 100 + i for i in range(9)})
    numbers = [Fact(f"n{i}", f"number {i} of all") for i in range(9)]
    _, page = reported(wordy, numbers=numbers)
    for i in range(9):
        folded = i >= section.SHOWN == 6
        assert f"number {i} of all" in page.of("wordy", folded)
        assert f"number {i} of all" not in page.of("wordy", not folded)
    assert "3 more numbers" in page.of("wordy", folded=True)
    for text in ("Look at the offset", "Published: Nothing", "minitx run wordy", '"versions"'):
        assert text in page.of("wordy", folded=True) and text not in page.of("wordy", folded=False)


def test_lists_are_labelled_and_so_are_their_nulls(reported):
    values = {"value": np.array([2.0, 3.0]), "value_null": np.array([0.5, 0.25])}
    listed = giving("listed", names=np.array(["<L0H0>", "L1H1"]), **values)
    _, page = reported(listed, numbers=[Number("value", "a list", null="chance", by="names")])
    assert "<L0H0>: 2, L1H1: 3<L0H0>: 0.5, L1H1: 0.25" in page.of("listed")
    assert "times the null" not in page.text


def test_long_lists_are_tables_whose_columns_sort(reported):
    """Lists that name the same entries are one table; what by_head gives is another."""
    names = ["L0H0", "L0H1", "L1H0", "<L1H1>", "L2H0", "L2H1", "L3H0", "L3H1"]
    values = {"a": np.arange(8) / 8, "b": np.arange(8.0), "b_null": np.full(8, 9.5)}
    listed = giving("listed", names=np.array(names), **values)
    numbers = [
        Fact("a", "the first", by="names"),
        Number("b", "the second", null="none", by="names"),
    ]
    by_head = lambda r: {"head": r["names"], "offset": ["-1"] * 8}  # noqa: E731
    text, page = reported(listed, numbers=numbers, by_head=by_head)
    first, second = re.findall(r'<table class="sorts">(.*?)</table>', text)
    said = "".join(f"{name}−1" for name in names)
    assert Page(f"<table>{first}</table>").text == f"headoffset{said}"
    rows = re.findall(r"<tr><th.*?</tr>", second)
    assert [Page(row).text for row in rows[1:3]] == ["L0H0009.5", "L0H10.12519.5"]
    assert "Head by head: 8 heads" in page.text and "L0H0, L0H1, …: 2 numbers each" in page.text


def test_lists_of_few_entries_have_a_column_for_each(reported):
    """Their meaning stands in the row; it was a list above columns named (1) and (2)."""
    values = {"a": np.array([1, 2, 3]), "b": np.array([0.5, 0.25, 1.0])}
    values |= {"b_null": np.array([0.125, 0.0, 0.0625])}
    listed = giving("listed", names=np.array(["one", "two", "<three>"]), **values)
    numbers = [
        Fact("a", "the first", by="names"),
        Number("b", "share of the second", null="none", by="names"),
    ]
    text, _ = reported(listed, numbers=numbers)
    (table,) = re.findall(r'<table class="across">(.*?)</table>', text)
    assert [Page(row).text for row in re.findall(r"<tr>.*?</tr>", table)] == [
        "numberonetwo<three>",
        "the first123",
        "share of the secondby chance: none50%12.5%25%0%100%6.25%",
    ]


def test_shares_are_percentages(reported):
    """A share of all heads was "1", which is a number of heads, too."""
    shared = giving("shared", value=1.0, value_null=0.5625)
    _, page = reported(shared, numbers=[Number("value", "share of the heads", null="shuffled")])
    assert "share of the headsby chance: shuffled100%56.2%" in page.of("shared")


def test_what_a_section_says_at_first_sight_is_forty_words(page):
    """The others stand, word for word, where a summary is opened."""
    for name in set(registry.EXPERIMENTS) - OF_PAIRS:
        said = page.of(name, folded=False).partition("What it says")[2].partition("number")[0]
        assert passage.n_words(said) <= passage.MOST, name


@pytest.mark.parametrize("language, word", [("en", "word "), ("ja", "位置")])
def test_sentences_are_shown_whole_and_none_is_lost(language, word):
    dot = "." if language == "en" else "。"
    sentences = [f"{word * n}".strip().capitalize() + dot for n in (9, 25, 9)]
    text = (" " if language == "en" else "").join(sentences)
    shown, rest = passage.cut(text)
    assert shown == text[: len(shown)] and shown.endswith(sentences[1])
    assert rest == sentences[2] and passage.n_words(shown) <= passage.MOST
    assert passage.cut(f"{word * 41}".strip() + dot)[0] == ""
    assert passage.cut("R² is 0.5 (e.g. 1.5). 9 of 9.", 4) == ("", "R² is 0.5 (e.g. 1.5). 9 of 9.")


def test_numbers_are_written_for_people():
    texts = [wording.words(value) for value in (0.97123, 12.0, 1e-7, 3, [1, 2.5], [], "L0H0")]
    assert texts == ["0.971", "12", "1e-07", "3", "1, 2.5", "none", "L0H0"]


def test_hostile_texts_stay_texts(reported):
    """In a question, a name, an answer, a number's meaning, and beside links to the glossary."""
    hostile = {"name": HOSTILE, "answer": answers("yes", HOSTILE)}
    text, page = reported(good, numbers=[Fact("value", HOSTILE)], **hostile)
    assert "<img src=x" not in text and "<tame>" not in text
    assert not [tag for tag in page.tags if "onerror" in tag[1]]
    assert f"What {HOSTILE} computes" in page.text
    assert page.text.count(HOSTILE) >= 8


# runs that fail, and numbers of documents


def test_one_failure_does_not_lose_the_others(tmp_path, monkeypatch, capsys):
    plant(monkeypatch, bad, good)
    assert cli.main(["report", "tiny-roberta", "--out", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "failed: RuntimeError: something <broke>" in captured.out
    assert "1 of 2 experiments failed" in captured.err
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "1 of 2 experiments failed" in page.text and "! Failed" in page.of("answers")
    assert "This experiment failed: RuntimeError: something <broke>" in page.of("bad")
    assert "Left out: 1 experiment that failed." in page.text
    assert "<broke>" not in text and "<tame>" not in text  # escaped
    assert (tmp_path / "good.json").is_file() and len(page.all("src")) == 2


def test_a_result_that_is_not_finite_is_a_failure(tmp_path, monkeypatch, capsys):
    plant(monkeypatch, giving("infinite", value=float("nan")))
    assert cli.main(["report", "tiny-roberta", "--out", str(tmp_path)]) == 1
    assert "not JSON compliant" in capsys.readouterr().out


def test_what_a_model_cannot_show_is_left_out_and_no_failure(tmp_path, monkeypatch, capsys):
    plant(monkeypatch, unfit, good)
    assert cli.main(["report", "tiny-roberta", "--out", str(tmp_path)]) == 0
    assert "left out: no <head> here" in capsys.readouterr().out
    page = Page((tmp_path / "index.html").read_text("utf-8"))
    assert "Left out for this model: no <head> here" in page.text


@pytest.mark.parametrize("given, taken", [(1, 3), (2, 3), (3, 3), (5, 5), (0, 0)])
def test_a_number_of_documents_for_all_is_each_ones_minimum(
    tmp_path, monkeypatch, capsys, given, taken
):
    plant(monkeypatch, good, least_documents=3)
    command = ["report", "tiny-roberta", "--documents", str(given), "--tokens", "16"]
    assert cli.main([*command, "--out", str(tmp_path)]) == 0
    stated = json.loads((tmp_path / "good.json").read_text())["settings"]["options"]
    assert stated["documents"] == taken
    note = f"takes 3 documents, the fewest that it can use; {given} given for all"
    page = Page((tmp_path / "index.html").read_text("utf-8"))
    for text in (capsys.readouterr().out, page.of("good", folded=False)):
        assert (note in text) == (taken != given)


def test_a_partial_checkpoint_reads_no_text_and_takes_the_number_as_given(
    tmp_path, monkeypatch, bundled
):
    plant(monkeypatch, good, least_documents=3, weights_only=True)
    partial = SimpleNamespace(**vars(bundled) | {"missing": ("wte.weight",)})
    planted = registry.EXPERIMENTS.values()
    ((_, outcome, _),) = many.every(planted, partial, "m", {"documents": 1}, tmp_path)
    assert outcome.note == "" and outcome.settings["options"]["documents"] == 1


def test_a_short_text_or_model_is_no_failure(tmp_path, bundled):
    (tmp_path / "short.txt").write_text("He said that she had gone to the house by the sea. " * 30)
    listed = [registry.get(name) for name in ("lags", "joint-grid", "norms")]
    given = {"text": str(tmp_path / "short.txt")}
    runs = [*many.every(listed, bundled, "m", given, tmp_path)]
    short = replace(bundled, config=replace(bundled.config, n_ctx=12))
    listed = [registry.get(name) for name in ("shapes", "predict", "joint-space")]
    runs += many.every(listed, short, "m", {}, tmp_path)
    outcomes = {experiment.name: outcome for experiment, outcome, _ in runs}
    assert len(outcomes) == 6 and all(outcome.left_out for outcome in outcomes.values())
    assert "1 document of 256 tokens each; wanted 20" in outcomes["lags"].reason
    assert "tokens; this model reads at most 12" in outcomes["predict"].reason


def test_a_failure_says_too_that_it_took_more_documents(tmp_path, monkeypatch, capsys):
    def poor(model, run, *, documents: int = 20):
        """Fails."""
        raise ValueError(f"{documents} are not there")

    plant(monkeypatch, poor, least_documents=3)
    cli.main(["report", "tiny-roberta", "--documents", "1", "--out", str(tmp_path)])
    reason = "3 are not there (takes 3 documents, the fewest that it can use; 1 given for all)"
    assert f"failed: {reason}" in capsys.readouterr().out


NEEDY = [name for name, e in registry.EXPERIMENTS.items() if e.least_documents > 1]


def test_experiments_whose_minimum_was_raised_say_so(folder, page):
    needy = [name for name in NEEDY if registry.get(name).least_documents > 2]
    assert len(needy) >= 4
    stdout = (folder / "stdout").read_text()
    for name in needy:
        note = f"takes {registry.get(name).least_documents} documents"
        assert note in page.of(name)
        assert re.search(rf"^{name} .*{note}", stdout, re.M)


@pytest.mark.parametrize("name", NEEDY)
def test_no_fewer_documents_would_do(name, bundled):
    """The minimum is what the experiment asks for; that it is enough shows the page above."""
    experiment = registry.get(name)
    with pytest.raises(ValueError):
        experiment.run(bundled, documents=experiment.least_documents - 1, tokens=64)


# colours and small pictures


def test_the_page_follows_the_readers_colours():
    assert "prefers-color-scheme: dark" in report.STYLE
    assert "color-scheme: light dark" in report.STYLE


def test_a_thumbnail_is_small_has_no_words_or_ticks_and_is_the_same_every_time():
    def thumbnail(title, ticks=(0, 1)):
        with draw.style():
            figure = draw.figure(5, 3)
            axes = figure.subplots()
            axes.tick_params(labelsize=0)
            axes.set_xticks(ticks)
            axes.plot([0, 1, 0])
            axes.text(0.5, 0.5, title)
            draw.svg(figure)
            return draw.thumbnail(figure, 100)

    image = thumbnail("words")
    assert image == thumbnail("other words") == thumbnail("", ticks=(0, 1, 2))
    assert int.from_bytes(image[16:20], "big") <= 104  # PNG's width, with its rim


def test_axes_stand_on_a_grid_so_that_a_figure_is_the_same_bytes_every_time():
    """The solver of the layout gives last bits that vary from process to process."""
    with draw.style():
        figure = draw.figure(7, 6)
        above, below = figure.subfigures(2, 1, height_ratios=(1, 1.7))
        below.subplots()
        left, right = above.subplots(1, 2)
        left.set_ylabel("amplitude")
        figure.colorbar(right.imshow(np.eye(3)), ax=right)
        figure.legend(["a line"], loc="outside upper left")
        draw.svg(figure)
    parts = np.array([part.bbox_relative.get_points() for part in (above, below)])
    np.testing.assert_array_equal(parts, parts.round(draw.GRID))
    assert 0.5 < parts[1, 1, 1] < parts[0, 0, 1] < 0.7  # the lower one is higher
    places = np.array([axes.get_position(original=True).bounds for axes in figure.axes])
    np.testing.assert_allclose(places, places.round(draw.GRID), rtol=0, atol=1e-12)
    assert len(places) == 4 and (places[:, 2] > 0.01).all()


def test_a_thumbnail_shows_the_first_panel_of_a_few_and_all_of_many():
    """On 104 pixels a figure showed halves of its panels; small maps in a row are one picture."""

    def of(n, first):
        with draw.style():
            figure = draw.figure(8, 2)
            for k, axes in enumerate(figure.subplots(1, n, squeeze=False)[0]):
                axes.plot(first if k == 0 else [0, k % 3, 1])
            draw.svg(figure)
            return draw.thumbnail(figure, 100)

    few, many = (imread(io.BytesIO(of(n, [0, 1, 0]))).shape for n in (3, 9))
    assert few[1] < 2 * few[0] and many[1] > 3 * many[0]
    assert max(few) > 60 and of(3, [0, 1, 0]) != of(3, [1, 0, 1])


def test_a_thumbnail_shows_one_panel_of_a_figure_in_parts_without_legends():
    """Where axes stand was read in their part: a panel of each was shown, and marks of legends."""

    def of(parted, legend):
        with draw.style():
            figure = draw.figure(8, 4)
            above, below = figure.subfigures(2, 1)
            first = above.subplots()
            first.plot([0, 1, 0], label="a line")
            if legend:
                first.legend()
                above.legend(loc="outside upper right")
            if parted:
                below.subplots().plot([1, 0, 1])
            figure.set_layout_engine(None)
            draw.svg(figure)
            return draw.thumbnail(figure, 100)

    assert of(True, False) == of(False, False) == of(True, True)


def test_a_thumbnail_has_the_arrows_of_its_panel():
    """A graph of arrows was an empty picture of 62 by 3 pixels."""
    with draw.style():
        figure = draw.figure(4, 4)
        axes = figure.subplots()
        axes.annotate("", (0.9, 0.9), (0.1, 0.1), arrowprops={"arrowstyle": "-", "linewidth": 9})
        axes.set_axis_off()
        draw.svg(figure)
        image = imread(io.BytesIO(draw.thumbnail(figure, 100)))
    assert min(image.shape[:2]) > 40 and (image[..., :3] < 0.5).any(axis=-1).mean() > 0.05
