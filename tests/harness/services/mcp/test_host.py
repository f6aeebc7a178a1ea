"""The tool host where it cannot be had, and the command that it writes."""

import asyncio
import contextlib
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.faults.result_fault import Result
from wedgehog.harness.network.base import NetworkError
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.scenario.host_tools import HostTool
from wedgehog.harness.services.mcp.channel import ToolServer
from wedgehog.harness.services.mcp.host import NoToolHostError, ToolHost

TOOLS = {"weather": HostTool(answer="21 °C")}
MARK = f"test-host-{os.getpid()}/1"


def host(way: Any, folder: Path, **more: Any) -> ToolHost:
    nobody: Any = None
    return ToolHost(TOOLS, way, folder, MARK, folder / "log", WallClock(), 1.0, nobody, nobody, **more)


async def test_a_missing_package_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With what to do about it."""
    monkeypatch.setattr("wedgehog.harness.services.mcp.host.find_spec", lambda name: None)
    with pytest.raises(
        NoToolHostError, match=r"^the tool host needs the mcp package: pip install 'wedgehog\[tools\]'$"
    ):
        async with host("http", tmp_path):
            pass


async def test_a_server_that_does_not_start_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its last words."""
    pytest.importorskip("mcp")
    monkeypatch.setattr("wedgehog.harness.services.mcp.host.PROGRAM", "wedgehog.no_such_module")
    with pytest.raises(NoToolHostError, match=r"did not start: .*No module named wedgehog\.no_such_module"):
        async with host("http", tmp_path):
            pass


async def test_the_command_is_the_owners_alone_and_stands_behind_its_pipe(tmp_path: Path):
    """It holds the secret of the control connection; the run's mark is in it, whatever the agent's client passes on."""
    pytest.importorskip("mcp")
    async with host("stdio", tmp_path, pipe=("/bin/echo", "--")) as found:
        assert found.command.stat().st_mode & 0o777 == 0o700
        said = subprocess.run([found.command], capture_output=True, text=True, check=True, env={}).stdout
        assert said.startswith("-- env WEDGEHOG_TOOLS=127.0.0.1:") and f"WEDGEHOG_RUN={MARK}/agent/tools" in said
        assert found.pids == ()


class Told:
    """The faults of each result, and the reports of the host."""

    def __init__(self, **harm: Any) -> None:
        self.harm, self.said = harm, []  # type: ignore[var-annotated]
        self.broken: Exception | None = None

    def asked(self, token: str, result: Result) -> Any:
        self.said.append(("asked", token, result.delay_s))
        return replace(result, **self.harm), ["fault"]

    def written(self, faults: Any) -> None:
        self.said.append(("written", *faults))

    async def at(self, token: str, spot: Any) -> None:
        self.said.append(("at", token, spot))
        if self.broken is not None:
            raise self.broken

    def failed(self, wrong: Exception) -> None:
        self.said.append(("failed", str(wrong)))

    def called(self, tool: str, token: str, server: int) -> None:
        self.said.append(("called", tool, token, server))

    async def beacon(self, token: str, phase: str, exit_code: int | None) -> None:
        self.said.append((phase, token, exit_code))


@pytest.fixture
async def asking(tmp_path: Path, manual_clock: Any) -> Any:
    """A host of which a server asks, time scale 10; the model has called `weather` once."""
    pytest.importorskip("mcp")
    stack = contextlib.AsyncExitStack()

    async def make(tool: HostTool, **harm: Any) -> Any:
        told: Any = Told(**harm)
        found = ToolHost({"weather": tool}, "stdio", tmp_path, MARK, tmp_path / "log", manual_clock, 10.0, told, told)
        await stack.enter_async_context(found)
        found.offers.add("wbcdf1x1x1", "weather", {})
        server = ToolServer(7, "stdio", asyncio.get_running_loop().create_future())

        def ask(do: str, **more: Any) -> Any:
            return asyncio.create_task(found._asked(server, {"do": do, **more}))  # type: ignore[arg-type]

        return told, ask

    yield make
    await stack.aclose()


