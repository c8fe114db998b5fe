"""The registry, texts, and every experiment on a trained bundle and on a random causal model."""

import errno
import json
import pkgutil
import re

import encoder_decoders
import numpy as np
import pytest
from analysis_models import gpt2
from matplotlib.legend import Legend
from matplotlib.text import Text

import minitx
from minitx import weights
from minitx.analysis import experiments
from minitx.analysis.contract import registry, verdict
from minitx.analysis.contract.numbers import null_of
from minitx.analysis.contract.options import AtLeast, Option
from minitx.analysis.drawing import draw
from minitx.analysis.machine import files, progress
from minitx.analysis.machine.files import write
from minitx.analysis.maths import profiles
from minitx.analysis.measures import heads
from minitx.analysis.running import passes, settings
from minitx.analysis.texts import corpus, formats

SMALL = {
    "alignment": {"pairs": "dates", "documents": 20},
    "positions": {"shuffles": 20, "documents": 2},
    "profiles": {"documents": 3},
    "attention": {"show": 8},
    "predict": {"sentence": "He went out of the room.", "guesses": 3},
    "rotation": {"gauge": 2, "compare": 2},
    "lags": {"documents": 3},
    "conditions": {"documents": 2},
    "sources": {"documents": 2},
    "kernel": {"documents": 3},
    "cca": {"documents": 6, "shuffles": 5},
    "models": {"others": "tiny-bert", "shuffles": 20},
    "residual": {"documents": 2, "tokens": 30, "tables": 2},
    "remove-positions": {"documents": 2},
    "relearn": {"documents": 8, "tokens": 48, "steps": 3},
    "attribution": {"documents": 2, "tokens": 12},
    "norms": {"documents": 6},
    "dial": {"documents": 3, "tokens": 32, "losses": 1},
    "chain": {"documents": 2, "tokens": 32},
    "notch": {"documents": 3, "tokens": 32, "bands": 3, "losses": 1},
    "scale-positions": {"documents": 3, "tokens": 24},
    "inject-positions": {"documents": 3, "tokens": 24},
    "shift": {"documents": 3, "tokens": 20, "steps": 3},
    "probe": {"documents": 6, "tokens": 32, "mask": "linear"},
    "mask-positions": {"documents": 3, "tokens": 24, "evaluations": 8},
    "queries-keys": {"head": "L0H1,L1H0"},
    "extraction": {"documents": 2},
    "components": {"documents": 3},
    "singular-values": {},
    "bases": {"documents": 4, "tokens": 30, "rotations": 20},
    "mechanisms": {"documents": 6, "tokens": 16, "every": 4},
    "reviews": {"documents": 60},
    "joint-grid": {"documents": 2, "tokens": 16},
    "joint-space": {"head": "L0H1,L1H2", "pairs": "sleeping:brown", "note": True},
    "parts": {},
    "shapes": {"sentence": "He went out."},
    "mixing": {"documents": 2, "show": 5},
    "slices": {"documents": 2},
    "projections": {"documents": 2},
    "attribute": {},
    "heads": {"texts": 4},
    "patch": {"n_pairs": 4},
    "paths": {"n_pairs": 4},
    "circuit": {"n_pairs": 4, "steps": 2, "random": 10},
}
EXACT = {"parts", "shapes", "mixing"}  # what answers their question is counted: no chance in it

