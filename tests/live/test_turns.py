"""One run at a time; of each page only its newest request."""

import asyncio
import threading
from functools import wraps

import pytest

from minitx.analysis.live import turns

SECONDS = 20  # of a test, at most


class Work:
    """Work that says when it began, and ends when it is told to."""

    def __init__(self, result, stages=1):
        self.result = result
        self.stages = stages
        self.began, self.may_end = threading.Event(), threading.Event()

    def __call__(self, check):
        self.began.set()
        assert self.may_end.wait(SECONDS)
        for _ in range(self.stages):
            check()
        return self.result

    async def has_begun(self):
        while not self.began.is_set():
            await asyncio.sleep(0.001)


def started(line, page, work):
    return asyncio.create_task(line.run(page, work))


def end(*works):
    for work in works:
        work.may_end.set()


def in_time(test):
    """An asynchronous test, which ends within SECONDS."""

    @wraps(test)
    def run():
        asyncio.run(asyncio.wait_for(test(), SECONDS))

    return run


@in_time
async def test_a_newer_request_drops_the_running_one_between_its_stages():
    line, first, second = turns.Turns(), Work("first"), Work("second")
    older = started(line, "page", first)
    await first.has_begun()
    newer = started(line, "page", second)
    await asyncio.sleep(0.01)
    assert not second.began.is_set()  # one at a time
    end(first, second)
    with pytest.raises(turns.Superseded):
        await older
    assert await newer == "second"
    assert not line.is_running and not line.newest and not line.waiting


@in_time
async def test_an_older_one_that_waits_is_answered_at_once():
    line, first = turns.Turns(), Work("first")
    running = started(line, "other", first)
    await first.has_begun()
    works = [Work(n) for n in range(20)]
    tasks = []
    for work in works:
        tasks.append(started(line, "page", work))
        await asyncio.sleep(0)
    outcomes = await asyncio.gather(*tasks[:-1], return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [turns.Superseded] * 19
    assert not any(work.began.is_set() for work in works)  # the other page still runs
    end(first, works[-1])
    assert (await running, await tasks[-1]) == ("first", 19)


@in_time
async def test_pages_take_turns_and_no_more_wait_than_there_is_room():
    line, first, order = turns.Turns(), Work("first"), []
    tasks = [started(line, "first", first)]
    await first.has_begun()
    for n in range(turns.WAITING):
        tasks.append(started(line, f"page{n}", lambda check, n=n: order.append(n)))
        await asyncio.sleep(0)
    with pytest.raises(turns.Busy):
        await line.run("one too many", Work("late"))
    # a page that waits already keeps its place
    newer = started(line, "page0", lambda check: order.append("newer"))
    with pytest.raises(turns.Superseded):
        await tasks.pop(1)
    end(first)
    await asyncio.gather(newer, *tasks)
    assert order == ["newer", *range(1, turns.WAITING)]


@in_time
async def test_a_cancelled_request_gives_its_turn_away():
    line, first, second, third = turns.Turns(), Work("first"), Work("second"), Work("third")
    running = started(line, "a", first)
    await first.has_begun()
    waiting = started(line, "b", second)
    last = started(line, "c", third)
    await asyncio.sleep(0)
    waiting.cancel()
    end(first, third)
    assert (await running, await last) == ("first", "third")
    assert not line.is_running and not line.newest and not line.waiting


@in_time
async def test_work_that_fails_ends_its_turn():
    line = turns.Turns()

    def fails(check):
        raise ValueError("no such head")

    for _ in range(3):
        with pytest.raises(ValueError, match="no such head"):
            await line.run("page", fails)
    assert await line.run("page", lambda check: "fine") == "fine"
