"""What the checks in a browser share: this machine's browsers, and pages that are listened to.

Playwright drives Chromium or Chrome ($BROWSER, or the first on the path) and, where there is one,
Firefox. SHOTS=folder keeps a screenshot of every page at the end of its check, to look at.
"""

import os
import shutil
import time
from functools import cache, partial
from pathlib import Path

import pytest

import minitx

NAMES = {
    "chromium": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    "firefox": ("firefox", "firefox-esr"),
}
PATIENCE = 20_000  # milliseconds until what should be there counts as missing
LAST_WORDS = "new Promise(done => setTimeout(done, 50))"  # whatever is still to be said is said


def programs():
    """{kind: path} of the browsers of this machine; `$BROWSER` comes before Chromium's names."""
    names = NAMES | {"chromium": (os.environ.get("BROWSER", ""), *NAMES["chromium"])}
    paths = {kind: [*filter(None, map(shutil.which, tried))] for kind, tried in names.items()}
    return {kind: own[0] for kind, own in paths.items() if own}


PROGRAMS = programs()


def pytest_pycollect_makemodule(module_path):
    """Before checks in a browser are imported: an end with the reason where there is none."""
    if module_path.name.startswith("checks") and "chromium" not in PROGRAMS:
        pytest.exit(
            "make test-page: no browser found: looked for $BROWSER and, on the PATH, for "
            f"{', '.join(NAMES['chromium'])}; install Chromium or Chrome, or set BROWSER to its "
            "program",
        )


def pytest_terminal_summary(terminalreporter):
    """Say which browsers the checks have seen, and which they have not."""
    reports = [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]
    if any("/checks" in report.nodeid for report in reports):
        for kind, names in NAMES.items():
            program = PROGRAMS.get(
                kind, f"none on the PATH ({', '.join(names)}): nothing was checked"
            )
            terminalreporter.write_line(f"{kind}: {program}")


@pytest.fixture(scope="session")
def downloads(tmp_path_factory):
    """Where the browsers put what they save."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def launch(downloads):
    """launch(kind, dark) -> a browser of a light or dark system, started once."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        yield cache(partial(start, playwright, downloads))


def start(playwright, downloads, kind, dark):
    """A browser without a window."""
    if kind == "chromium":
        return playwright.chromium.launch(executable_path=PROGRAMS[kind])
    # a Firefox as it is distributed, over WebDriver BiDi, which cannot change the theme later
    return playwright.firefox.launch(
        channel="moz-firefox",
        executable_path=PROGRAMS[kind],
        downloads_path=downloads,
        firefox_user_prefs={"layout.css.prefers-color-scheme.content-override": int(not dark)},
    )


@pytest.fixture(params=[kind for kind in NAMES if kind in PROGRAMS])
def kind(request):
    """Which browser."""
    return request.param


@pytest.fixture(params=[False, True])
def dark(request):
    """Whether the system is dark."""
    return request.param


@pytest.fixture
def complaints():
    """What the console, uncaught errors and the security policy said."""
    return []


@pytest.fixture
def requests():
    """Addresses that were asked for (Firefox does not tell of files)."""
    return []


@pytest.fixture
def new_page(launch, kind):
    """new_page(width, height, dark) -> a page in a window of its own, closed in the end."""
    pages = []

    def new_page(width, height, dark=False):
        scheme, size = "dark" if dark else "light", {"width": width, "height": height}
        context = launch(kind, dark).new_context(viewport=size, color_scheme=scheme)
        pages.append(context.new_page())
        pages[-1].set_default_timeout(PATIENCE)
        return pages[-1]

    yield new_page
    for page in pages:
        page.context.close()


@pytest.fixture
def reported(tmp_path, monkeypatch):
    """reported(run, …) -> text and Page of a report in which these experiments are planted."""
    from planted import plant, write_report

    def reported(*runs, name="tiny-roberta", **changes):
        plant(monkeypatch, *runs, **changes)
        return write_report(tmp_path, name)

    return reported


