"""The virtual clock: it jumps, it tells deadlocks, and it has no real files, processes, threads or sleeps."""

import asyncio
import gc
import platform
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from wedgehog.harness.sim.errors import SimDeadlockError, SimHorizonError, SimUnsupportedError
from wedgehog.harness.sim.loop import SimLoop
from wedgehog.harness.sim.virtual_time import START_S, a_moment
from wedgehog.harness.sim.world import simulate

UNUSED = socket.socket()
"""A real socket that is never connected."""
UNUSED.close()


def elapsed_s() -> float:
    return asyncio.get_running_loop().time() - START_S


def test_an_hour_passes_at_once():
    async def main() -> float:
        await asyncio.sleep(3600)
        return elapsed_s()

    began = time.process_time()
    assert simulate(main) == 3600
    assert time.process_time() - began < 1


def test_the_name_of_the_platform_is_known_in_virtual_time():
    """The client of openai asks for it; a new Python starts a process to find it out."""
    program = "import platform\nfrom wedgehog.harness.sim.world import SimWorld\n" + (
        "async def main(): return platform.platform()\nwith SimWorld() as world: print(world.run(main))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == platform.platform(), done.stderr


def test_timers_wake_in_the_order_of_their_times():
    async def main() -> list[int]:
        woken: list[int] = []
        await asyncio.gather(*(_wake(s, woken) for s in (30, 600, 1, 90)))
        return woken

    async def _wake(s: int, woken: list[int]) -> None:
        await asyncio.sleep(s)
        woken.append(s)

    assert simulate(main) == [1, 30, 90, 600]


def test_a_timeout_fires_before_what_would_come_later():
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.sleep(61)
        return elapsed_s()

    assert simulate(main) == 60


def test_a_moment_ends_when_time_has_passed_and_what_was_due_is_done():
    """However long that takes; what looks for a change looks as often as something can have changed."""
    seen: list[tuple[float, int]] = []
    done: list[int] = []

    async def look() -> None:
        while True:
            await a_moment(lambda: asyncio.sleep(0.002))
            seen.append((elapsed_s(), len(done)))

    async def main() -> None:
        looking = asyncio.create_task(look())
        for s in (3600, 60):
            await asyncio.sleep(s)
            await asyncio.sleep(0)
            done.append(s)
        await asyncio.sleep(1)
        looking.cancel()

    simulate(main)
    assert seen == [(3600, 1), (3660, 2)]


def test_a_moment_keeps_no_deadlock_from_being_told():
    with pytest.raises(SimDeadlockError):
        simulate(lambda: a_moment(lambda: asyncio.sleep(0.002)))


def test_a_deadlock_is_an_error_that_says_what_each_task_waits_for():
    async def waits(event: asyncio.Event) -> None:
        await event.wait()

    async def main() -> None:
        task = asyncio.create_task(waits(asyncio.Event()), name="the reader")
        await task

    with pytest.raises(SimDeadlockError) as error:
        simulate(main)
    # A thread that an earlier test of this process left is named in a line after these.
    head, first, second, *_ = str(error.value).splitlines()
    assert head == "after 0 virtual seconds every task waits for something that never comes"
    assert first.startswith("  task 1: ") and "main at test_loop.py:" in first
    assert second.startswith("  the reader: Event.wait at locks.py:") and "waits at test_loop.py:" in second


def test_a_deadlock_report_names_the_threads_that_live():
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="exporter")
    thread.start()
    try:
        with pytest.raises(SimDeadlockError, match=r"threads, which virtual time cannot wait for: .*exporter"):
            simulate(asyncio.Event().wait)
    finally:
        release.set()
        thread.join()


def test_the_simulated_time_can_have_an_end():
    async def main() -> None:
        while True:
            await asyncio.sleep(10)

    with pytest.raises(SimHorizonError, match="more than 100 virtual seconds"):
        simulate(main, loop=SimLoop(horizon_s=100))


def test_a_busy_wait_with_a_time_limit_ends():
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                while True:
                    await asyncio.sleep(0)
        return elapsed_s()

    assert simulate(main) == pytest.approx(5, abs=0.01)


