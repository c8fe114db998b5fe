"""Where checkpoints come from: `find` turns a name into a folder, `fetch` downloads one.

Read local.py (names, cache, record; never the network), then fetch.py (the only code that uses the
network). KNOWN lists some checkpoints to download.
"""

from .fetch import fetch
from .local import KNOWN, bundled, find, histories, of_pictures, zoo

__all__ = ["KNOWN", "bundled", "fetch", "find", "histories", "of_pictures", "zoo"]
