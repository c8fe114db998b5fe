"""`minitx serve`: the live page and what it asks for, on this machine alone."""

import json
import os
import secrets
import socket
import sys
import threading
import webbrowser

import uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from minitx.inputs import TooLong

from ..contract import own_texts
from ..pages import assets, explore, inline
from ..texts import corpus, joined
from . import atlases, guard, patching, second_text, validation
from .guard import Refused, failed
from .registry import CHANGES
from .requests import LONGEST, TEMPERATURES
from .runs import Runs
from .turns import Busy, Superseded, Turns

HOST = "127.0.0.1"
PAGE = 64  # letters, at most, by which a page says which one it is
VIEW = 2000  # letters, at most, of what a page looks at, as its address has it
TEXTS = corpus.SENTENCE, "3 May 1912"
PICTURE = "sample:0"
OPTIONS = {
    "log_level": "error",
    "access_log": False,
    "server_header": False,
    "proxy_headers": False,
    "ws": "none",
    "lifespan": "off",
    "timeout_graceful_shutdown": 2,
}
STYLES, PROGRAM, BODY = ("live.css",), ("live.js",), "live.html"


def app(runs, port, text, atlas=None):
    """The application for a Runs; text: what the page starts with; atlas: an Atlases."""
    atlas = atlas or atlases.Atlases(runs.names, "\n".join(joined.parts(text)))
    live = Live(runs, text)
    works = {"run": live.run, "save": live.save, "code": live.code, "next": live.following}
    works |= {"writers": live.writers, "kinds": live.kinds, "patch": live.patch}
    works |= {"lengths": live.lengths, "neurons": live.neurons, "pushes": live.pushes}
    routes = [Route("/", live.page), Route("/atlas", atlas.page)]
    for name, work in works.items():
        routes.append(Route(f"/api/{name}", live.answering(work), methods=["POST"]))
    errors = {404: _http_error, 405: _http_error}
    return guard.Guard(Starlette(routes=routes, exception_handlers=errors), port)


async def _http_error(request, error):
    return failed(error.status_code, f"{error.detail}: {request.method} {request.url.path!r:.80}")