CALL = {"name": "weather", "arguments": {}}
WRITTEN = {"token": "wbcdf1x1x1", "client": None, "written": 0}


async def test_a_call_is_told_begun_held_and_done(asking: Any, manual_clock: Any):
    """The tool's own time is the story's, a fault's is real by now; its word comes last in the text."""
    told, ask = await asking(HostTool(answer="21 °C", delay_s=20), copies=2)
    call = ask("call", **CALL)
    await manual_clock.advance(1.9)
    assert not call.done()
    await manual_clock.advance(0.2)
    form = {"copies": 2, "broken": False, "bytes": 0, "empty": False, "by_protocol": False, "image": False}
    assert call.result() == {"token": "wbcdf1x1x1", "text": "21 °C", "is_error": False, **form}
    await ask("write", **WRITTEN)
    await ask("written", **WRITTEN)
    before = [("called", "weather", "1.1.1", 7), ("started", "1.1.1", None), ("asked", "1.1.1", 2.0)]
    assert told.said == [*before, ("at", "1.1.1", None), ("written", "fault"), ("done", "1.1.1", 0)]


async def test_a_late_result_waits_and_a_lost_one_never_comes(asking: Any, manual_clock: Any):
    """However long it is waited for; nothing of it is done."""
    _, ask = await asking(HostTool(), delay_s=30.0)
    late = ask("call", **CALL)
    await manual_clock.advance(29)
    assert not late.done()
    await manual_clock.advance(2)
    assert late.done()
    told, ask = await asking(HostTool(), lost=True)
    lost = ask("call", **CALL)
    await manual_clock.advance(10_000)
    assert not lost.done() and not any(said[0] == "done" for said in told.said)
    lost.cancel()


async def test_a_link_that_fails_is_told_and_nothing_of_the_result_passes(asking: Any, manual_clock: Any):
    """It is our trouble, and no server's."""
    told, ask = await asking(HostTool())
    told.broken = NetworkError("it is gone")
    may = ask("write", **WRITTEN)
    await manual_clock.advance(100)
    assert told.said[-1] == ("failed", "it is gone") and not may.done()
    may.cancel()


async def test_a_tool_that_fails_is_done_with_an_error(asking: Any, manual_clock: Any):
    """By its own words; exit code 1."""
    told, ask = await asking(HostTool(error="no such city"))
    call = ask("call", **CALL)
    await manual_clock.advance(0.1)
    assert (call.result()["text"], call.result()["is_error"]) == ("no such city", True)
    await ask("written", **WRITTEN)
    assert told.said[-1] == ("done", "1.1.1", 1)


async def test_a_call_that_the_model_never_made_is_answered_and_not_harmed(tmp_path: Path, manual_clock: Any):
    """It has no place in the story; that it came is on record."""
    pytest.importorskip("mcp")
    told: Any = Told(lost=True)
    async with ToolHost(TOOLS, "stdio", tmp_path, MARK, tmp_path / "log", manual_clock, 1.0, told, told) as found:
        server: Any = ToolServer(7, "stdio", asyncio.get_running_loop().create_future())
        call = asyncio.create_task(found._asked(server, {"do": "call", **CALL}))  # type: ignore[arg-type]
        await manual_clock.advance(0.1)
        assert (call.result()["text"], call.result()["token"]) == ("21 °C", "")
    assert told.said == [("called", "weather", "", 7)]


async def test_a_process_without_the_secret_is_no_server(tmp_path: Path):
    """The connection is closed, and nothing is sent."""
    pytest.importorskip("mcp")
    async with host("stdio", tmp_path) as found:
        at, port, _ = found._control.secret_address.split(":")
        reader, writer = await asyncio.open_connection(at, int(port))
        writer.write(b'{"secret": "guessed", "pid": %d, "way": "stdio"}\n' % os.getpid())
        assert await asyncio.wait_for(reader.read(), 5) == b"" and found.pids == ()
        writer.close()