# random weights leave too few heads with a direction
OF_CROSS = {"strongest", "strongest_shuffled"}  # in cross-attention alone
OF_A_PAIR = {"S", "target_vectors"}  # of an encoder-decoder's source and target
UNTOLD = {
    ("attention", "bundled"): OF_CROSS,
    ("attention", "causal"): OF_CROSS,
    ("rotation", "causal"): {
        "right",
        "gauge_peaks_directed",
        "gauge_directed",
        "one_offset_directed",
        "gauge_lapack_peaks_directed",
        "gauge_lapack_directed",
        "gauge_peaks_positions_directed",
        "gauge_positions_directed",
        "agree_directed",
        "lines_directed",
        "bands_directed",
        "right_by_basis",
        "filter_by_basis",
    },
    ("lags", "causal"): {"agree_directed", "agree_positions", "same_direction_directed"},
    ("kernel", "bundled"): {"error"},  # a table says nothing of the scores by itself
    ("kernel", "causal"): {"error"},
    ("mechanisms", "bundled"): {"without_fastest"},  # of rotary models alone
    ("mechanisms", "causal"): {"without_fastest"},
    ("scale-positions", "causal"): {"sharp"},
    ("inject-positions", "causal"): {"sharp"},
    ("shapes", "bundled"): OF_A_PAIR,
    ("shapes", "causal"): OF_A_PAIR,
    ("parts", "bundled"): {"step_cached", "step_whole", "step_output"},  # an encoder has no steps
    ("lags", "bundled"): {"same_direction_directed"},  # left or right: too few to tell by 99 %
}


def small(experiment):
    """Options with which an experiment takes seconds: those of SMALL, or few short documents."""
    few = {"documents": max(3, experiment.least_documents), "tokens": 24}
    names = {option.name for option in experiment.options}
    return SMALL.get(experiment.name, {key: n for key, n in few.items() if key in names})


@pytest.fixture(scope="module")
def outcomes(bundled, causal, tmp_path_factory):
    """(experiment, model) -> result, each computed when it is first asked for.

    Some are of other models.
    """
    random = minitx.load(encoder_decoders.bart(tmp_path_factory.mktemp("bart")))
    both = {"bundled": bundled, "causal": causal}
    others = {
        "alignment": {"bundled": minitx.load("tiny-bart"), "causal": random},
        "relearn": both | {"causal": minitx.load("tiny-bert")},  # of masked models alone
    }

    class Outcomes(dict):
        def __missing__(self, key):
            name, kind = key
            experiment = registry.get(name)
            self[key] = experiment.run(others.get(name, both)[kind], **small(experiment))
            return self[key]

    return Outcomes()


# registry


@pytest.mark.filterwarnings("ignore:Glyph")  # random weights guess bytes that no font has
@pytest.mark.parametrize("name", registry.EXPERIMENTS)
@pytest.mark.parametrize("kind", ["bundled", "causal"])
def test_every_experiment_returns_finite_named_arrays_and_draws_them(name, kind, outcomes):
    experiment = registry.get(name)
    result = outcomes[name, kind]
    arrays = {key: np.asarray(value) for key, value in result.items()}
    for key, array in arrays.items():
        assert array.dtype.kind in "biufU", key
        assert array.dtype.kind == "U" or np.isfinite(array).all(), key
    headline = registry.headline(experiment, arrays)
    missing = {number.name for number in experiment.numbers} - set(headline)
    assert missing <= UNTOLD.get((name, kind), set())
    assert any("null" in number for number in headline.values()) or name == "parts"
    for number in experiment.numbers:
        has_null = number.name not in headline or "null" in headline[number.name]
        assert has_null or not null_of(number), number
    json.dumps(headline, allow_nan=False)
    for key, number in headline.items():
        named = isinstance(number["value"], list) and not isinstance(number["value"][0], str)
        assert not named or len(number["labels"]) == len(number["value"]), key
    with draw.style():
        figure = experiment.draw(arrays)
        assert draw.svg(figure).endswith("</svg>\n")
        assert not cut_off(figure)
        assert not too_small(figure)


@pytest.mark.parametrize("name", registry.EXPERIMENTS)
@pytest.mark.parametrize("kind", ["bundled", "causal"])
def test_every_experiment_answers_its_question(name, kind, outcomes):
    """In a word, with one number beside its chance, in words that can be quoted alone."""
    experiment = registry.get(name)
    arrays = {key: np.asarray(value) for key, value in outcomes[name, kind].items()}
    kind, measure, value, chance = experiment.answer(arrays)
    assert kind in verdict.VERDICTS
    assert 10 < len(measure) <= 110
    assert not measure.endswith(".")
    assert re.search(r"\d", value)
    assert re.search(r"\d", chance) or (name in EXACT and not chance)
    assert len(value + chance) <= 60


