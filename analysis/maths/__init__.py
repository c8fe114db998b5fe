"""Arrays in, arrays out: vectors, spectra and distances, with NumPy and SciPy only.

SciPy's parts are called by their full names, for example scipy.fft.rfft, so that the first call
loads them: a command that computes nothing, like `minitx --help`, starts in a third of the time.
"""
