"""Every experiment and command on every family and odd shape: an answer, or a sentence why not.

A part of these cells is tried (PART), and those that have failed (FAILED); with MINITX_CELLS=all in
the environment every cell of every golden folder is, and figures are drawn. Models of families are
found in tests/golden; odd shapes are made in tools/odd.py.
"""

import linecache
import os
import re
import tempfile
import traceback
import warnings
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import odd
import pytest

import minitx
from minitx import analysis, circuits
from minitx.analysis import atlas
from minitx.analysis.contract import registry, sides
from minitx.analysis.maths import profiles
from minitx.analysis.measures import losses, mean_kernel, scanning
from minitx.analysis.pages import compare
from minitx.analysis.pages import explore as explore_page
from minitx.analysis.pages import scan as scan_page
from minitx.analysis.parity import models as parity
from minitx.analysis.parity import record
from minitx.analysis.running import stream
from minitx.analysis.texts import corpus, formats

ROOT = Path(__file__).parents[1]
SENTENCE = re.compile(r"[^\n]{15,450}[\w)'\"%.…=]")
TWO = "documents shuffles compare losses tables n_pairs steps texts gauge guesses"
FEW = dict.fromkeys(TWO.split(), 2) | {"edges": 3, "evaluations": 8, "random": 10, "rotations": 20}
FEW |= {"others": "tiny-induction", "sentence": "w1 w2 w3 w1 w2"}
LARGEST = 1e30  # number that a model of such sizes could give: beyond it, one divided by nothing
ALL = os.environ.get("MINITX_CELLS") == "all"
PART = 6  # one cell in so many is tried where not all are
FAILED = {  # cells that once ended in NumPy's words, or Python's, or in NaN
    **dict.fromkeys(
        ("llama-grouped", "gpt2: grouped keys", "gpt2: one key head"),
        "components singular-values bases mask-positions mixing projections residual explore",
    ),
    **dict.fromkeys(("qwen3-norms", "olmo2-biases", "gemma2-uncapped", "gemma3-all"), "parts"),
    "gpt2: pruned head": "bases rotation profiles singular-values heads projections compare",
    "roberta: pruned head": "bases rotation profiles",
    "gpt2: 40 positions": "heads",
    "deberta-masked": "verify",
    "opt-biasless": "sources residual",
    "bert-masked": "relearn",
    "smollm3-fourth": "sources kernel rotation",
    "smollm3-listed": "rotation",
    "bert-sequence-one": "explore",
    "gpt_neo-local": "patch paths circuit",
    "marian-separate": "patch circuit",
    "clip-texts": "explore",
}


def run(name, side, model, texts):
    """An experiment with few documents; its words and its numbers are there.

    Nothing is asked that a user could have asked wrongly: where it refuses, the model lacks what it
    needs, and a report leaves it out rather than fail.
    """
    experiment = registry.of_model(analysis.EXPERIMENTS[name], model)
    names = {option.name for option in experiment.options}
    few = FEW | {"documents": max(2, experiment.least_documents)}
    few |= {"ids": texts} if model.config.picture is None else {"text": texts}
    if experiment.reads_texts:
        names |= {"ids"} if model.config.picture is None else {"text"}
    if model.config.n_ctx > 64 and model.config.picture is None:
        few["tokens"] = 24
    if name == "mechanisms":
        names -= {"others"}
    if name == "attribute" and model.encoder and model.config.task_head == "sequence":
        few["prompt"] = "w1 w2 w3"  # ids 1 and 2 among them: a head may read the end token
    given = {key: few[key] for key in few.keys() & names} | ({"side": side} if side else {})
    try:
        result = analysis.run(name, model, **given)
    except registry.LACKING:
        raise
    except ValueError as error:
        raise AssertionError(f"a report fails: {error}") from None
    assert result.says
    if ALL:
        result.figure()
    return result.arrays


def ids_of(model):
    """What a model reads in one pass: a few ids, one of them the mask, or the rows of a picture."""
    if model.config.picture is not None:
        picture = model.config.picture
        pixels = np.random.default_rng(0).uniform(0, 1, (*picture.size, picture.channels))
        return model.encode(images=[pixels.astype(np.float32)]).tokens[0]
    is_masked = model.config.task_head == "masked"
    return [1, 2, 3, model.config.n_vocab - 1 if is_masked else 1]


def with_source(model):
    """What an encoder-decoder takes beside."""
    return {} if model.encoder is None else {"source": [2, 3, 4]}