def at_their_nulls(arrays):
    """The same result with every scalar, and list, at its null: nothing exceeds what chance gives.

    Nulls of other shapes, drawn several times for a value or once for several, stay.
    """
    equal = dict(arrays)
    for name, null in arrays.items():
        value = name.removesuffix("_null")
        if value == name or value not in arrays:
            continue
        if null.ndim and null.shape != arrays[value].shape:
            continue
        equal[value] = np.broadcast_to(null, arrays[value].shape).copy()
        interval = arrays.get(f"{value}_interval")
        if interval is not None:
            ends = equal[value][..., None] if interval.ndim > equal[value].ndim else equal[value]
            equal[f"{value}_interval"] = np.broadcast_to(ends, interval.shape).copy()
    return equal


@pytest.mark.parametrize("name", [name for name in registry.EXPERIMENTS if name not in EXACT])
@pytest.mark.parametrize("kind", ["bundled", "causal"])
def test_no_answer_is_positive_where_values_are_at_their_nulls(name, kind, outcomes):
    experiment = registry.get(name)
    arrays = {key: np.asarray(value) for key, value in outcomes[name, kind].items()}
    answer = experiment.answer(at_their_nulls(arrays))
    assert answer.verdict in ("no", "undecided"), answer


def test_what_is_not_about_the_model_says_so_in_its_question():
    words = {"architecture": "architecture", "method": "method", "table": "table"}
    for experiment in registry.EXPERIMENTS.values():
        if experiment.about != "model":
            assert words[experiment.about] in experiment.question, experiment.name


def too_small(figure, width=1000, least=11):
    """Words of a figure that are lower than `least` pixels where it is `width` pixels wide."""
    scale = width / (72 * figure.get_figwidth())
    shown = [
        text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()
    ]
    return [text.get_text() for text in shown if text.get_fontsize() * scale < least]


def cut_off(figure):
    """Words of a drawn figure that reach beyond its edges; in pixels, and a letter's rim may."""
    renderer = figure._get_renderer()
    left, bottom, right, top = figure.bbox.extents
    words = []
    of_legends = {text for legend in figure.findobj(Legend) for text in legend.get_texts()}
    for text in figure.findobj(Text):
        belongs = text.axes or text in of_legends
        if text.get_visible() and text.get_text().strip() and belongs:
            x, y, x_end, y_end = text.get_window_extent(renderer).extents
            if x < left - 1 or y < bottom - 1 or x_end > right + 1 or y_end > top + 1:
                words.append(text.get_text())
    return words


def test_words_beyond_the_edge_are_found():
    figure = draw.figure(3, 2)
    figure.subplots().set_title("a title that is far longer than its figure is wide " * 2)
    draw.svg(figure)
    assert [words[:7] for words in cut_off(figure)] == ["a title"]
    figure = draw.figure(3, 2)
    figure.subplots().plot([1], label="a legend that is far longer than its figure is wide " * 2)
    figure.legend(loc="outside lower center")
    draw.svg(figure)
    assert [words[:8] for words in cut_off(figure)] == ["a legend"]


@pytest.mark.parametrize("experiment", registry.EXPERIMENTS.values(), ids=lambda e: e.name)
def test_every_experiment_says_what_a_reader_needs(experiment):
    assert len(experiment.question.split()) > 3 and experiment.question.endswith("?")
    texts = experiment.look, experiment.published, experiment.summary
    for text in texts:
        assert re.fullmatch(r"[A-Z(`].{30,}[.)]", text, re.DOTALL), text
    assert len({*texts, experiment.question}) == 4  # none repeats another
    for number in experiment.numbers:
        for means in (number.means, null_of(number)):
            assert not re.search(r"\bthe same\b|likewise|as above|\bthese\b", means), means
    assert all(option.help for option in experiment.options)
    assert all(option.checked(option.default) == option.default for option in experiment.options)
    text = registry.markdown().replace("\n", " ")
    question = f" | {experiment.question} | " if experiment.figure else ""
    assert f"`{experiment.name}`{question}" in text


