"""The command `minitx`, the same as `python -m minitx.analysis`: sets BLAS, then runs a command."""

import io
import os
import sys

from minitx.machine import interrupt, threads


def main(argv=None):
    """Run one command and return its exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] != ["doctor"]:  # it describes what other programs get
        one_thread_of_blas()
    interrupt.end_at_once()
    if "--json" not in argv:  # JSON has no such escapes: there it stays an error
        escape_what_cannot_be_printed()
    from .commands import run_command  # with SciPy, whose OpenBLAS reads the variable now

    return run_command(argv)


def one_thread_of_blas():
    """One thread for each product, unless the user chose a number.

    Documents run side by side; threads inside one small product would only wait for each other.
    """
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        threads.limit(1)  # NumPy's OpenBLAS is there already


def escape_what_cannot_be_printed():
    """Print \\xf6 for a character that standard output has no bytes for, as stderr does.

    So in a locale of ASCII a result is not lost for a letter in the name of its folder.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
