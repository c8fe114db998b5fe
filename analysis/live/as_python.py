"""Changes as a few lines of plain Python, which compute what the live page shows.

Each change gives lines; `code` puts them together. The names in the lines are those of a user:
model, tokens, edits, trace.
"""

from typing import NamedTuple

from minitx import Model
from minitx.heads import of_classes
from minitx.sampling import Sampling

from ..measures import decoder_texts, losses, outputs
from ..pages import of_pictures
from ..texts import joined
from . import guesses, interventions, validation
from .place import PREFIX, Place, place, stack_of

GIVEN = "edits = dict(given)  # given: what minitx.serve had as edits"


class Shown(NamedTuple):
    """The number on the screen: of a head the mean attention to an offset, or to its strongest key.

    offset: key - query, in tokens; None in cross-attention, which has a strongest key instead.
    """

    part: str  # of the page: a stack
    layer: int
    head: int
    offset: int | None

    @classmethod
    def of(cls, values, model):
        """From a dictionary; ValueError for what this model does not have."""
        if not isinstance(values, dict) or sorted(values) != sorted(cls._fields):
            raise ValueError(f"shown is {values!r:.80}; wanted {', '.join(cls._fields)}")
        shown, config = cls(**values), stack_of(model, values["part"]).config
        validation.whole("layer", shown.layer, 0, config.n_layers - 1)
        validation.whole("head", shown.head, 0, config.n_heads - 1)
        if shown.offset is not None:
            validation.whole("offset", shown.offset, -validation.MOST, validation.MOST)
        return shown

    def lines(self):
        """The lines that print it."""
        name, offset = f"L{self.layer}H{self.head}", self.offset
        yield f'a = trace["{PREFIX[self.part]}pattern", {self.layer}][0, {self.head}]  # of {name}'
        if offset is None:
            yield f'print(f"{name}, strongest key: {{a.max(axis=-1).mean():.3f}}")'
        else:
            yield f'print(f"{name}, offset {offset}: {{a.diagonal({offset}).mean():.3f}}")'


class Given(NamedTuple):
    """What is run: a model and a text, and how it is read."""

    model: Model
    name: str  # of the model, as `minitx.load` takes it
    text: str | tuple[str, str]  # or a pair; of an encoder-decoder its source
    target: str | None = None  # what an encoder-decoder is to say; None: its own greedy output
    hidden: tuple = ()  # places of a masked model's text where the mask token stands
    shown: Shown | None = None  # what is printed
    sampling: Sampling | None = None  # of a causal model: how the next token is drawn
    place: int | None = None  # the token whose guess is printed
    edited: bool = False  # with the edits that `minitx.serve` was given

    @property
    def is_picture(self):
        """Whether the text names a picture."""
        return self.model.config.picture is not None

    @property
    def is_pair(self):
        """Whether the model is an encoder-decoder."""
        return self.model.encoder is not None

    @property
    def source(self):
        """The argument of `minitx.run` for the source, or a pair's token types, if there are."""
        if self.has_types:
            return ", types=types"
        return ", source=source" if self.is_pair else ""

    @property
    def has_types(self):
        """Whether two texts have token types."""
        is_single = isinstance(self.text, str) or self.is_pair
        return not is_single and bool(joined.encode(self.model, self.text).options)


def code(changes, given):
    """The lines as one text."""
    lines = [*_reading(given), GIVEN if given.edited else "edits = {}"]
    if changes:
        lines += interventions.lines(changes, _where(changes, given))
    lines.append(f"trace = minitx.run(model, tokens, edits=edits{given.source})")
    if given.shown:
        lines += given.shown.lines()
    imports = ["import numpy as np", "", "import minitx"]
    if given.sampling:
        imports.append("from minitx.sampling import Sampling")
        lines += _next(given.sampling)
    if given.place is not None:
        imports.insert(1, "from scipy.special import softmax")
        lines += _guess(given, given.edited or bool(changes))
    if given.is_picture:
        imports.append("from minitx.weights import shapes")
    for change in changes.records():
        imports += change.imports
    return "\n".join([*imports, "", *lines]) + "\n"


