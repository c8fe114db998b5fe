"""The changes of the live page, in the order of its controls and of the words."""

from . import dial, mask, off, positions

RECORDS = (
    positions.POSITIONS,
    positions.SHIFT,
    dial.DIAL,
    dial.DOWN,
    mask.MASK,
    off.HEADS,
    off.LAYERS,
    off.MLPS,
)
CHANGES = {change.name: change for change in RECORDS}
