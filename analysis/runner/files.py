"""Files that are replaced in one step, so that none is ever half written."""

import json
import math
import os


def write(path, content):
    """Replace a file by this text or these bytes.

    They are written to a temporary name, which is then renamed: whoever opens `path` gets all of
    the old file or all of the new one, also if the process ends in between.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.replace(draft, path)


def as_json(value):
    """A value as JSON text; raises ValueError for NaN and infinities, which JSON lacks."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)


def finite(value):
    """A value with None for every NaN and infinity in its lists and dictionaries."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
