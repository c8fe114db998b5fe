"""A tab of a headless Chromium or Chrome, driven through its debugging pipe.

It needs the standard library alone. Messages are JSON ended by a zero byte, read by the browser on
file 3 and written on file 4 (Chrome DevTools Protocol).
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

NAMES = "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)
CODES = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


class NoBrowser(Exception):
    """There is none on this machine."""


def find():
    """The browser's program: $BROWSER, or the first on the path.

    Raises NoBrowser, which says where it was looked for.
    """
    for name in filter(None, (os.environ.get("BROWSER"), *NAMES)):
        path = shutil.which(name)
        if path:
            return path
    raise NoBrowser(
        f"no browser found: looked for $BROWSER and, on the PATH, for {', '.join(NAMES)}; "
        "install Chromium or Chrome, or set BROWSER to its program"
    )


class Tab:
    """One page in a browser of its own.

    complaints: what the console, uncaught errors and the security policy said. requests:
    addresses that were asked for.
    """

    def __init__(self, folder, width=1400, height=1000):
        self.complaints = []
        self.requests = []
        self._left = b""  # bytes of the next messages
        self._last = 0  # number of the last command
        self._session = None
        self._start([f"--user-data-dir={folder}", f"--window-size={width},{height}"])
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        answer = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = answer["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def _start(self, flags):
        """Start the browser, with a pipe to it and one from it."""
        theirs_in, self._out = _pipe()
        self._in, theirs_out = _pipe()
        launch = [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out)]
        browser = [find(), *FLAGS, *flags]
        if os.geteuid() == 0:
            browser.append("--no-sandbox")
        self._process = subprocess.Popen(
            [*launch, *browser, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)

    def close(self):
        self._process.terminate()
        self._process.wait(20)
        os.close(self._in)
        os.close(self._out)

    def call(self, method, seconds=60, **params):
        """One command -> its result; events that come meanwhile are sorted away."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + seconds
        while True:
            answer = self._receive(end - time.monotonic())
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._event(answer)

    def _receive(self, seconds):
        """The browser's next message."""
        while b"\0" not in self._left:
            if not select.select([self._in], [], [], max(seconds, 0))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._left += piece
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)

    def _event(self, message):
        """Keep a request, or a complaint; any other event means nothing here."""
        method = message.get("method")
        params = message.get("params")
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            if params["type"] in ("error", "warning", "assert"):
                self.complaints.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded":
            if params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(params["entry"]["text"])

    def open(self, path, ready):
        """Load a file and wait until the expression `ready` holds."""
        self.call("Page.navigate", url=path.as_uri())
        self.wait(ready)

    def js(self, expression):
        """The value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            error = answer["exceptionDetails"]["exception"]
            raise RuntimeError(f"{expression}: {error.get('description')}")
        return answer["result"].get("value")

    def wait(self, expression, seconds=20):
        """Until an expression holds."""
        end = time.monotonic() + seconds
        while not self.js(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"never came true: {expression}")
            time.sleep(0.02)

    def until(self, holds, seconds=20):
        """Until holds() is true on this side."""
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError("waited in vain")
            time.sleep(0.02)

    @contextmanager
    def in_frame(self, seconds=20):
        """Commands go to the one frame of the page, which is shut off and has a session of its own.

        A browser that keeps such frames in the page's own process has none for it.
        """
        outer, self._session = self._session, None
        frames = []
        self.until(lambda: frames.extend(self._frames()) or frames, seconds)
        [frame] = frames
        answer = self.call("Target.attachToTarget", targetId=frame["targetId"], flatten=True)
        self._session = answer["sessionId"]
        for domain in ("Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        yield
        self._session = outer

    def _frames(self):
        """Frames that have a process of their own."""
        targets = self.call("Target.getTargets")["targetInfos"]
        return [target for target in targets if target["type"] == "iframe"]

    def settle(self):
        """Until the next frame has been drawn, hover texts and all."""
        self.js(
            "new Promise(done => "
            "requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
        )

    def place(self, element):
        """Middle of an element, given by a JavaScript expression, scrolled into sight."""
        return self.js(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}}); "
            "const b = e.getBoundingClientRect(); "
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, x, y):
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def press(self, key):
        names = {"key": key, "code": key, "windowsVirtualKeyCode": CODES[key]}
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, **names)
        self.settle()

    def dark(self, on):
        """What the system says it prefers."""
        preference = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.call("Emulation.setEmulatedMedia", features=[preference])
        self.settle()

    def screenshot(self, path, whole=True):
        image = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(image))


def _pipe():
    """A pipe whose ends are numbered from 10 on, out of the way of files 3 and 4."""
    ends = []
    for end in os.pipe():
        ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
        os.close(end)
    return ends