def explore(model, texts, attribution=False):
    """The page of one text, or picture."""
    text = "w1 w2 w3 w1 w2 w4" if model.config.picture is None else str(next(texts.iterdir()))
    return {"runs": len(explore_page.runs([(model, "it", text)], attribution=attribution))}


def trace(model, texts):
    """All points, and their cost beforehand."""
    ids, source = ids_of(model), with_source(model)
    assert minitx.cost(model, ids, **source) > 0
    return {str(key): x for key, x in minitx.run(model, ids, **source).items()}


def draw_atlas(model, texts):
    """The atlas of a few sentences, or pictures."""
    text = formats.of(texts, is_ids=model.config.picture is None)
    return {"sides": len(atlas.compute(model, text, atlas.How(sentences=3)).sides)}


def attribute(model, texts):
    """The parts of a logit."""
    table = circuits.logit_attribution(model, ids_of(model), 1, **with_source(model))
    return {"logits": table.logits, "null": table.null}


def compared(model, texts):
    """Heads of a model beside themselves."""
    experiment, reader = analysis.EXPERIMENTS["heads"], sides.reader(model)
    shape = reader.config.n_layers, reader.config.n_heads
    both = [compare.per_head(experiment, run("heads", "", reader, texts), shape)] * 2
    measures = compare.differences(experiment, both)
    return {name: values[2]["change"] for name, values in measures.items()}


def scanned(model, texts):
    """One prompt from every side."""
    text = "w1 w2 w3 w1 w2"
    if model.config.task_head == "masked":
        [mask] = model.tokenizer.pieces([losses.mask_token(model.tokenizer)])
        text += f" {mask} w4"
    scanned = scanning.scan(model, text)
    attributed = analysis.run("attribute", model, prompt=text)
    scan_page.page(model, "it", text, scanned, attributed)
    return {"reached": scanned.reached, "added": scanned.added.integrated}


def verified(model, texts):
    """A model beside itself."""
    text = "sample" if model.config.picture else formats.of(texts, is_ids=True)
    assert parity.verify(model, model, text, texts=2, tokens=8)[0].agrees
    return {}


def recorded(model, texts):
    """What the reference library computes of a folder, where it is installed."""
    return {"n": record.make(odd.folders()["llama-grouped"], texts.parent / "r.safetensors")[1]}


def steered(model, texts):
    """A direction between two kinds of texts, added to the stream."""
    v = minitx.steering_vector(model, [[1, 2], [2, 3]], [[3, 1], [2, 1]], layer=0)
    trace = minitx.run(model, [1, 2, 3], "resid_post", minitx.steer(v))
    return {"share": v.share, "null": v.null, "stream": trace.stack("resid_post")}


def probed(model, texts):
    """A probe of the first layer's neurons, and examples of one of them."""
    rows = [[i % 5 + 1, i % 3 + 1, i % 2 + 1] for i in range(16)]
    probe = minitx.fit_probe(model, rows, [row[-1] for row in rows], at=("post", 0))
    examples = minitx.top_examples(model, rows, ("post", 0), 0, n=2)
    return {"direction": probe.direction, "values": examples.values, "null": examples.null}


def collected(model, texts):
    """The stream and the heads of a few texts on disk."""
    with tempfile.TemporaryDirectory() as folder:
        collection = minitx.collect(model, [[1, 2], [3, 1, 2]], ["resid_post", "z"], folder)
        return {name: np.array(collection._mapped(name)) for name in collection.keys}


COMMANDS = {
    "steer": steered,
    "probe and examples": probed,
    "collect": collected,
    "explore": explore,
    "explore --attribution": partial(explore, attribution=True),
    "trace": trace,
    "atlas": draw_atlas,
    "logit attribution": attribute,
    "scan": scanned,
    "compare": compared,
    "verify": verified,
    "record": recorded,
}


def asks(model):
    """{what is asked: function of the Model and its texts}, all that can be asked of a model."""
    asked = dict(COMMANDS)
    for name, experiment in analysis.EXPERIMENTS.items():
        stacks = sides.of(experiment) if model.encoder else [""]
        for side in stacks:
            asked[f"{name} {side}".strip()] = partial(run, name, side)
    return asked


