"""Ctrl-C at moments when Python alone would lose it, or answer with a long traceback.

`kept`: while a thread starts. `end_at_once`: while the command is still being imported; then it is
one line and status 130. A short command spends half of its time loading NumPy and SciPy, before it
can catch anything itself. So `import minitx` loads this module first, and in the command `minitx`,
or in python -m minitx, it acts at once. In any other program it does nothing.
"""

import os
import signal
import sys
from contextlib import contextmanager, suppress

COMMANDS = "minitx", "minitx.exe"  # names of the console script
MODULES = "minitx", "minitx.analysis"  # what runs as python -m


def end(number, frame):
    """End the process: a half imported program has nothing to clean up."""
    try:
        os.write(2, b"minitx: interrupted\n")
    finally:
        os._exit(130)


def end_at_once():
    """From here on Ctrl-C ends the process, unless somebody else has decided what it does."""
    _replace(signal.default_int_handler, end)


def raise_again():
    """From here on Ctrl-C raises KeyboardInterrupt, if `end_at_once` had changed that."""
    _replace(end, signal.default_int_handler)


def _replace(before, after):
    # a process may ignore Ctrl-C, as background jobs do, or have another handler: keep these
    if signal.getsignal(signal.SIGINT) is before:
        with suppress(ValueError):  # only the main thread may change it
            signal.signal(signal.SIGINT, after)


def is_the_command():
    """Whether this process is the command, and not another program that imports minitx."""
    if sys.argv[:1] == ["-m"]:  # while Python looks for the module, whose name is before the rest
        return sys.orig_argv[-len(sys.argv)].removeprefix("-m") in MODULES
    return os.path.basename(sys.argv[0] if sys.argv else "") in COMMANDS


@contextmanager
def kept():
    """Raise the interrupt that came while a thread started.

    Python waits for the thread under a lock that the interrupt leaves open, and then raises
    RuntimeError("release unlocked lock") in its place.
    """
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise


if is_the_command():
    end_at_once()
