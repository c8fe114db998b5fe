"""A function whose parameter has a new name, and one that goes away."""

from minitx.machine import deprecation


@deprecation.renamed(b="second")
def renamed(a, second=0):
    return a, second


@deprecation.deprecated("goes with 1.2; use renamed")
def deprecated(a):
    return a
