"""What a bundled model reads where its user names no text: one that is of its own kind.

A model that was trained on dates has nothing to say of prose, nor has one that knows a few words
and repeats what it has read before. All others read the sample.
"""

from pathlib import Path

from minitx.weights import local

from ..machine.language import translated
from ..texts import corpus
from ..texts.pairs import DATES

DATE = "Friday the 3rd of May, 1912"
ROWS = "rows"  # of random words, with pieces of them said again
ROW = "bear sun cup red tree moon bear sun cup red"
STORIES = "stories"  # from a grammar
STORY = "When Mary and John went to the park, John gave the ball to"
WORDS = {"sentence": corpus.SENTENCE}  # of whole words: they have few
OWN = dict.fromkeys(("deep-roberta", "tiny-roberta", "tiny-bert", "tiny-gpt2"), WORDS) | {
    "tiny-bart": {"text": DATES, "sentence": DATE, "source": DATE, "prompt": f"{DATE}=>191"},
    "tiny-induction": {"text": ROWS, "sentence": ROW},
    "tiny-stories": {
        "text": STORIES,
        "sentence": STORY,
        "prompt": STORY,
        "target": " Mary",
        "other": " John",
        "pairs": "other",
    },
}
IN_PAIRS = "alignment", "patch", "circuit"  # experiments that read what is said of a source, too
IN_PROMPT = "prompt", "target", "other"
ONLY = {  # option: the experiments in which it is this
    "pairs": ("patch", "paths", "circuit"),
    "target": ("attribute",),
    "other": ("attribute",),
}
SAID = {
    DATES: "Any text that is read is free-form dates, on which tiny-bart was not trained.",
    ROWS: "Any text that is read is rows of random words with pieces of them said again, on which "
    "tiny-induction was not trained.",
    STORIES: "Any text that is read is stories from a grammar, of the kind that tiny-stories was "
    "trained on, in an order that it has not read.",
}

TRAINED = {
    DATES: "dates alone",
    ROWS: "rows of random words alone",
    STORIES: "stories from a grammar alone",
}


def with_own(experiment, model, given):
    """The options given, and those that the model has by itself.

    Where a text, pairs or a prompt are named, they alone are read.
    """
    names = experiment.option_names
    names -= {name for name, those in ONLY.items() if experiment.name not in those}
    own = {name: value for name, value in _of(model).items() if name in names}
    if experiment.name in IN_PAIRS and _of(model).get("text") == DATES:
        own.pop("text", None)
        if "text" not in given:
            own["pairs"] = DATES
    elif "pairs" in given:
        own.pop("text", None)
    if "prompt" in given:
        own = {name: value for name, value in own.items() if name not in IN_PROMPT}
    return own | given


def _of(model):
    """{option: what it is by itself} of a model; {} unless it comes with the project."""
    if model.tokenizer.folder is None:
        return {}
    folder = Path(model.tokenizer.folder).resolve()
    return OWN.get(folder.name, {}) if folder.parent == local.BUNDLED.resolve() else {}


def text(model):
    """The text that a model reads where none is named."""
    return _of(model).get("text", "sample")


def sentence(model):
    """The text of its own kind that a bundled model reads first; None for one that reads prose."""
    return _of(model).get("sentence")


def trained_on(model):
    """What a bundled model was trained on, in words; "" for one that reads prose."""
    return translated(TRAINED.get(_of(model).get("text"), ""))


def says(options):
    """A sentence on what is read with these options; "" for the sample and any text of the user."""
    texts = options.get("text"), options.get("pairs")
    return translated(next((said for name, said in SAID.items() if name in texts), ""))