def test_executors_run_inline_and_take_no_virtual_time():
    async def main() -> tuple[int, str, float]:
        thread = await asyncio.to_thread(threading.get_ident)
        with pytest.raises(ValueError, match="bad"):
            await asyncio.to_thread(int, "bad")
        return thread, await asyncio.get_running_loop().run_in_executor(None, str, 7), elapsed_s()

    assert simulate(main) == (threading.get_ident(), "7", 0)


def test_a_callback_from_another_thread_stops_the_loop():
    async def main() -> None:
        loop = asyncio.get_running_loop()
        errors: list[Exception] = []

        def call() -> None:
            try:
                loop.call_soon_threadsafe(print)
            except SimUnsupportedError as error:
                errors.append(error)

        started.append(call)
        outside.set()
        assert called.wait(5)
        assert len(errors) == 1
        await asyncio.sleep(1)

    started: list[object] = []
    outside, called = threading.Event(), threading.Event()

    def other() -> None:
        outside.wait(5)
        started[0]()  # type: ignore[operator]
        called.set()

    thread = threading.Thread(target=other, name="worker")
    thread.start()
    with pytest.raises(SimUnsupportedError, match=r"a thread \(worker\) is not simulated: it needs the live world"):
        simulate(main)
    thread.join()


def loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def blocking(func: Callable[..., object], *args: object) -> None:
    func(*args)


NOT_SIMULATED: dict[str, Callable[[], Awaitable[object]]] = {
    "a child process, the command 'git',": lambda: asyncio.create_subprocess_exec("git"),
    "a signal handler": lambda: blocking(loop().add_signal_handler, 2, print),
    "a real file descriptor": lambda: blocking(loop().add_reader, 0, print),
    "UDP": lambda: loop().create_datagram_endpoint(asyncio.DatagramProtocol, ("127.0.0.1", 1)),
    "a Unix socket": lambda: asyncio.open_unix_connection("/nowhere"),
    "a pipe": lambda: loop().connect_read_pipe(asyncio.Protocol, None),
    "a server on a real socket": lambda: loop().create_server(asyncio.Protocol, sock=UNUSED),
    "a connection over a real socket": lambda: loop().create_connection(asyncio.Protocol, sock=UNUSED),
    "a real socket": lambda: blocking(UNUSED.connect, ("127.0.0.1", 9)),
    "a blocking look-up of a host": lambda: blocking(socket.gethostbyname, "localhost"),
    "time.sleep(60), which blocks the event loop,": lambda: blocking(time.sleep, 60),
    "a thread (t)": lambda: blocking(threading.Thread(target=print, name="t").start),
}


@pytest.mark.parametrize("what", NOT_SIMULATED)
def test_what_is_real_is_refused_with_a_line_that_names_the_live_world(what: str):
    async def main() -> str:
        with pytest.raises(SimUnsupportedError) as error:
            await NOT_SIMULATED[what]()
        return str(error.value)

    assert simulate(main) == f"{what} is not simulated: it needs the live world (`--world live`)"


def test_a_child_process_can_be_started_again_outside_of_the_simulation():
    async def main() -> None:
        with pytest.raises(SimUnsupportedError, match="a child process"):
            subprocess.run(["true"], check=True)

    simulate(main)
    assert subprocess.run(["true"], check=True).returncode == 0


def test_tasks_that_are_left_are_cancelled_oldest_first():
    ended: list[str] = []

    async def lasts(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def main() -> None:
        main.tasks = [asyncio.create_task(lasts(name)) for name in "abc"]  # type: ignore[attr-defined]
        await asyncio.sleep(1)

    simulate(main)
    assert ended == ["a", "b", "c"]


def test_timers_that_are_due_at_one_time_are_called_in_the_order_in_which_they_were_set():
    async def main() -> list[int]:
        called: list[int] = []
        at = asyncio.get_running_loop().time() + 60
        timers = [asyncio.get_running_loop().call_at(at, called.append, number) for number in range(500)]
        for timer in timers[:400]:
            timer.cancel()
        await asyncio.sleep(61)
        return called

    assert simulate(main) == list(range(400, 500))


def test_cancelled_timers_are_forgotten_long_before_they_are_due():
    async def main() -> int:
        loop = asyncio.get_running_loop()
        for _ in range(10_000):
            loop.call_later(3600, int).cancel()
        return sum(isinstance(it, asyncio.TimerHandle) for it in gc.get_objects())

    assert simulate(main) < 1000
