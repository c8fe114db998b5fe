"""Documents of token ids that were read once, in a temporary file without a name.

They are then as near as memory and cost none. The file lies where the system keeps temporary files
(TMPDIR names another place) and takes 2 bytes a token where the vocabulary is small enough, else 4.
It is gone with the documents, or when the process ends.
"""

import os
import tempfile
import weakref

import numpy as np

HEADER = 4  # bytes that hold a document's length


class Spool:
    """Documents [T_i], added one by one, read any number of times in that order."""

    def __init__(self, n_vocab):
        self.file = tempfile.TemporaryFile(prefix="minitx-")
        weakref.finalize(self, self.file.close)
        self.kind = np.dtype(np.uint16 if n_vocab <= 1 << 16 else np.uint32)
        self.size = 0

    def add(self, tokens):
        """Keep one document more."""
        content = tokens.astype(self.kind).tobytes()
        self.file.write(len(content).to_bytes(HEADER, "little") + content)
        self.size += HEADER + len(content)

    def __iter__(self):
        self.file.flush()
        place = 0
        while place < self.size:
            n = int.from_bytes(os.pread(self.file.fileno(), HEADER, place), "little")
            content = os.pread(self.file.fileno(), n, place + HEADER)
            yield np.frombuffer(content, self.kind).astype(np.intp)
            place += HEADER + n