def outcome(ask, model, texts):
    """The sentence with which a question is refused, "" where it is answered; else it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Glyph")  # a figure's, of bytes that no font has
        warnings.filterwarnings("ignore", ".* not in this model's vocabulary")
        warnings.filterwarnings("ignore", ".* is read from its beginning")
        try:
            arrays = ask(model, texts)
        except (ValueError, FileNotFoundError) as error:
            if not is_sentence(error):
                raise
            return str(error).replace(str(texts), "TEXTS").replace(str(ROOT), ".")
    for name, x in {key: np.asarray(x) for key, x in arrays.items()}.items():
        if x.dtype.kind == "f":
            assert not np.isnan(x).any(), f"{name} has NaN"
            largest = abs(x[np.isfinite(x)]).max(initial=0)
            assert largest < LARGEST, f"{name} is {largest:.0e}"
    return ""


def is_sentence(error):
    """Whether a `raise` of the project made an error, in one line that has an end."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    is_own = frame.filename.startswith(str(ROOT)) and ".venv" not in frame.filename
    is_raised = "raise" in linecache.getline(frame.filename, frame.lineno)
    return is_own and is_raised and bool(SENTENCE.fullmatch(str(error)))


def is_tried(name, asked):
    """Whether a cell is one of PART, or has failed."""
    in_part = zlib.crc32(f"{name}/{asked}".encode()) % PART == 0
    return ALL or in_part or asked in FAILED.get(name, "").split()


@pytest.mark.parametrize("name", [*(odd.folders() if ALL else odd.families()), *odd.shapes()])
def test_every_cell_answers_or_says_why_not(name, tmp_path):
    model = odd.model(name)
    texts = odd.texts(model, tmp_path, n=2 if name == "two documents" else 48)
    tried = {asked: ask for asked, ask in asks(model).items() if is_tried(name, asked)}
    assert len(tried) >= max(1, len(FAILED.get(name, "").split()))
    raw = {}
    for asked, ask in tried.items():
        try:
            outcome(ask, model, texts)
        except Exception as error:
            raw[asked] = repr(error)
    assert not raw


@pytest.mark.parametrize("base", odd.BASES)
def test_a_pruned_head_has_no_rotation(base, tmp_path):
    """Its attention is the broadest, but it is not among the heads that are chosen."""
    model = odd.model(f"{base}: pruned head")
    ids = odd.texts(model, tmp_path, n=4)
    with pytest.raises(registry.NotApplicable, match="L0H0 has no rotation: its query or key weig"):
        analysis.run("rotation", model, ids=ids, head="L0H0", gauge=2, compare=2)
    names = analysis.run("attention", model, ids=ids).arrays["heads"].tolist()
    assert names and not {*names} & {"L0H0", "L1H0", "L1H1", "L1H2"}


def test_profiles_that_differ_by_rounding_are_one():
    uniform = np.full((12, 21), 0.3)
    uniform[::2, 3] += 1e-15
    others = np.eye(5, 21)
    labels = profiles.clusters(np.vstack([uniform, others]), k=6)[1]
    assert np.bincount(labels).tolist().count(1) == 5
    with pytest.raises(ValueError, match="7 clusters requested for 6 different profiles"):
        profiles.clusters(np.vstack([uniform, others]), k=7)


def test_a_model_of_few_positions_repeats_as_many_words_as_fit():
    words = analysis.run("heads", odd.model("gpt2: 40 positions"), texts=2, tokens=24).arrays
    assert words["words"] == 20


def test_a_layer_that_turns_nothing_keeps_its_number(tmp_path):
    """SmolLM3 turns no queries in every fourth layer: their means are those of q itself."""
    model = odd.model("smollm3-fourth")
    documents = corpus.documents(model, formats.of(odd.texts(model, tmp_path, n=2), is_ids=True), 2)
    means = mean_kernel.means(model, documents, stream.UNSAVED)["q_in_even"]
    trace = minitx.run(model, documents.first()[0], ["q", "q_in"])
    still = [layer for layer, turn in enumerate(model.config.rotary) if turn is None]
    assert still and len(means) == model.config.n_layers
    for layer, mean in enumerate(means):
        point = "q" if layer in still else "q_in"
        assert np.array_equal(mean, trace[point, layer][0])


def test_numpys_words_are_no_sentence():
    def broadcast(model, texts):
        return np.zeros(2) + np.zeros(3)

    with pytest.raises(ValueError, match="could not be broadcast"):
        outcome(broadcast, None, None)
    with pytest.raises(AssertionError, match="x has NaN"):
        outcome(lambda *given: {"x": np.array([np.nan])}, None, None)