def test_every_file_of_experiments_is_on_the_list():
    files = {module.name for module in pkgutil.iter_modules(experiments.__path__)}
    files -= {name for name in files if name.startswith("_")}  # each serves one experiment
    assert files == set(experiments.IN_ORDER)
    assert files == {e.run.__module__.rpartition(".")[2] for e in registry.EXPERIMENTS.values()}


def test_an_unknown_experiment_suggests_the_near_ones():
    message = "experiment 'profile'; did you mean profiles.*there are: positions"
    with pytest.raises(ValueError, match=message):
        registry.get("profile")
    message = r"unknown experiment 'zzz' \(there are: positions, models"
    with pytest.raises(ValueError, match=message):
        registry.get("zzz")


def test_a_name_is_given_once():
    def predict(model):
        """Another one."""

    with pytest.raises(ValueError, match="there is already an experiment 'predict'"):
        registry.register(predict, question="Which?", draw=None)


def test_options_and_help_come_from_the_function():
    by_name = {option.name: option for option in registry.get("profiles").options}
    assert by_name["clusters"] == Option("clusters", int, 6, "number of clusters", range=AtLeast(1))
    names = ["text", "pairs", "documents", "tokens", "clustered", "clusters", "reach", "seed"]
    assert list(by_name) == names


# what the trained bundle shows


def test_the_bundle_has_position_heads(bundled):
    result = registry.get("profiles").run(bundled, documents=20)
    near = np.isin(result["best_offset"], (-2, -1, 1, 2))
    assert (result["best_attention"][near] > 0.5).sum() >= 2
    assert result["sharp"] > 20 * result["sharp_null"]
    assert result["n_sharp"] == len(result["sharp_heads"]) >= 2
    assert result["steady"] > 0.5 > result["steady_null"]  # measured 1 against 0
    assert result["steady_directed"] > 0.5 > result["steady_directed_null"]  # measured 1 against 0
    assert result["kept"] > result["kept_null"] + 0.2  # measured 1 against 0.62
    assert registry.get("profiles").answer(result).verdict == "yes"


def test_what_stays_on_shuffled_words_need_not_be_the_work_of_positions(bundled):
    result = registry.get("profiles").run(bundled, documents=8)
    place = (1, 3, 11)  # L1H3 at +1
    on_text, shuffled, alone = (
        result[f"attention{name}"][place] for name in ("", "_shuffled", "_positions")
    )
    assert min(on_text, shuffled) > 0.4  # measured 0.52 and 0.51
    assert alone < 0.02  # measured 0.006
    assert result["offset_shuffled"] == 1
    assert result["directed_positions"].nonzero()[0].tolist() == [0, 0, 0, 0]  # the first layer
    assert result["offset_positions"] == pytest.approx(4 / result["n_directed"])
    # words at zero in the forward pass
    no_words = {"embed": np.zeros_like}
    trace = minitx.run(bundled, "a " * 60, keep=[("pattern", 1)], edits=no_words)
    T = trace["pattern", 1].shape[-1]
    result = registry.get("profiles").run(bundled, documents=8, tokens=T)
    own = profiles.profile(trace["pattern", 1][0])
    assert np.abs(result["profiles_positions"][1] - own).max() < 1e-5 * T


def test_documents_of_a_head_are_counted_in_one_or_two_clusters():
    frequencies = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.01, 0.01, 0.98], [0.95, 0.05, 0]])
    directed = np.array([True, False, True, False])
    steady, of_directed, few = experiments.profiles._steady(frequencies, directed)
    assert (steady, of_directed, few) == (0.75, 1, 0.75)