class Live:
    """What is answered."""

    def __init__(self, runs, text):
        self.runs = runs
        self.turns = Turns()
        self.first = first_page(runs, text)

    async def page(self, request):
        """GET /: the page with its first run; the page itself asks for more."""
        return HTMLResponse(self.first)

    def answering(self, work):
        """The endpoint that gives what work(values, check) returns, a Response."""

        async def endpoint(request):
            try:
                values = _values(await guard.body_of(request))
                page = _page(values)
                return await self.turns.run(page, lambda check: work(values, check))
            except Refused as refusal:
                return failed(refusal.status, refusal, **refusal.instead)
            except ValueError as error:
                return failed(400, error)
            except Superseded:
                return failed(409, "superseded: this page has asked for something newer")
            except Busy:
                return failed(503, "too many pages wait for a run; try again in a moment")
            except Exception as error:  # said here, and not to whoever asked
                print(f"minitx: {type(error).__name__}: {error}", file=sys.stderr)
                return failed(500, "minitx failed here; the terminal says how")

        return endpoint

    def run(self, values, check):
        """POST /api/run: {"runs", "live"}."""
        request = self.runs.request(values)
        try:
            return Response(self.runs.answer(request, check), media_type="application/json")
        except TooLong as error:
            raise Refused(400, error, cut=self.runs.cut(request)) from None

    def save(self, values, check):
        """POST /api/save: the page of `minitx explore`, which needs no server."""
        view, other = values.pop("view", ""), values.pop("other", None)
        place = values.pop("place", None)
        if not isinstance(view, str) or len(view) > VIEW:
            raise ValueError(f"view is {view!r:.80}; wanted at most {VIEW} letters")
        request = self.runs.request(values)
        patched = None if other is None else patching.saved(self.runs, request, other, check)
        return HTMLResponse(self.runs.save(request, view, patched, place))

    def code(self, values, check):
        """POST /api/code: {"code"}, which prints the number `shown`, and the guess at `place`."""
        shown, place = values.pop("shown", None), values.pop("place", None)
        request = self.runs.request(values)
        return _json({"code": self.runs.code(request, shown, place)})

    def following(self, values, check):
        """POST /api/next: {"text"} with one more token: `token`, or one that is drawn by `seed`."""
        seed, token = values.pop("seed", secrets.randbits(32)), values.pop("token", None)
        request = self.runs.request(values)
        validation.whole("seed", seed, 0, 2**53 - 1)
        if token is not None:
            n_vocab = self.runs.models[request.model].config.n_vocab
            validation.whole("token", token, 0, n_vocab - 1)
        return _json({"text": self.runs.following(request, seed, token)})

    def writers(self, values, check):
        """POST /api/writers: who wrote the guesses at `place` of the run `run`."""
        name, place = values.pop("run", "as is"), values.pop("place", 0)
        request = self.runs.request(values)
        validation.whole("place", place, 0, LONGEST - 1)
        return _json(self.runs.writers(request, name, place))

    def neurons(self, values, check):
        """POST /api/neurons: q and k of `query` and `key` in a head of the run `run`."""
        name = values.pop("run", "as is")
        names = "layer", "head", "query", "key"
        pair = {each: values.pop(each, 0) for each in names}
        return _json(self.runs.neurons(self.runs.request(values), name, pair))

    def pushes(self, values, check):
        """POST /api/pushes: what each token adds to the guess at `place` of the run as it is."""
        place = values.pop("place", 0)
        return _json(self.runs.pushes(self.runs.request(values), place))

    def kinds(self, values, check):
        """POST /api/kinds: {part: kinds of the heads of `model`}."""
        request = self.runs.request(values)
        return _json(self.runs.kinds(request.model))

    def patch(self, values, check):
        """POST /api/patch: what patches from the text `other` and into it do."""
        other = values.pop("other", "")
        request = self.runs.request(values)
        return _json(patching.between(self.runs, request, other, check))

    def lengths(self, values, check):
        """POST /api/lengths: tokens of the text and of `other` in its place, and texts that fit."""
        other = values.pop("other", "")
        return _json(second_text.of(self.runs, self.runs.request(values), other))


def _json(values):
    return Response(json.dumps(values), media_type="application/json")


def _values(body):
    """The object that a body holds; ValueError for anything else."""
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("the request is not JSON") from None
    if not isinstance(values, dict):
        raise ValueError(f"the request is {values!r:.80}; wanted an object")
    return values


def _page(values):
    """Which page asks: a word that it chose for itself."""
    page = values.pop("page", "")
    if not isinstance(page, str) or len(page) > PAGE:
        raise ValueError(f"page is {page!r:.80}; wanted at most {PAGE} letters")
    return page


def first_page(runs, text):
    """The HTML of the page, with the run of this text, or pair, as it is.

    Raises ValueError for a text of no use.
    """
    given = dict(zip(("text", "second"), joined.parts(text)))
    answer = json.loads(runs.answer(runs.request(given)))
    body = assets.text(BODY)
    live = answer["live"] | {"server": facts(runs)}
    files = {"program": PROGRAM, "styles": STYLES, "body": body}
    return explore.page(*answer["runs"], live=live, policy=guard.CONNECT, **files)


def facts(runs):
    """What a page must know to draw its controls."""
    models = {name: _model_facts(model) for name, model in runs.models.items()}
    changes = [change.facts for change in CHANGES.values()]
    limits = {"text": LONGEST, "temperature": TEMPERATURES}
    return {"changes": changes, "models": models, "limits": limits, "edited": bool(runs.given)}


def _model_facts(model):
    """What a page's controls depend on."""
    cfg = model.config
    stacks = [""] if model.encoder is None else ["encoder", "decoder", "cross"]
    sizes = {}
    for stack in stacks:
        of = model.encoder.config if stack == "encoder" else cfg
        sizes[stack] = {"layers": of.n_layers, "heads": of.n_heads, "causal": of.causal}
        sizes[stack]["longest"] = of.n_ctx if of.n_pos else None
    reader, is_picture = (model.encoder or model).config, cfg.picture is not None
    reads = {"picture": is_picture, "pairs": not (is_picture or reader.causal)}
    reads["first"], reads["trained_on"] = first_text(model), own_texts.trained_on(model)
    return {"type": cfg.model_type, "head": cfg.task_head, "stacks": sizes} | reads


