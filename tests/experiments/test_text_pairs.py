"""Two texts that are read together, in each experiment that reads a text: ids, types, border."""

import json

import numpy as np
import pytest
from scipy.special import log_softmax

import minitx
from minitx import analysis
from minitx.analysis import __main__ as cli
from minitx.analysis.drawing import draw
from minitx.analysis.live import runs
from minitx.analysis.pages import explore
from minitx.analysis.texts import joined, words

PAIR = "The old man gave her a book.", "She thanked him."
MASK = {"tiny-bert": "[MASK]", "tiny-roberta": "<mask>"}
MODELS = "tiny-bert", "tiny-roberta", "tiny-gpt2"


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return minitx.load(request.param)


def passed(model, keep):
    """A pass over the pair, which is the reference's (tests/core), and its token types."""
    return minitx.run(model, [PAIR], keep), model.encode([PAIR]).types


def first_of_second(model):
    return joined.encoding(model, PAIR).second


def test_attention_is_that_of_the_pair(model):
    result = analysis.run("attention", model, source=PAIR, head="L0H0,L2H1", show=64).arrays
    trace, types = passed(model, "pattern")
    expected = np.array([trace["pattern", 0][0, 0], trace["pattern", 2][0, 1]])
    assert np.array_equal(result["pattern"], expected)
    assert result["second"] == first_of_second(model)
    if types is not None and model.config.n_types > 1:
        alone = minitx.run(model, trace.tokens[0], ("pattern", 0))["pattern", 0][0, 0]
        assert types.max() == 1 and abs(result["pattern"][0] - alone).max() > 0.01


def test_predictions_are_those_of_the_pair_and_separators_are_not_predicted(model):
    result = analysis.run("predict", model, sentence=PAIR).arrays
    text = joined.encoding(model, PAIR)
    if model.config.causal:
        places = np.arange(1, len(text.ids))
        y = minitx.run(model, [PAIR], "logits")["logits"][0, :-1]
    else:
        places = np.flatnonzero(text.sequences >= 0)
        mask = minitx.circuits.measure.mask_id(model.tokenizer)
        rows = np.tile(text.ids, (len(places), 1))
        rows[range(len(rows)), places] = mask
        types = None if text.types is None else np.tile(text.types, (len(rows), 1))
        y = minitx.run(model, rows, "logits", types=types)["logits"]
        y = y[range(len(rows)), places]
    logp = log_softmax(y.astype(float), axis=-1)[range(len(places)), text.ids[places]]
    assert result["truth_id"].tolist() == text.ids[places].tolist()
    assert np.allclose(np.log(result["truth_probability"]), logp, atol=1e-4)  # measured: 2e-5
    assert places[result["second"]] == text.second


def test_shapes_and_masks_and_attributions_are_of_the_pair(model):
    text = joined.encoding(model, PAIR)
    shapes = analysis.run("shapes", model, sentence=PAIR).arrays
    assert shapes["T"] == len(text.ids)
    how = {"documents": 4, "evaluations": 0, "positions": "kept"}
    shown = analysis.run("mask-positions", model, sentence=PAIR, **how).arrays["unmasked"]
    text = text.cut(len(shown))
    trace = minitx.run(model, text.ids, ("pattern", 0), **text.options)
    expected = trace["pattern", 0][0].mean(axis=0)
    assert np.allclose(shown, expected, atol=1e-7)
    first = PAIR[0].replace("her", MASK.get(model.tokenizer.folder.name, "her"))
    result = analysis.run("attribute", model, prompt=(first, PAIR[1])).arrays
    y = minitx.run(model, [(first, PAIR[1])], "logits")["logits"][0]
    asked = -1
    if not model.config.causal:
        ids = joined.encoding(model, (first, PAIR[1])).ids
        asked = ids.tolist().index(minitx.circuits.measure.mask_id(model.tokenizer))
    assert result["logit"] == pytest.approx(y[asked].max(), abs=1e-4)


def lines(axes):
    """Where lines of a border's colour stand on the x axis."""
    drawn = [line for line in axes.lines if line.get_color() == draw.ORANGE]
    return [line.get_xdata()[0] for line in drawn if line.get_ydata() == [0, 1]]


