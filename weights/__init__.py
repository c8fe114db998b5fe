"""Where checkpoints come from: `find` turns a name into a folder, `fetch` downloads one, `KNOWN` lists some.

Read local.py (names, cache, record; never the network), then fetch.py (the only code that uses the network).
"""

from .fetch import fetch
from .local import KNOWN, bundled, find

__all__ = ["KNOWN", "bundled", "fetch", "find"]
