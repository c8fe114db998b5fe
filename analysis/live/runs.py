"""Runs for the live page: what `explore` shows, as it is, changed and by chance, with caches.

What does not change is computed once: the tokens of a text, its run as it is. A run is kept as the
JSON that a page reads.
"""

import json
import time
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from minitx.edits import edits_by_point
from minitx.points import points, text_of

from ..machine.language import filled, translated
from ..measures import decoder_texts, losses, neurons
from ..pages import explore, of_pictures, pushes, writers
from ..running import blas
from ..texts import joined
from . import as_python, guesses, second_text, validation
from .requests import RunRequest

LENS = 1e8  # products of a token, at most, that guesses by layer may take: not of roberta-base
GIVEN = "edits given: {points}"
KEPT = 12  # runs that are kept; of roberta-base with 64 tokens each is 2.6 MB


class Tokens(NamedTuple):
    """A text as a model reads it."""

    said: object  # what explore.data takes: ids [T], a Joined, of an encoder-decoder a Spoken
    ids: np.ndarray  # [T] that the model reads; of an encoder-decoder its decoder
    source: np.ndarray | None  # [S] of an encoder-decoder

    @property
    def options(self):
        """Further keywords of `minitx.run`: token types of a pair, or a source."""
        return joined.of(self.said).options if self.source is None else {"source": self.source}

    @property
    def texts(self):
        """What a Place is made of: of two texts a Joined."""
        if self.source is None:
            return self.said, None
        sequences = self.said.sequences
        return self.ids, joined.Joined(self.source, None, sequences)