# listening


def serve(runs, port, text=None, with_browser=True):
    """Serve until it is interrupted; prints the address.

    text: what the page starts with, or a pair; None: a sentence, or for a model that cannot spell
    it a date. Raises ValueError for a taken port.
    """
    with listening(port) as listener:
        running, address = ready(runs, listener, text)
        print(f"minitx: {address} (Ctrl-C ends it)", flush=True)
        if with_browser and has_screen():
            threading.Timer(0.3, webbrowser.open, [address]).start()
        running.run(sockets=[listener])


def ready(runs, listener, text):
    """A Server of the page that starts with this text, and its address."""
    port = listener.getsockname()[1]
    text = first_text(runs.models[runs.names[0]]) if text is None else text
    atlas = atlases.Atlases(runs.names, "\n".join(joined.parts(text)))
    application = app(runs, port, text, atlas)
    return Server(uvicorn.Config(application, **OPTIONS), atlas), f"http://{HOST}:{port}/"


class Serving:
    """A live page that a thread serves: `.address`, `.close()`, and `.wait()` for its end."""

    def __init__(self, runs, port=0, text=None, with_browser=False):
        listener = listening(port)
        try:
            self._server, self.address = ready(runs, listener, text)
        except ValueError:
            listener.close()
            raise
        options = {"target": self._server.run, "kwargs": {"sockets": [listener]}, "daemon": True}
        self._thread = threading.Thread(**options)
        self._thread.start()
        if with_browser and has_screen():
            webbrowser.open(self.address)

    def __repr__(self):
        return f"<a live page at {self.address}; .close() ends it>"

    def wait(self):
        """Wait for Ctrl-C, or for another thread that ends the page."""
        try:
            self._thread.join()
        finally:
            self.close()

    def close(self):
        """End it, and the processes of its atlas."""
        self._server.should_exit = True
        self._thread.join()


def of_python(model, text, edits, port, with_browser):
    """The Serving of a Model, or of a model's name, with these edits in each changed run."""
    model, name = inline.named(model)
    if text is not None:
        joined.check(text)
    runs = Runs({name: model}, given=edits or {})
    return Serving(runs, port, text, with_browser)


class Server(uvicorn.Server):
    """Ends the processes of atlases before the signal that ended it is passed on."""

    def __init__(self, config, atlas):
        super().__init__(config)
        self.atlas = atlas

    async def shutdown(self, sockets=None):
        """Stop answering."""
        self.atlas.close()
        await super().shutdown(sockets)


def first_text(model):
    """A picture, the model's own text, or the first of TEXTS that it can read and spell.

    Where it can spell none, the first of all.
    """
    if model.config.picture is not None:
        return PICTURE
    if (own := own_texts.sentence(model)) is not None:
        return own
    reader = model.encoder or model
    for text in TEXTS:
        ids = reader.tokenizer.encode(text)
        spelled = reader.tokenizer.decode(ids)
        is_spelled = _letters(spelled) == _letters(text)
        if is_spelled and len(ids) <= reader.config.n_ctx:
            return text
    return TEXTS[0]


def _letters(text):
    return text.replace(" ", "").lower()


def listening(port):
    """A socket on this machine alone; port 0: a free one. ValueError if it is taken."""
    if type(port) is not int or not 0 <= port < 2**16:
        raise ValueError(f"--port {port!r:.80}: wanted 0 to 65535, 0 for a free one")
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        text = f"--port {port}: {os.strerror(error.errno)}; --port 0 takes a free one"
        raise ValueError(text) from None


def has_screen():
    """Whether a browser could open a window: otherwise one would open in the terminal itself."""
    is_shown = any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return is_shown or not sys.platform.startswith("linux")