def test_the_documents_of_each_head_of_the_bundle_fall_into_one_or_two_of_six_clusters(bundled):
    result = registry.get("profiles").run(bundled, documents=20)
    assert result["few"] == 1 > result["few_null"] + 0.5  # measured 1 against 0
    assert "100% have all of their documents in one or two of the 6" in registry.get(
        "profiles"
    ).says(result)
    two = registry.get("profiles").run(bundled, documents=2, clusters=2)
    assert "few" not in two  # all would


def test_scores_before_the_mask_are_those_of_the_trace_and_of_what_it_hides(causal):
    """Up to a constant for each query; hidden ones come from q and k, the trace has -inf there."""
    trace = minitx.run(causal, "a " * 20, keep=["q", "k", "scores"])
    for layer in range(causal.config.n_layers):
        q, k, scores = (trace[name, layer][0] for name in ("q", "k", "scores"))
        own = heads.scores_before_mask(q, k, causal.config.attn_scale(layer))
        visible = np.tri(q.shape[1], dtype=bool)
        assert np.isfinite(own).all()
        assert np.isneginf(scores[:, ~visible]).all()
        difference = np.where(visible, own - np.where(visible, scores, 0), np.nan)
        spread = np.nanmax(difference, axis=-1) - np.nanmin(difference, axis=-1)
        assert spread.max() < 1e-5  # float32: measured 1e-6
        assert np.abs(own.mean(axis=-1)).max() < 1e-5


def test_scores_are_clustered_as_they_are_before_the_mask():
    """In tiny-gpt2 they go on behind the query, where the mask hides them all."""
    model = minitx.load(weights.find("tiny-gpt2"))
    run = registry.get("profiles").run
    result = run(model, documents=3, clustered="scores", clusters=2, reach=30)
    assert result["centres"].shape == (2, 61)
    assert result["cluster_names"].tolist() == ["highest at -1", "highest at 0"]
    of_attention = run(model, documents=3, reach=30)
    assert np.array_equal(result["profiles"], of_attention["profiles"])
    assert np.array_equal(result["directed"], of_attention["directed"])
    behind = result["offsets"] > 0
    assert not result["profiles"][..., behind].any()
    assert (np.abs(result["centres"][:, behind]) > 0.01).all()
    document = corpus.documents(model, "sample", 3).first()[0]
    trace = minitx.run(model, document, keep=["q", "k"])
    _, both = passes.value(heads.score_profiles_read(model, document, reach=30))
    q, k = trace["q", 2][0].astype(float), trace["k", 2][0].astype(float)
    scores = q @ k.swapaxes(1, 2) * model.config.attn_scale(2)
    centred = scores - scores.mean(axis=2, keepdims=True)
    direct = [np.trace(centred, t, axis1=1, axis2=2) for t in range(-30, 31)]
    assert np.abs(both[2] - np.transpose(direct)).max() < 0.01  # sums of 256 of about 10 in float32
    with draw.style():
        registry.get("profiles").draw({key: np.asarray(value) for key, value in result.items()})


def test_the_bundles_positions_are_waves(bundled):
    result = registry.get("positions").run(bundled)
    assert result["peak_at"] == 89
    assert result["peak"] > 1.3 * result["peak_null"]  # measured 1.41 times
    assert result["words_peak"] < 1.05 * result["words_peak_null"]  # measured 1.003 times
    assert result["explained_12"] > result["explained_12_null"]


def test_the_bundle_guesses_better_than_frequencies(outcomes):
    result = outcomes["predict", "bundled"]
    assert result["loss"] < result["loss_null"] - 1  # nats


# experiments


