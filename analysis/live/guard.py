"""Who may ask: pages that this server itself has sent, on this machine.

Only 127.0.0.1 is listened on, but a page of another site, open in the same browser, could still
send requests there, under its own name (DNS rebinding) or from its own origin. Both are refused, as
is whatever is too large or too slow. (Starlette's TrustedHostMiddleware sees the first Host alone,
and no port.)
"""

import json

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from ..pages import explore

NAMES = "127.0.0.1", "localhost"
BODY = 256 * 1024  # bytes of a request, at most
SECONDS = 10  # in which a request must have arrived
CONNECT = {"connect-src": "'self'"}  # what the live page may do more than a static one
POLICY = CONNECT | {
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Refused(Exception):
    """A request that is not answered: its status, why, and what would be, if that is known."""

    def __init__(self, status, why, **instead):
        super().__init__(why)
        self.status, self.instead = status, instead


class Guard:
    """An application that answers whom it may, and adds the headers that keep a page to itself."""

    def __init__(self, app, port):
        self.app = app
        self.hosts = {f"{name}:{port}" for name in NAMES}
        self.hosts.update(NAMES if port == 80 else ())  # browsers leave this port out
        self.headers = HEADERS | {"Content-Security-Policy": explore.rules(explore.POLICY | POLICY)}

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message):
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.headers)
            await send(message)

        try:
            self.check(Headers(scope=scope))
        except Refused as refusal:
            await failed(refusal.status, refusal)(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)

    def check(self, headers):
        """Raise Refused for a foreign Host or Origin."""
        hosts, here = headers.getlist("host"), " or ".join(sorted(self.hosts))
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            raise Refused(
                403, f"this page is served only at {here}; the request is for {_shown(hosts)}"
            )
        origins = headers.getlist("origin")
        wanted = {f"http://{host}" for host in self.hosts}
        if any(origin.lower() not in wanted for origin in origins):
            raise Refused(
                403, f"only pages from {here} may send requests; this is from {_shown(origins)}"
            )
        if headers.get("sec-fetch-site", "none") == "cross-site" and "origin" not in headers:
            if headers.get("sec-fetch-mode") != "navigate":
                raise Refused(
                    403, f"only pages from {here} may send requests; this is from another site"
                )


def _shown(names):
    return ", ".join(f"{name!r:.80}" for name in names) or "no name"


def failed(status, why, **instead):
    """The answer to a request that is not done, as JSON; instead: what would be done."""
    body = json.dumps({"error": str(why)} | instead)
    return Response(body, status, media_type="application/json")


async def body_of(request):
    """The bytes of a request; Refused for no JSON, too many, too slow, or for one cut short."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, f"the request is {kind!r:.80}; wanted application/json")
    body = b""
    try:
        with anyio.fail_after(SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > BODY:
                    raise Refused(413, f"the request has more than {BODY} bytes")
    except TimeoutError:
        raise Refused(408, f"the request did not arrive within {SECONDS} seconds") from None
    except ClientDisconnect:
        raise Refused(400, "the request is incomplete") from None
    return body
