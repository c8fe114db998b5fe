"""Who runs next: one model run at a time, and of each page only its newest request."""

import asyncio

import anyio.to_thread

WAITING = 32  # pages, at most, that wait for their turn


class Superseded(Exception):
    """A newer request of the same page has come."""


class Busy(Exception):
    """Too many pages wait."""


class Turns:
    """Pages take turns in the order in which they came; a newer request takes its page's place."""

    def __init__(self):
        self.newest = {}  # page -> its newest request that is waiting or running
        self.waiting = {}  # page -> the future that ends its waiting
        self.is_running = False

    async def run(self, page, work):
        """What work(check) returns, in a thread.

        check(): raises Superseded once a newer request of this page has come; the work calls it
        between its stages. Raises Superseded, or Busy.
        """
        self._supersede(page)
        request = self.newest[page] = object()

        def check():
            if self.newest.get(page) is not request:
                raise Superseded

        try:
            await self._turn(page)
            try:
                check()
                return await anyio.to_thread.run_sync(work, check)
            finally:
                self._next()
        finally:
            if self.newest.get(page) is request:
                del self.newest[page]

    def _supersede(self, page):
        """End the waiting of this page's older request; Busy if there is no room for a new one."""
        older = self.waiting.get(page)
        if older is None and self.is_running and len(self.waiting) >= WAITING:
            raise Busy
        if older is not None and not older.done():
            older.set_exception(Superseded())

    async def _turn(self, page):
        """Wait until nothing runs."""
        if not self.is_running:
            self.is_running = True
            return
        turn = self.waiting[page] = asyncio.get_running_loop().create_future()
        try:
            await turn
        except BaseException:
            if self.waiting.get(page) is turn:
                del self.waiting[page]
            elif turn.done() and not turn.cancelled() and turn.exception() is None:
                self._next()  # its turn had come when it was cancelled
            raise

    def _next(self):
        """Give the turn to the page that has waited longest."""
        while self.waiting:
            turn = self.waiting.pop(next(iter(self.waiting)))
            if not turn.done():
                turn.set_result(None)
                return
        self.is_running = False