def test_an_offset_that_has_lost_its_attention_is_not_kept():
    """Most attention may still be there by chance: a direction is more than that."""
    on_text, uniform = np.full((2, 1, 4, 21), 0.01)
    for head, place in enumerate((9, 11, 8, 12)):
        on_text[0, head, place] = 0.9
        uniform[0, head, place] = 0.0101
    result = {"best_offset": profiles.offsets()[on_text.argmax(axis=2)]}
    under = {"": on_text, "_shuffled": on_text, "_repeated": uniform, "_positions": uniform}
    for name, attention in under.items():
        result |= {f"attention{name}": attention, f"directed{name}": attention.max(axis=2) > 0.5}
    kept = experiments.profiles._kept_offsets(result, 0)
    assert (kept["offset_shuffled"], kept["offset_positions"]) == (1, 0)


def test_positions_reads_only_rows_that_a_token_can_reach(bundled, outcomes):
    cfg = bundled.config
    result = outcomes["positions", "bundled"]
    assert result["T"] == cfg.n_ctx == len(bundled.weights.W_pos) - cfg.offset
    rows = bundled.weights.W_pos[cfg.offset :].astype(np.float64)
    direct = np.abs(np.fft.rfft(rows, axis=0)).mean(axis=1)
    difference = np.abs(result["position_mean"] - direct).max() / direct.max()
    assert difference < 1e-5  # float32 input: measured 1.1e-7


def test_positions_are_compared_with_the_largest_of_each_shuffle(outcomes):
    result = outcomes["positions", "bundled"]
    assert len(result["shuffled_largest"]) == SMALL["positions"]["shuffles"]
    assert result["amplitude_null"] == np.quantile(result["shuffled_largest"], 0.99)
    assert result["amplitude_null"] > 0.9 * result["shuffled_largest"].max()


def test_profiles_are_those_of_the_recorded_patterns(causal, outcomes):
    result = outcomes["profiles", "causal"]
    tokens = corpus.documents(causal, "sample", 3).first(3)
    pattern = minitx.run(causal, tokens, keep=["pattern"]).stack("pattern")  # [L N H T T]
    kept = profiles.profile(pattern).swapaxes(0, 1)
    assert np.abs(result["profiles"] - kept).max() < 1e-5  # stored as float32: measured 9e-7
    assert result["shares"].sum(axis=2) == pytest.approx(1)
    assert not result["attention"][..., 11:].any()  # nothing to the right


def test_attention_shows_the_heads_asked_for(bundled):
    result = registry.get("attention").run(bundled, head="L1H2, L0H0", show=5)
    assert result["heads"].tolist() == ["L1H2", "L0H0"]
    tokens = corpus.documents(bundled, "sample", 1).first()
    trace = minitx.run(bundled, tokens, keep=["pattern"])
    assert np.array_equal(result["pattern"][0], trace["pattern", 1][0, 2, :5, :5])
    assert result["pieces"].tolist() == bundled.tokenizer.pieces(tokens[0, :5])


def test_predict_hides_one_token_at_a_time(bundled, outcomes):
    result = outcomes["predict", "bundled"]
    tokens = bundled.tokenizer.encode(SMALL["predict"]["sentence"])
    mask = bundled.tokenizer.encode("<mask>", special=False)[0]
    before, after = corpus.specials(bundled)
    place = len(before) + 3
    masked = np.where(np.arange(len(tokens)) == place, mask, tokens)
    y = minitx.run(bundled, masked, keep=["logits"])["logits"][0, place].astype(float)
    p = np.exp(y - y.max()) / np.exp(y - y.max()).sum()
    assert len(result["here"]) == len(tokens) - len(before) - len(after)
    assert result["truth_probability"][3] == pytest.approx(p[tokens[place]], rel=1e-5)  # measured 0
    assert result["truth_rank"][3] == 1 + (p > p[tokens[place]]).sum()
    assert result["guess_id"][3].tolist() == np.argsort(-p)[:3].tolist()


