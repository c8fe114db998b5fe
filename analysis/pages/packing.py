"""Arrays as text inside a page: whole steps between the least and the greatest value of each part.

A step is 1/65535 of that, two bytes a number; 1/4095, three bytes for two numbers; or 1/255, one
byte a number.
"""

import base64

import numpy as np

STEPS = {16: 65535, 12: 4095, 8: 255}  # bits: steps
TINY = 1e-300  # instead of a zero by which something is divided


def pack(x, leading, bits=16):
    """An array as steps between the least and the greatest value of each part.

    A part is what one index of the `leading` first axes selects. Returns {"shape", "low", "high",
    "bits", "error": half of the largest step, "data": base64 of little-endian codes}.

    >>> packed = pack(np.array([[0.0, 0.5, 1.0]]), 1)
    >>> packed["low"], packed["high"], packed["error"] < 1e-5
    ([0.0], [1.0], True)
    """
    rows = np.asarray(x, np.float64).reshape(int(np.prod(x.shape[:leading])), -1)
    low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    codes = np.rint((rows - low) / np.maximum(high - low, TINY) * STEPS[bits]).astype("<u2")
    packed = {"shape": list(x.shape), "low": low[:, 0].tolist(), "high": high[:, 0].tolist()}
    packed["bits"] = bits
    packed["error"] = float((high - low).max() / STEPS[bits] / 2)
    content = in_threes(codes.ravel()) if bits == 12 else codes.astype(f"<u{bits // 8}")
    packed["data"] = base64.b64encode(content.tobytes()).decode()
    return packed


def in_threes(codes):
    """12-bit codes, two in three bytes, the lower bits first: [n] -> [3 n / 2]."""
    pairs = np.append(codes, [0] * (len(codes) % 2)).astype(np.uint32).reshape(-1, 2)
    both = pairs[:, 0] | pairs[:, 1] << 12
    return np.stack([both & 255, both >> 8 & 255, both >> 16], axis=1).astype(np.uint8)


def unpack(packed):
    """The array again, as the page reads it: low + code (high - low) / steps."""
    low, high = (np.array(packed[end])[:, None] for end in ("low", "high"))
    content = base64.b64decode(packed["data"])
    codes = np.frombuffer(content, "<u2" if packed["bits"] == 16 else np.uint8)
    if packed["bits"] == 12:
        bytes_ = codes.reshape(-1, 3).astype(np.uint32)
        both = bytes_[:, 0] | bytes_[:, 1] << 8 | bytes_[:, 2] << 16
        codes = np.stack([both & 4095, both >> 12], axis=1).ravel()
    codes = codes[: int(np.prod(packed["shape"]))].reshape(len(low), -1)
    return (low + codes * ((high - low) / STEPS[packed["bits"]])).reshape(packed["shape"])