def test_figures_show_where_the_second_text_begins(model):
    pair = ("She gave it.", PAIR[1])
    second = joined.encoding(model, pair).second
    how = {"documents": 4, "evaluations": 0, "positions": "kept"}
    figure = analysis.run("mask-positions", model, sentence=pair, **how).figure()
    assert [lines(axes) for axes in figure.axes[1:4]] == 3 * [[second - 0.5]]
    prompt = (pair[0].replace("it", MASK.get(model.tokenizer.folder.name, "it")), pair[1])
    figure = analysis.run("attribute", model, prompt=prompt).figure()
    of_prompt = joined.encoding(model, prompt)
    assert [lines(axes) for axes in figure.axes if lines(axes)] == [[of_prompt.second - 0.5]]
    pieces = analysis.run("shapes", model, sentence=pair).arrays["meanings"][1]
    begins = draw.label(model.tokenizer.pieces(joined.encoding(model, pair).ids)[second])
    assert pieces.split(" | ")[1].startswith(begins)
    axes = analysis.run("joint-space", model, sentence=pair, head="L1H1").figure().axes
    hollow = [x for part in axes for x in part.lines if x.get_markerfacecolor() == "white"]
    n = len(joined.encoding(model, pair).ids) - second
    assert [len(points.get_xdata()) for points in hollow] == 4 * [n]  # q and k, before and after


def test_the_joint_space_is_of_the_pair_and_no_word_goes_over_the_border(model):
    result = analysis.run("joint-space", model, sentence=PAIR, words=True, head="L1H1").arrays
    second = first_of_second(model)
    trace, _ = passed(model, ("pattern", 1))
    text = joined.encoding(model, PAIR)
    number = words.numbers(text.ids, model.tokenizer.decode, second)
    assert number[second] == number[second - 1] + 1
    pattern = trace["pattern", 1][0, 1]
    empty = np.zeros((len(pattern), 1))
    expected, _, _ = words.merged(pattern, empty, empty, number)
    assert np.allclose(result["pattern"][0], expected, atol=1e-6)


WORDS = "The", "grandmother", "thanked", "him-self."


def test_words_that_are_cut_already_are_read_alone_and_shown_whole(model):
    """As is_split_into_words does; in the view of whole words each is the word that was given."""
    text = joined.Words(" ".join(WORDS))
    expected = model.encode([[*WORDS]], is_split_into_words=True).tokens[0]
    cut = joined.encoding(model, text)
    assert cut.ids.tolist() == expected.tolist() and cut.types is None
    own = model.tokenizer.word_numbers(WORDS)
    assert len({*cut.words.tolist()}) == 4 + (own < 0).sum() == cut.words[-1] + 1
    assert all(len({*cut.words[own == i].tolist()}) == 1 for i in range(4))
    [run] = explore.runs([(model, "it", text)], words=True)
    labels = run["labels"][1:5] if own[0] < 0 else run["labels"]
    assert [label.lower().replace("␣", "") for label in labels] == [x.lower() for x in WORDS]
    pair = joined.Words("New-York is big"), joined.Words("He ran")
    both = joined.encoding(model, pair)
    lists = tuple(part.split() for part in pair)
    assert both.ids.tolist() == model.encode([lists], is_split_into_words=True).tokens[0].tolist()
    assert both.words[both.second] == both.words[both.second - 1] + 1
    assert len({*both.words[both.sequences >= 0].tolist()}) == 5


def test_the_live_page_reads_words_that_are_cut_already():
    runs_of = runs.Runs({"tiny-bert": minitx.load("tiny-bert")}, split=True)
    model = runs_of.models["tiny-bert"]
    asked = runs_of.request({"text": " ".join(WORDS)})
    expected = model.encode([[*WORDS]], is_split_into_words=True).tokens[0]
    assert runs_of.tokens(asked).ids.tolist() == expected.tolist()
    code = runs_of.code(asked)
    assert f"tokens = model.tokenizer.encode({[*WORDS]})" in code
    pair = runs_of.request({"text": "The dog", "second": "It ran"})
    expected = (
        f"types = model.encode([({['The', 'dog']}, {['It', 'ran']})], is_split_into_words=True)"
    )
    assert expected in runs_of.code(pair)


def test_a_pair_is_typed_with_second(tmp_path, capsys):
    out = ["--out", str(tmp_path)]
    first, second = PAIR
    command = ["run", "attention", "tiny-bert", "--source", first, "--second", second]
    assert cli.main([*command, *out]) == 0
    stated = json.loads((tmp_path / "attention.json").read_text())["settings"]
    assert stated["options"]["source"] == [first, second]
    (tmp_path / "t.csv").write_text("n,body\n1,The dog ran\n")
    command = ["attribute", "tiny-gpt2", str(tmp_path / "t.csv"), "--column", "body"]
    assert cli.main([*command, "--second", second, *out]) == 0
    stated = json.loads((tmp_path / "attribute.json").read_text())["settings"]
    assert stated["options"]["prompt"] == ["The dog ran", second]
    capsys.readouterr()
    assert cli.main(["run", "predict", "tiny-bert", "--second", second, *out]) == 2
    message = "--second is read together with --sentence, which is not given"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [(*PAIR, "three"), ("one", 2), ["one"]])
def test_other_than_two_texts_are_no_pair(wrong):
    with pytest.raises(ValueError, match="wanted a str, or a tuple of two"):
        analysis.run("predict", "tiny-bert", sentence=wrong)