@pytest.mark.parametrize("mask", ["<mask>", "[MASK]"])
def test_predict_fills_only_the_masks_in_a_sentence(bundled, mask):
    sentence = f"He went {mask} of the room, and {mask} shut."
    result = registry.get("predict").run(bundled, sentence=sentence)
    assert result["here"].tolist() == ["<mask>", "<mask>"]
    assert "loss" not in result
    assert (result["truth_id"] == -1).all()
    with draw.style():
        registry.get("predict").draw({key: np.asarray(value) for key, value in result.items()})


def test_predict_of_a_causal_model_sees_only_what_stands_before(causal, outcomes):
    shorter = registry.get("predict").run(causal, sentence="He went out of", guesses=3)
    longer = outcomes["predict", "causal"]
    n = len(shorter["here"])
    y = minitx.run(causal, "He went out of", keep=["logits"])["logits"][0].astype(float)
    p = np.exp(y) / np.exp(y).sum(axis=1, keepdims=True)
    truth = causal.tokenizer.encode("He went out of")[1:]
    # measured 2e-15
    assert shorter["truth_probability"] == pytest.approx(p[np.arange(n), truth], rel=1e-9)
    assert longer["here"][:n].tolist() == shorter["here"].tolist()
    difference = longer["truth_probability"][:n] - shorter["truth_probability"]
    assert np.abs(difference).max() < 1e-7  # float32 logits of another length: measured 4e-10


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("positions", {"text": "/nowhere.txt"}, "no text file '/nowhere.txt'"),
        ("profiles", {"documents": -1}, "--documents is -1; wanted 1 or more"),
        (
            "profiles",
            {"documents": 10**6},
            r"'sample' has \d+ tokens, \d+ documents of 256 tokens each; wanted 1000000",
        ),
        (
            "profiles",
            {"tokens": 257},
            "--tokens 257: this model reads 4 to 256 tokens, special tokens included",
        ),
        ("profiles", {"tokens": 1}, "--tokens 1: this model reads 4 to 256 tokens"),
        (
            "profiles",
            {"documents": 1, "clusters": 99},
            "1 documents x 16 heads are too few for --clusters 99",
        ),
        ("profiles", {"reach": 256}, "--reach is 256; wanted 1 to 255"),
        ("attention", {"head": "L9H0"}, "'L9H0' is no head of this model: wanted L0H0 to L3H3"),
        (
            "attention",
            {"head": "L0H0,L0H4"},
            "'L0H4' is no head of this model: wanted L0H0 to L3H3",
        ),
        ("attention", {"head": "3,1"}, "'3' is no head of this model"),
        ("predict", {"sentence": ""}, "--sentence '' has no token to guess"),
    ],
)
def test_bad_options_are_noticed(bundled, name, options, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        registry.get(name).run(bundled, **options)


def test_predict_needs_a_language_model_head(tmp_path):
    message = "predict needs a masked or causal language model; .* head is None"
    with pytest.raises(ValueError, match=message):
        registry.get("predict").run(minitx.load(gpt2(tmp_path, head=False)))


def test_a_causal_model_has_no_masks_to_fill(causal):
    message = "has a mask, but a causal model only guesses the next token"
    with pytest.raises(ValueError, match=message):
        registry.get("predict").run(causal, sentence="He <mask> out.")


# results, drawing, progress


def test_settings_name_everything_that_the_numbers_depend_on(bundled):
    stated = settings.of_run(registry.get("profiles"), bundled, "tiny-roberta", {"documents": 7})
    folder = weights.find("tiny-roberta")
    assert stated["weights"] == {"model.safetensors": formats.sha256(folder / "model.safetensors")}
    options = {"text": "sample", "documents": 7, "tokens": 0, "clusters": 6, "seed": 0}
    options |= {"clustered": "attention", "reach": 10, "pairs": ""}
    assert stated["options"] == options
    digest = formats.sha256(formats.SAMPLE)
    assert stated["text"] == {"name": "sample.txt", "files": 1, "sha256": digest}
    assert stated["versions"]["numpy"] == np.__version__
    assert stated["model"] == "tiny-roberta"
    assert stated["revision"] is None


def test_a_download_is_named_by_its_commit(tmp_path):
    assert settings.revision(tmp_path / "snapshots" / "abc123") == "abc123"


def test_a_failed_write_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    write(path, "old")

    def replace(*_):
        raise OSError(errno.EIO, "disk gone")

    monkeypatch.setattr(files.os, "replace", replace)
    with pytest.raises(OSError, match="disk gone"):
        write(path, "new")
    assert path.read_text() == "old"


def test_svg_does_not_depend_on_the_layout_solvers_last_bits():
    svg = (
        '<path d="M -0 1.5 L 3 -0" clip-path="url(#p0123456789)"/><text>-0</text>'
        '<use href="#C0_1_aaaaaaaaaa"/><clipPath id="p0123456789"/>'
        '<path id="C0_1_aaaaaaaaaa" d="L -0.5 0"/>'
    )
    other = svg.replace("-0 ", "0 ")
    other = other.replace("0123456789", "9876543210").replace("aaaaaaaaaa", "bbbbbbbbbb")
    assert draw.settled(svg) == draw.settled(other)
    assert draw.settled(svg) == (
        '<path d="M 0 1.5 L 3 0" clip-path="url(#p0)"/><text>-0</text>'
        '<use href="#C0_1_1"/><clipPath id="p0"/><path id="C0_1_1" d="L -0.5 0"/>'
    )


def test_labels_make_blanks_visible():
    assert [draw.label(piece) for piece in (" a", "\n", "", "b")] == ["␣a", "⏎", "∅", "b"]
    assert [draw.offset(t) for t in (-1, 0, 2)] == ["-1", "0", "+2"]


def test_pieces_with_dollars_are_no_formulas():
    with draw.style():
        figure = draw.figure(2, 2)
        axes = figure.subplots()
        axes.set_xticks(range(3), [draw.label(piece) for piece in ("$$", "$", "$x^2$")])
        texts = re.findall(r"<text[^>]*>(.*?)</text>", draw.svg(figure))
    assert {"$$", "$", "$x^2$"} <= set(texts)


def test_scripts_without_a_glyph_are_drawn_without_a_warning(recwarn):
    with draw.style():
        figure = draw.figure(2, 2)
        figure.subplots().set_title("東北")
        assert "東北" in draw.svg(figure)
    assert not [w for w in recwarn if "Glyph" in str(w.message)]


def test_progress_shows_rate_and_time_left(capsys, monkeypatch):
    assert progress.describe("documents", 20, 100, 0.2) == "documents 20/100, 5 a second, 16 s left"
    with progress.Line("letters", 3) as line:
        line.update(1)
    assert capsys.readouterr().err == ""  # no terminal, no noise
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "SHOWN_EVERY", -1)
    with pytest.raises(ZeroDivisionError), progress.Line("letters", 8, before=6) as line:
        line.start -= 10  # so long ago, for the one that was done since
        line.update(7)
        raise ZeroDivisionError
    shown = capsys.readouterr().err
    assert "letters 7/8, 0.1 a second, 10 s left" in shown
    assert shown.endswith("\x1b[K")  # the line is gone before a message comes


def test_one_function_is_enough(monkeypatch):
    """Question and drawing are all that an experiment must give."""
    monkeypatch.setattr(registry, "EXPERIMENTS", {})

    def layers(model, run=None, *, times: int = 2):
        return {"layers": np.array(times * model.config.n_layers)}

    experiment = registry.register(layers, question="How many layers?", draw=None)
    assert experiment is registry.get("layers")
    assert experiment.summary == "How many layers?"
    assert experiment.options == (Option("times", int, 2),)
    assert registry.headline(experiment, {"layers": np.array(4)}) == {}
