"""How fast a page of `minitx atlas` is in this machine's browsers.

    python -m benchmarks.atlas PAGE [--windows]

In Chromium and Firefox: the first paint, when all heads are drawn, frames a second while the large
picture is zoomed (as the browser comes, and on a canvas), and how long a search takes from the last
letter until all heads show what it finds. Firefox has WebGL only with windows, which need a screen.
"""

import argparse
import json
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

SIZE = {"width": 1400, "height": 1000}
BROWSERS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "firefox": ("firefox", "firefox-esr"),
}
SEARCHES = 5
PATIENCE = 300_000  # milliseconds
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
ZOOMED = """async seconds => {
  const {cloud} = atlas.panes[0], start = performance.now(), before = cloud.frames;
  const next = () => new Promise(requestAnimationFrame);
  for (let k = 0; performance.now() - start < 1000 * seconds; k++) {
    cloud.zoom(k % 60 < 30 ? 1.06 : 1 / 1.06);
    await next();
  }
  return 1000 * (cloud.frames - before) / (performance.now() - start);
}"""
SEARCHED = """async words => {
  const box = document.getElementById("search"), panes = document.getElementById("panes");
  const drawn = new Promise(done => new MutationObserver((_, own) => {
    if (panes.dataset.pending !== "0") return;
    own.disconnect();
    requestAnimationFrame(() => done(performance.now()));
  }).observe(panes, {attributes: true, attributeFilter: ["data-pending"]}));
  const start = performance.now();
  box.value = words;
  box.dispatchEvent(new Event("input"));
  return await drawn - start;
}"""


def launched(playwright, kind, path, windows):
    """A browser; a Firefox as it is distributed, over WebDriver BiDi."""
    options = {"executable_path": path, "headless": not windows}
    if kind == "firefox":
        options["channel"] = "moz-firefox"
        options["firefox_user_prefs"] = {"webgl.force-enabled": True}  # also in software
    return getattr(playwright, kind).launch(**options)


def opened(browser, page_path, fragment=""):
    """The page once all heads are drawn."""
    page = browser.new_context(viewport=SIZE).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{page_path.resolve().as_uri()}{fragment}")
    page.locator('#panes[data-pending="0"]').wait_for()
    return page


def measured(browser, path, seconds):
    """{name: value} of one browser: milliseconds, and frames a second."""
    page = opened(browser, path)
    result = {"first paint, ms": page.evaluate(PAINTED)}
    result["all heads drawn, ms"] = page.evaluate("performance.now()")
    result["points"] = page.evaluate("atlas.panes[0].cloud.points.n")
    drawing = page.locator(".cloud").first.get_attribute("data-drawing")
    result["frames/s"] = {drawing: page.evaluate(ZOOMED, seconds)}
    names = page.locator("#tokens-there option").evaluate_all("all => all.map(o => o.value)")
    times = [page.evaluate(SEARCHED, name) for name in names[5 : 5 + SEARCHES]]
    result["searches, ms"] = sorted(times)
    if drawing != "canvas":
        page = opened(browser, path, "#drawing=canvas")
        result["frames/s"]["canvas"] = page.evaluate(ZOOMED, seconds)
    return result


def main():
    """Print what each browser measures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--seconds", type=float, default=5, help="of zooming (5)")
    parser.add_argument("--windows", action="store_true", help="with windows, which need a screen")
    arguments = parser.parse_args()
    with sync_playwright() as playwright:
        for kind, names in BROWSERS.items():
            path = next(filter(None, map(shutil.which, names)), None)
            if path is None:
                print(f"{kind}: none on the PATH ({', '.join(names)})")
                continue
            with launched(playwright, kind, path, arguments.windows) as browser:
                values = measured(browser, arguments.page, arguments.seconds)
                print(kind, browser.version, json.dumps(values), flush=True)


if __name__ == "__main__":
    main()
