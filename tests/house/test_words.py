"""Phrases that went from what people read, each with the plain word, lest they come back."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GONE = {
    "On top stand": "It includes",
    "what a long run will take": "estimate a run's time and memory",
    "what an encoder-decoder says of a text": "generate from a source text",
    "is a model what was recorded": "check a model against a reference",
    "learns on from a text": "continue training on a text",
    "refused, not run wrongly": "rejected with an error",
    "replace it by renaming": "replace the file atomically",
    "Nothing but this machine is listened on": "Listens on localhost only",
    "threads of this one": "default: threads",
    "in their place the workers of": "use a Dask scheduler",
    "was read from no folder": "was not loaded from a folder",
    "says no place of its tokens": "provides no offsets",
    "is no UTF-8 text": "is not valid UTF-8",
    "takes as long as it takes": "cannot be extrapolated",
    "What it is to say": "Target text",
    "as is again": "Reset",
    "once in a hundred times": "1 % of the time",
    "does stand there": "is stored",
    "What a decoder reads beside": "Encoder output",
    "What chance would give": "Chance baseline",
    "(from the unit vector": "direction 0.890, with each number's name",
    "that nobody watches": "default hook",
    "Seconds as people say them": "Format a duration",
    "what a layer has not": "missing arrays",
    "Whoever wants to follow NaN": "To propagate NaN",
    "padding is ours to say": "if `valid` is not accepted",
    "is no meaning of a mask": "unknown mask meaning",
    "tensors would do for": "available heads",
    "dealt anew": "assigned or shuffled at random",
    "dealt at random": "shuffled",
    "told right": "classified correctly",
    "words said twice": "words that occur twice",
    "blanks too": "spaces included",
    "First guesses, behind each wrong one": "The top prediction at each position",
    "come nearer": "come closer",
    "what positions are worth, in nats": "the loss due to missing positions",
    "make waves of its positions": "position embeddings are waves",
    "sit in the norm": "encoded in the norm",
    "Highest rate of learning": "peak learning rate",
    "knowing nothing": "a uniform guess",
    "where a text stands": "where a text begins",
    "is to be off": "is out of range",
    "what that piece has to tell": "values",
    "can do without neither": "needs both",
    "what stands to its left": "the tokens on its left",
    "Queries of nobody": "Random queries",
    "deal them at random": "assign them at random",
    "with the sum 1": "that sum to 1",
    "One walk back": "One backward pass",
    "near to it: ": "closest: ",
    "there are: ": "available: ",
    "documents drawn anew": "documents resampled",
    "place alone": "depends only on the position",
    "go on past": "generalize beyond",
    "goes on past": "generalizes beyond",
    "hang on one band": "depend on one band",
    "stands clear": "is clearly above",
    "as much taken evenly": "the same energy removed evenly",
    "places of the queries": "query positions",
    "is no token id": "is not a token id",
    "turned at random": "rotated at random",
    "what looking everywhere would give": "uniform attention",
    "what stands below a cell": "the output below a cell",
    "models that come along": "bundled models",
    "large trainings are for others": "not meant for large-scale training",
    "Norms of what is written": "post-norms",
    "waves that peak away from frequency 0": "spectral peaks away from frequency 0",
    "see what follows": "see the effect",
    "needs the extra torch": "requires minitx[torch]",
    "without N the list of them": "without N, list all lessons",
    "as they are before the mask hides any": "before masking",
    "seed of all that is drawn at random": "random seed",
    "what to read of an encoder-decoder": "part of an encoder-decoder to analyse",
    "send heads where they look": "determine where heads look",
    "peak positions make": "peak is due to positions",
    "layers in a row that": "consecutive layers that",
    "the size of all of theirs": "the absolute contributions of all",
    "at the size they were learned": "at their learned scale",
    "that this model cannot show": "not applicable to this model",
    "mends a text": "fills gaps in a text",
    "sums up, as its source says": "summarizes",
    "it has more norms": "additional norms",
    "as people write them": "free-form",
    "left one thread": "reduced the speed of one thread",
    "most of it draws": "most of it is plotting code",
    "share one head of keys and values": "multi-query attention",
    "Look into your own model": "Inspect your own model",
    "document a line": "document per line",
    "document or paragraph a line": "document or paragraph per line",
    "colours of tokens with care": "token colours with caution",
}
READ = "README.md", "PACKAGE.md", "docs/pages/**/*.md", "*/*.md", "weights/*/README.md"
CELLS = re.compile(
    r"^```\{code-cell\}.*?^```", re.M | re.S
)  # the prose of a lesson is read, not its code


@cache
def texts():
    """{file: what people read of it, on one line}: Markdown, page files, strings in Python."""
    files = {path: path.read_text(encoding="utf-8") for name in READ for path in ROOT.glob(name)}
    for path in (ROOT / "analysis/pages/page").glob("*.*"):
        if path.suffix in (".js", ".html") and ".min" not in path.name:
            files[path] = path.read_text(encoding="utf-8")
    for folder in ("analysis", "minitx", "weights"):
        for path in (ROOT / folder).rglob("*.py"):
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            strings = [node.value for node in nodes if isinstance(node, ast.Constant)]
            files[path] = " | ".join(text for text in strings if isinstance(text, str))
    return {path: " ".join(CELLS.sub("", text).split()) for path, text in files.items()}


@pytest.mark.parametrize("phrase", GONE)
def test_a_phrase_that_went_does_not_come_back(phrase):
    where = [str(path.relative_to(ROOT)) for path, text in texts().items() if phrase in text]
    assert where == [], f"say {GONE[phrase]!r} in place of {phrase!r}"
