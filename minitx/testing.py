"""For tests of your own: is a model still what the reference library computes? Needs no torch."""

from os import PathLike

from .arrays import Model

__all__ = ["assert_parity"]


def assert_parity(
    model: Model | str | PathLike[str],
    reference: str | PathLike[str],
    bound: float | None = None,
) -> None:
    """Raise AssertionError unless a model agrees with a file that `minitx record` wrote.

    model: a Model, or its name or folder, which is then loaded in float64. bound: the largest
    difference of a point as a share of its largest value; by default 1e-10 in float64 and 1e-4 in
    float32. The error names the first point of the forward pass that differs, with layer, head and
    token. Raises ValueError for a file that is no reference, or of a model of other sizes.

    >>> import minitx.testing
    >>> minitx.testing.assert_parity("tiny-roberta", "no-such-file.safetensors")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no reference file 'no-such-file.safetensors'
    """
    from . import load
    from .analysis.parity import compare
    from .analysis.parity import reference as files

    recorded = files.read_file(reference)
    if not isinstance(model, Model):
        model = load(model, "float64")
    outcome = compare.verify(model, recorded, bound)
    if not outcome.agrees:
        raise AssertionError("\n".join([compare.says(outcome), *outcome.notes]))