def _next(sampling):
    """The likeliest next tokens, as the page shows them."""
    options = [
        f"{name}={value!r}" for name, value in sampling._asdict().items() if value is not None
    ]
    draw = f"Sampling({', '.join(options)})"
    yield f'ids, p = {draw}.probabilities(trace["logits"][:, -1])  # as minitx.generate draws'
    yield f"best = zip(model.tokenizer.pieces(ids[0, :{guesses.SHOWN}]), p[0].round(3).tolist())"
    yield "print([(piece, p) for piece, p in best if p > 0])"


def _guess(given, is_changed):
    """The best guesses at a place, or classes, as the page shows them; of a change what it does."""
    is_of_text = given.model.config.task_head in outputs.CLASSIFIERS
    row = "[0]" if is_of_text else f"[0, {given.place}]"
    yield f'p = softmax(trace["logits"]{row}.astype(float))'
    yield f"best = p.argsort()[::-1][:{outputs.GUESSES}]"
    yield f"names = {_names(given.model.config)}"
    if not is_changed:
        yield "for name, x in zip(names, p[best]):"
        yield '    print(f"guess {name!r}: {x:.1%}")'
        return
    yield f"as_is = minitx.run(model, tokens{given.source})"
    yield f'before = softmax(as_is["logits"]{row}.astype(float))'
    yield "for name, x, y in zip(names, before[best], p[best]):"
    yield '    print(f"guess {name!r}: as is {x:.1%}, changed {y:.1%}, difference {y - x:+.1%}")'


def _names(cfg):
    """What the best guesses are called: pieces, labels of classes, or their numbers."""
    if not of_classes(cfg.task_head):
        return "model.tokenizer.pieces(best)"
    return "[model.config.labels[i] for i in best]" if cfg.labels else "best"


def _reading(given):
    """The model and the tokens."""
    yield f"model = minitx.load({given.name!r})"
    if given.is_picture:
        yield f"pictures, _ = shapes.draw(1, seed={of_pictures.number_of(given.text)})"
        yield "tokens = model.encode(images=pictures[0]).tokens[0]"
        return
    texts = ", ".join(map(repr, joined.parts(given.text)))
    if not given.is_pair:
        yield f"tokens = model.tokenizer.encode({texts})"
        if given.has_types:
            cut = isinstance(given.text[0], joined.Words)
            how = ", is_split_into_words=True" if cut else ""
            yield f"types = model.encode([({texts})]{how}).types  # token types"
        if given.hidden:
            mask = losses.mask_token(given.model.tokenizer)
            yield f"tokens[{list(given.hidden)}] = {mask}  # the mask token"
        return
    yield f"source = model.encoder.tokenizer.encode({texts})"
    if given.target is None:
        n = min(decoder_texts.LONGEST, given.model.config.n_ctx)
        more = ", ignore_settings=True" if given.model.config.generation.refused else ""
        yield f"tokens = minitx.generate(model, n={n}, source=source{more})[:-1]  # what it says"
    else:
        yield f"said = model.tokenizer.encode({given.target!r})"
        yield "tokens = np.array([model.config.start_id, *said[:-1]])"


class Where(NamedTuple):
    """Names of a stack, as the lines have them."""

    stack: str  # model, or model.encoder
    tokens: str  # tokens, or source
    place: Place


def _where(changes, given):
    """The Where of these changes; the text is read again to know its special tokens."""
    model = given.model
    if given.is_picture:
        return Where("model", "tokens", place("", model, of_pictures.drawn(model, given.text)))
    if given.is_pair:
        source = joined.encode(model.encoder, given.text)
        ids = joined.of(source).ids
        said = decoder_texts.greedy(model, ids)
        if given.target is not None:
            said = decoder_texts.forced(model, ids, given.target)
        stack = place(changes.stack, model, said.inputs, source)
    else:
        stack = place(changes.stack, model, joined.encode(model, given.text))
    of_source = changes.stack == "encoder"
    names = ("model.encoder", "source") if of_source else ("model", "tokens")
    return Where(*names, stack)