class Runs:
    """The models of a page, and what was computed last."""

    def __init__(self, models, kept=KEPT, attribution=False, split=False, given=()):
        """models: {name: Model}. kept: how many results of each kind.

        attribution: what tokens and heads add to a guess, of runs that are not changed. split:
        texts are cut into words, by blanks. given: edits of `minitx.run` that are part of every
        changed run.
        """
        if attribution:
            for model in models.values():
                pushes.check(model)
        self.models, self.attribution, self.split = models, attribution, split
        self.given = given
        self.tokens = lru_cache(kept)(self._tokens)
        self.edits = lru_cache(kept)(self._edits)
        self.run = lru_cache(kept)(self._run)
        self.outputs = lru_cache(kept)(self._outputs)
        self.kinds = lru_cache(None)(self._kinds)
        self.fits = lru_cache(kept)(partial(second_text.named, self))
        self.caches = self.tokens, self.edits, self.run, self.outputs

    @property
    def names(self):
        """Names of the models, the first one that of the page's start."""
        return list(self.models)

    def request(self, values):
        """The RunRequest of what a page asks; ValueError for values of the wrong kind."""
        own = {"split": self.split, "edited": bool(self.given)}
        return replace(RunRequest.of(values, self.names), **own)

    def answer(self, request, check=lambda: None):
        """The JSON of {"runs", "live"}, as a page takes it.

        check: called between stages; it raises an error if nobody waits any more.
        """
        start = time.perf_counter()
        with blas.one_thread_of_blas():
            requests = self.requests(request)
            runs = []
            for name, each in requests.items():
                runs.append(_named(name, self.run(each, lens=self.has_lens(each))))
                check()
            live = self.live(request, requests)
        live["seconds"] = time.perf_counter() - start
        return f'{{"runs": [{", ".join(runs)}], "live": {json.dumps(live, allow_nan=False)}}}'

    def requests(self, request):
        """A request for each run of a page, by the run's name."""
        wanted = {"as is": request.as_is}
        if request.is_changed:
            wanted["changed"] = request.changed
        if request.null:
            wanted["by chance"] = request.by_chance
        for each in wanted.values():
            self.edits(each)  # what is refused is refused before any work
        return wanted

    def live(self, request, requests):
        """What a page shows beside its runs."""
        model, tokens = self.models[request.model], self.tokens(request.as_is)
        of_source = request.changes.stack == "encoder"
        curve = request.changes.curve(model, len(tokens.source if of_source else tokens.ids))
        values = {"model": request.model, "text": request.text, "tokens": len(tokens.ids)}
        reader = model.encoder or model
        values |= {"second": request.second, "typed": joined.typed_separator(reader, request.pair)}
        ids = tokens.ids if tokens.source is None else tokens.source
        is_text = model.config.picture is None
        values["unknown"] = is_text and bool(np.isin(ids, reader.tokenizer.unknown_id).any())
        values["source"] = None if tokens.source is None else len(tokens.source)
        values |= {"changes": request.changes.as_json(), "says": self.says(request)}
        values["curve"] = None if curve is None else curve.tolist()
        outputs = [self.outputs(each) for each in requests.values()]
        values["guesses"] = guesses.beside(model, tokens, request, outputs)
        return values

    def has_lens(self, request):
        """Whether guesses by layer take little time."""
        cfg = self.models[request.model].config
        return cfg.n_layers * cfg.n_vocab * cfg.d_model <= LENS

    def save(self, request, view="", patched=None, place=None):
        """The page that `minitx explore` writes for the same; changed runs stand beside it.

        view: what it opens with, as the address of a page has it. patched: see `explore.page`.
        place: the token whose guess is told token by token, if one is.
        """
        requests = self.requests(request)
        runs = []
        for name, each in requests.items():
            run = {"name": name} | json.loads(self.run(each, lens=True))
            given = self.models[each.model], self.tokens(each.as_is).said
            runs.append(explore.with_writers(run, *given, edits=self.edits(each)))
        if place is not None:
            runs[0]["outputs"]["pushes"] = self.pushes(request, place)
        copy = translated("A saved copy: “minitx serve” reads other texts and changes the model.")
        given = {"says": self.says(request), "patched": patched}
        return explore.page(*runs, view=view, body=f'<p class="soft">{copy}</p>', **given)

    def says(self, request):
        """What is changed, in words."""
        given = ""
        if request.edited:
            given = filled(GIVEN, points=", ".join(map(text_of, self.given)))
        return "; ".join(filter(None, (given, request.changes.says())))

    def writers(self, request, name, place):
        """Who wrote the guesses at one place of the run of that name: what a page shows."""
        model, tokens, options = self.of(request, name)
        with blas.one_thread_of_blas():
            shown = writers.of_place(model, tokens.ids, place, **options)
        if shown is None:
            raise ValueError(f"guesses of the head {model.config.task_head!r} are not attributed")
        return shown

    def of(self, request, name):
        """The model, the Tokens, and further keywords of `minitx.run` of the run of that name."""
        requests = self.requests(request)
        if name not in [*requests]:  # of a request: it may be anything
            raise ValueError(f"run is {name!r:.80}; this request has: {', '.join(requests)}")
        model, tokens = self.models[request.model], self.tokens(request.as_is)
        return model, tokens, {"edits": self.edits(requests[name]), **tokens.options}

    def pushes(self, request, place):
        """What each token, and each head, adds to the guess at one place of the run as it is."""
        model, tokens = self.models[request.model], self.tokens(request.as_is)
        pushes.check(model)
        validation.whole("place", place, 0, len(tokens.ids) - 1)
        with blas.one_thread_of_blas():
            return pushes.of_text(model, tokens.ids, tokens.options.get("types"), place)

    def cut(self, request):
        """The beginning of a text that is too long, or "" where the page cannot shorten it."""
        is_alone = request.second is None and request.target is None and not request.split
        return explore.cut(self.models[request.model], request.text) if is_alone else ""

    def neurons(self, request, name, pair):
        """A query and a key in a head of the run of that name; pair: its numbers, by name."""
        model, tokens, options = self.of(request, name)
        if model.encoder is not None or request.words:
            raise ValueError("elements are those of tokens in a single stack of layers")
        cfg, T = model.config, len(tokens.ids)
        limits = {"layer": cfg.n_layers, "head": cfg.n_heads, "query": T, "key": T}
        for each, n in limits.items():
            validation.whole(each, pair[each], 0, n - 1)
        with blas.one_thread_of_blas():
            return neurons.of_pair(model, tokens.ids, *(pair[each] for each in limits), **options)

    def code(self, request, shown=None, place=None):
        """The Python that computes the changed run.

        What it prints: shown, fields of a Shown; place, the token whose guess is shown.
        """
        model, tokens = self.models[request.model], self.tokens(request.as_is)
        if request.changes:
            request.changes.check(model, *tokens.texts)
        given = {"target": request.target, "hidden": request.hidden, "edited": request.edited}
        if shown is not None:
            given["shown"] = as_python.Shown.of(shown, model)
        if guesses.continues(model):
            given["sampling"] = request.sampling
        if place is not None and model.config.task_head is not None:
            validation.whole("place", place, 0, len(tokens.ids) - 1)
            given["place"] = place
        return request.changes.code(model, request.pair, request.model, **given)

    def following(self, request, seed, token=None):
        """The text with one more token, this one or one drawn from what the changed model says."""
        model, tokens = self.models[request.model], self.tokens(request.as_is)
        guesses.check_continues(model)
        wanted = request.changed if request.is_changed else request.as_is
        if token is None:
            token = guesses.draw(self.outputs(wanted), request.sampling, seed)
        return model.tokenizer.decode([*tokens.ids, token])

    # each is kept for the last requests

    def _tokens(self, request):
        """The Tokens of a request; ValueError for a text that a page cannot show."""
        model = self.models[request.model]
        explore.check_read([(model, request.model, request.pair)], request.words)
        if model.config.picture is not None:
            of_pictures.number_of(request.text)  # who asks for a page opens no files by it
        said = explore.readable(model, request.pair, request.target)
        if isinstance(said, decoder_texts.Spoken):
            if request.hidden:
                raise ValueError("hidden tokens are those of a masked model; this one has none")
            return Tokens(said, said.inputs, said.source)
        said = _hidden(model, said, request.hidden)
        return Tokens(said, joined.of(said).ids, None)

    def _edits(self, request):
        tokens = self.tokens(request.as_is)
        model = self.models[request.model]
        given = {}
        if request.edited:
            given = edits_by_point(self.given, points(model), model)
        if not request.changes:
            return given
        return request.changes.edits(model, *tokens.texts, given=given)

    def _run(self, request, lens):
        """The JSON of one run; lens: with guesses by layer."""
        model, tokens = self.models[request.model], self.tokens(request.as_is)
        edits = self.edits(request)
        more = {"edits": edits} if edits else {}
        given = request.model, request.pair, tokens.said, request.words, lens
        content = explore.data(model, *given, **more)
        for part, numbers in request.changes.off(model).items():
            (content["parts"][part] if part else content)["off"] = numbers
        if self.attribution and not edits:
            types = tokens.options.get("types")
            content["outputs"]["pushes"] = pushes.of_text(model, tokens.ids, types)
        return json.dumps(content, allow_nan=False)

    def _kinds(self, name):
        """The kinds of a model's heads, computed once."""
        with blas.one_thread_of_blas():
            return writers.of_kinds(self.models[name])

    def _outputs(self, request):
        """Logits of a request's run, where the page shows guesses."""
        model, tokens = self.models[request.model], self.tokens(request.as_is)
        return guesses.logits(model, tokens, request, self.edits(request))


def _named(name, run):
    """The JSON of a run with its name in front."""
    return f'{{"name": {json.dumps(name)}, {run[1:]}'


def _hidden(model, said, places):
    """The tokens [T], or a Joined, with the mask token at some places."""
    if not places:
        return said
    ids = joined.of(said).ids
    if model.config.task_head != "masked":
        raise ValueError("only a masked model predicts hidden tokens; this one does not")
    if max(places) >= len(ids):
        raise ValueError(f"token {max(places)} is to be hidden; wanted 0 to {len(ids) - 1}")
    ids = ids.copy()
    ids[list(places)] = losses.mask_token(model.tokenizer)
    return said._replace(ids=ids) if isinstance(said, joined.Joined) else ids
