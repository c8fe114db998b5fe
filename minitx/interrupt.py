"""Ctrl-C while the command is still being imported: one line and status 130, and no traceback.

Half of a short command's time goes by before it can catch anything itself: NumPy and SciPy are
loaded. So this is the first that `import minitx` loads, and in the command `minitx`, or in
python -m minitx, it acts at once. In any other program it does nothing.
"""

import os
import signal
import sys
from contextlib import suppress

COMMANDS = "minitx", "minitx.exe"  # names of the console script
MODULES = "minitx", "minitx.analysis"  # what runs as python -m


def end(number, frame):
    """End the process: what is half imported has nothing to put in order."""
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
    # neither what ignores Ctrl-C, as jobs in the background do, nor a handler of somebody else's
    if signal.getsignal(signal.SIGINT) is before:
        with suppress(ValueError):  # only the main thread may change it
            signal.signal(signal.SIGINT, after)


def is_the_command():
    """Whether this process is the command, and not a program of somebody who imports minitx."""
    if sys.argv[:1] == ["-m"]:  # while Python looks for the module, whose name is before the rest
        return sys.orig_argv[-len(sys.argv)].removeprefix("-m") in MODULES
    return os.path.basename(sys.argv[0] if sys.argv else "") in COMMANDS


if is_the_command():
    end_at_once()
