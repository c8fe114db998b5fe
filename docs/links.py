"""Every link and every resource of finished pages: `python -m docs.links FOLDER`.

A link inside must lead to a file, and to a name in it. Nothing that a browser loads by itself, such
as a script, a font or a picture, may lie outside. Sphinx's linkcheck asks the network, and sees no
names and no pages that are not its own. Order: what a page asks for, what is wrong.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
FETCHED = {"stylesheet", "icon", "preload", "modulepreload", "manifest", "prefetch", "preconnect"}
IN_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """What a page links to, what it loads, and the names in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.names = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.names.update(filter(None, [given.get("id"), given.get("name")]))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and FETCHED & {*given.get("rel", "").split()}:
            self.loads.append(given["href"])
        if given.get(LOADED.get(tag, "")):
            self.loads.append(given[LOADED[tag]])
        if "style" in given:
            self.loads += addresses(given["style"])


def addresses(style):
    """What a style sheet loads."""
    return [url or imported for url, imported in IN_STYLE.findall(style)]


def problems(folder):
    """What is wrong in a folder of pages, a line each."""
    folder = Path(folder).resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    for path, page in pages.items():
        where = path.relative_to(folder)
        for link in page.links:
            if wrong := misled(link, path, pages):
                yield f"{where}: {link}: {wrong}"
        yield from (f"{where}: {load}: {x}" for load in page.loads if (x := missing(load, path)))
    for path in folder.rglob("*.css"):
        for load in addresses(path.read_text(encoding="utf-8")):
            if wrong := missing(load, path):
                yield f"{path.relative_to(folder)}: {load}: {wrong}"


def misled(link, path, pages):
    """Why a link of a page leads nowhere; "" if it leads somewhere or outside."""
    address, name = urldefrag(link)
    if urlsplit(address).scheme:
        return ""
    target = (path.parent / unquote(address)).resolve() if address else path
    if not target.is_file():
        return "no such file"
    if name and target in pages and unquote(name) not in pages[target].names:
        return "no such name in that page"
    return ""


def missing(load, path):
    """Why a resource is not there; "" if it is."""
    parts = urlsplit(load)
    if parts.scheme == "data" or not parts.path:
        return ""
    if parts.scheme or parts.netloc:
        return "lies outside"
    return "" if (path.parent / unquote(parts.path)).is_file() else "no such file"


def main(argv=None):
    """Print what is wrong; exit code 1 if anything is."""
    (folder,) = sys.argv[1:] if argv is None else argv
    lines = [*problems(folder)]
    print(*lines, sep="\n")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
