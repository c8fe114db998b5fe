"""Lessons as handouts: `python -m docs.handouts` prints the built ones to PDF, four pages at most.

Chromium, or Chrome, does it, with the style that a reader's own browser prints a lesson in
(lessons/page/page.css). docs/_build/html/lessons/handouts/ receives NAME.pdf, and those in Japanese
in ja/. Order: the command, one lesson, its pages.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from minitx.lessons import notebook

from .build import OUT

MOST = 4  # pages
BROWSERS = "chromium", "chromium-browser", "google-chrome", "chrome"
FLAGS = "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"


def main():
    """Print every lesson; exit code 1 if one has more than MOST pages."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"wanted one of {', '.join(BROWSERS)}; none is here", file=sys.stderr)
        return 1
    folder, too_long = OUT / "html/lessons", False
    for language in notebook.LANGUAGES:
        for lesson in notebook.every(language):
            place = Path("" if language == "en" else language) / lesson.name
            path = folder / "handouts" / place.with_suffix(".pdf")
            printed(browser, folder / place.with_suffix(".html"), path)
            n = n_pages(path.read_bytes())
            too_long |= n > MOST
            print(f"{path}: {n} pages")
    return int(too_long)


def printed(browser, page, path):
    """Write a built page as PDF."""
    if not page.is_file():
        raise FileNotFoundError(f"{page} is not built: make docs")
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [browser, *FLAGS, "--no-pdf-header-footer", f"--print-to-pdf={path}", page.as_uri()]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def n_pages(pdf):
    """How many pages the bytes of a PDF have.

    >>> n_pages(b"<< /Type /Pages >> << /Type /Page >> << /Type /Page\\n>>")
    2
    """
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


if __name__ == "__main__":
    sys.exit(main())