@pytest.fixture
def open_page(new_page, kind, complaints, requests, request):
    """open_page(path, …, hash) -> a file in a window of its own, at a place of its own address.

    By the end no page has a complaint, and none has asked for anything but itself.
    """
    pages = []

    def open_page(path, width=1400, height=1000, dark=False, hash_=""):
        page = new_page(width, height, dark)
        listen(page.context, complaints, requests)
        page.goto(path.as_uri() + hash_)
        pages.append(page)
        return page

    yield open_page
    for n, page in enumerate(pages):
        keep_picture(page, f"{request.node.name}-{n}")
        page.evaluate(LAST_WORDS)
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    files = {url.partition("?")[0] for url in requests if url.startswith("file:")}
    own = {page.url.partition("#")[0].partition("?")[0] for page in pages}
    assert files == (own if kind == "chromium" else set())


@pytest.fixture
def explored_page(open_page, tmp_path):
    """explored_page(name, text, …) -> the page of `minitx explore` of a bundled model, drawn."""
    import explored

    from minitx.analysis.pages import explore

    def explored_page(name, text, *size, dark=False, **given):
        path = tmp_path / "page.html"
        explore.write(minitx.load(name), name, text, path, **given)
        return explored.settle(explored.ready(open_page(path, *size, dark=dark)))

    return explored_page


@pytest.fixture(scope="module")
def model(request):
    """A file's MODEL."""
    return minitx.load(request.module.MODEL)


@pytest.fixture(scope="module")
def models(request):
    """{name: model} of a file's MODELS."""
    return {name: minitx.load(name) for name in request.module.MODELS}


@pytest.fixture(scope="module")
def port(models, request):
    """Where the live page of these models is served, which begins with the file's TEXT."""
    import served

    from minitx.analysis.live.runs import Runs

    with served.listening(Runs(models), request.module.TEXT) as port:
        yield port


@pytest.fixture
def live(new_page, port):
    """live(hash, …) -> the live page in a window of its own, drawn.

    By the end no program of it has failed, and it has asked nobody but its own server.
    """
    import explored

    pages, faults, requests = [], [], []

    def live(hash_="", width=1280, height=900, dark=False):
        page = new_page(width, height, dark)
        pages.append(page)
        page.context.on("weberror", lambda error: faults.append(str(error.error)))
        page.context.on("request", lambda request: requests.append(request.url))
        page.goto(f"http://127.0.0.1:{port}/#{hash_}")
        return explored.settle(explored.ready(page))

    yield live
    for page in pages:
        page.evaluate(LAST_WORDS)
    assert faults == []
    own = f"http://127.0.0.1:{port}/", f"blob:http://127.0.0.1:{port}/", "data:"
    assert [url for url in requests if not url.startswith(own)] == []


@pytest.fixture
def saved(kind, downloads, tmp_path):
    """saved(button) -> the file that a click on a button saves."""

    def saved(button):
        if kind == "firefox":  # saves it, but Playwright does not hear of it
            button.click()
            file = wait_for_file(downloads)
            return file.rename(tmp_path / file.name)
        page = button.page
        with page.expect_download() as download:
            button.click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        return path

    return saved


def wait_for_file(folder):
    """The one file in a folder, once it is whole."""
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end:
        files = list(folder.iterdir())
        if len(files) == 1 and files[0].stat().st_size:
            return files[0]
        time.sleep(0.05)
    raise TimeoutError(f"no file was saved: {files}")


def listen(context, complaints, requests):
    """Write down what the pages of a context complain of, and what they ask for."""

    def note(message):
        is_drivers = "GL Driver Message" in message.text  # of WebGL without a graphics card
        if message.type in ("error", "warning", "assert") and not is_drivers:
            complaints.append(message.text)

    def refuse(dialog):
        complaints.append(dialog.message)
        dialog.dismiss()

    context.on("console", note)
    context.on("dialog", refuse)
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("request", lambda request: requests.append(request.url))


def keep_picture(page, name):
    """A screenshot of the whole page in the folder $SHOTS, if there is one."""
    if "SHOTS" in os.environ:
        path = Path(os.environ["SHOTS"]) / f"{name.replace('/', '-')}.png"
        page.screenshot(path=path, full_page=True)
