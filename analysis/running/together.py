"""Several experiments at once, so that what they gather of the same documents is one pass.

Each runs in a thread of its own up to its next `gather`, one after the other, as the memory of one
is enough. There it waits until the others wait, too, or have ended; then one pass over the
documents measures for all of them. A gather over fewer than
half of the documents that another one reads goes first: it mostly chooses what is read afterwards.
"""

import threading
import time
from contextvars import ContextVar, copy_context

from minitx import memory
from minitx.machine.interrupt import kept

PATIENCE = 5.0  # seconds for an experiment to notice that the command was interrupted
_current: ContextVar = ContextVar("meeting", default=None)


def current():
    """The Meeting of the experiment that runs here; None for one that runs alone."""
    return _current.get()


class Over(BaseException):
    """Ends the thread of an experiment whose command was interrupted."""


class Meeting:
    """Where n experiments wait for each other before they read documents."""

    def __init__(self, n):
        self.n_at_work = n  # experiments that neither wait nor have ended
        self.waiting = {}  # Sum -> its Member
        self.is_busy = False  # whether one is at work at this moment; the others come after it
        self.is_over = False
        self.changed = threading.Condition()

    def begin(self):
        """Wait for one's turn to be at work."""
        with self.changed:
            self._take_turn(lambda: True)

    def gather(self, total):
        """Wait until a Sum has all of its documents; called by its experiment."""
        memory.give_back()
        with self.changed:
            self.n_at_work -= 1
            self.is_busy = False
            self.waiting[total] = threading.current_thread()
            self.changed.notify_all()
            self._take_turn(lambda: total not in self.waiting)

    def _take_turn(self, is_ready):
        self.changed.wait_for(lambda: self.is_over or (is_ready() and not self.is_busy))
        if self.is_over:
            raise Over
        self.is_busy = True

    def leave(self):
        """An experiment has ended."""
        with self.changed:
            self.n_at_work -= 1
            self.is_busy = False
            self.changed.notify_all()

    def next(self):
        """The Sums of the next pass, once all experiments wait or have ended; [] at the end."""
        with self.changed:
            self.changed.wait_for(lambda: self.n_at_work == 0)
            most = max((len(total.documents) for total in self.waiting), default=0)
            few = [total for total in self.waiting if 2 * len(total.documents) < most]
            return few or [*self.waiting]

    def finish(self, totals, seconds):
        """Let the experiments of these Sums go on after a pass of so many seconds."""
        with self.changed:
            for total in totals:
                self.waiting.pop(total).seconds += seconds / len(totals)
            self.n_at_work += len(totals)
            self.changed.notify_all()

    def end(self):
        """Let no experiment go on."""
        with self.changed:
            self.is_over = True
            self.changed.notify_all()


class Member(threading.Thread):
    """One of the experiments of a meeting: a function without arguments."""

    def __init__(self, meeting, function):
        super().__init__(daemon=True)
        self.meeting = meeting
        self.function = function
        self.context = copy_context()  # the executor, what NumPy does about errors
        self.result = None
        self.error = None
        self.seconds = 0.0  # of its own, and its part of the passes that it shared

    def run(self):
        """Call the function where `gather` meets the others; keep its result, or its error."""
        self.context.run(_current.set, self.meeting)
        try:
            self.meeting.begin()
            self.result = self.context.run(self.function)
        except Over:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.seconds += time.thread_time()
            self.meeting.leave()


def run(functions, gathered):
    """Run functions without arguments that gather documents; [Member], with result or error.

    gathered(Sums): one pass over their documents, in this thread.
    """
    meeting = Meeting(len(functions))
    members = [Member(meeting, function) for function in functions]
    try:
        with kept():
            for member in members:
                member.start()
        while totals := meeting.next():
            begin = time.monotonic()
            try:
                gathered(totals)
            except Exception as error:  # of the pass itself: none of them can go on
                for total in totals:
                    total.error = error
            meeting.finish(totals, time.monotonic() - begin)
    finally:
        meeting.end()
        for member in members:
            member.join(PATIENCE)
    return members
