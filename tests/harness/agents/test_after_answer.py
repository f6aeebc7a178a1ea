"""The end of a turn says how long ago its user had the answer: held back for 20 s, and 5 s before the end."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from wedgehog.harness.agents import tui
from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.lines import LinesSession
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.surroundings import Surroundings
from wedgehog.harness.agents.tui import TuiSession
from wedgehog.harness.sandbox.arrivals import Arrivals
from wedgehog.harness.sandbox.owned import Tree
from wedgehog.harness.sim.clock import SimClock
from wedgehog.harness.sim.world import simulate

HELD_S, GOES_ON_S = 20.0, 5.0
SIMULATED = f"""
    import asyncio, json, sys

    async def answer(message, **given):
        await asyncio.sleep({HELD_S})
        return "Done"

    async def whole(reader, writer):
        await streamed(reader, writer, b"")

    async def streamed(reader, writer, rest=b"\\n"):
        asked = await reader.readuntil(b"\\r\\n\\r\\n")
        writer.write(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\n")
        if asked.startswith(b"POST"):
            await asyncio.sleep({HELD_S})
            writer.write(b"Done")
            await asyncio.sleep({GOES_ON_S} if rest else 0)
            writer.write(rest)
        writer.close()

    async def service(handle, port):
        await (await asyncio.start_server(handle, "127.0.0.1", int(port))).serve_forever()

    async def prints(argv):
        await asyncio.sleep({HELD_S})
        for line in json.loads(argv[0]):
            print(line, file=sys.stderr if line == "Error" else sys.stdout, flush=True)
            await asyncio.sleep({GOES_ON_S})

    async def streams(argv):
        await service(streamed, argv[0])

    async def replies(argv):
        await service(whole, argv[0])
"""
HTTP = {"start": ["{python}", "agent.py", "{port}"], "ready": "/", "url": "/", "body": {}, "answer": "text"}


class Silent:
    """Its stderr, on which nothing comes."""

    def listen(self, heard: Callable[[bytes], None]) -> None: ...


class Program:
    """A process that does what its `reads` does with what it is told; without a real one."""

    pid, exit_code = None, None

    def __init__(self, reads: Callable[["Program", str], None]) -> None:
        self.stdout = self.stdin = self
        self.stderr = Silent()
        self._reads = reads

    def listen(self, heard: Callable[[bytes], None]) -> None:
        self._heard, self._stdout = heard, Arrivals()

    def write(self, data: bytes) -> None:
        self._reads(self, data.decode())

    def says(self, after_s: float, text: str) -> None:
        asyncio.get_running_loop().call_later(after_s, self._says, text)

    def _says(self, text: str) -> None:
        self._stdout.add(text.encode())
        self._heard(text.encode())

    def arrived(self) -> tuple[Arrivals, Arrivals]:
        return self._stdout, Arrivals()

    def output(self) -> tuple[str, str]:
        return "", ""

    def forget_output(self) -> None:
        pass

    async def ended(self) -> None:
        await asyncio.Event().wait()


def lines(program: Program, asked: str) -> None:
    program.says(1, '{"text": "Do"}\n{"text"')
    program.says(HELD_S, ': "ne"}\n{"saves": 1}\n')
    program.says(HELD_S + 3, '{"saves": 2}\n')
    program.says(HELD_S + GOES_ON_S, '{"end": true}\n')


def plain(program: Program, asked: str) -> None:
    program.says(HELD_S, "Done\n")
    program.says(HELD_S + GOES_ON_S, "\n\n> ")


def acp(program: Program, asked: str) -> None:
    def send(after_s: float, **words: Any) -> None:
        program.says(after_s, json.dumps({"jsonrpc": "2.0", **words}) + "\n")

    def chunk(after_s: float, kind: str, text: str) -> None:
        update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
        send(after_s, method="session/update", params={"sessionId": "s", "update": update})

    told = json.loads(asked)
    if told["method"] != "session/prompt":
        return send(0, id=told["id"], result={"protocolVersion": 1, "sessionId": "s"})
    chunk(1, "agent_message_chunk", "Do")
    chunk(HELD_S, "agent_message_chunk", "ne")
    chunk(HELD_S + 3, "agent_thought_chunk", "I save it")
    chunk(HELD_S + 4, "agent_message_chunk", "\n")
    send(HELD_S + GOES_ON_S, id=told["id"], result={"stopReason": "end_turn"})


def screen(program: Program, asked: str) -> None:
    if asked != "\r":
        return program.says(0, asked)
    program.says(0, "\r\n* works 0 s")
    program.says(HELD_S, "\r\x1b[K● Done\r\n")
    for second in range(int(GOES_ON_S)):
        program.says(HELD_S + second + 0.3, "\x1b[A\r\x1b[K\r\n")
        program.says(HELD_S + second + 0.6, f"\x1b[A\r○ Done\r\n* saves {second} s\r")
    program.says(HELD_S + GOES_ON_S, "\x1b[K> ")
    for tick in range(20):
        program.says(HELD_S + GOES_ON_S + tick / 2, "\x1b[7m \x1b[m\x1b[D")


async def outcome_of(session: Any) -> tuple[str, float | None]:
    outcome = await session.say("go", first=True)
    return outcome.answer.strip(" \n●○"), outcome.after_answer_s


def acp_session(*given: Any) -> Any:
    """Its protocol is not imported when tests are collected: that takes half a second, and each worker collects all."""
    from wedgehog.harness.agents.acp import AcpSession

    return AcpSession(*given)


STARTED, SMALL = {"start": ["x"]}, {"rows": 6, "columns": 20}
STAYING: dict[Any, tuple[Any, dict[str, Any], float]] = {
    lines: (LinesSession, {"lines": {**STARTED, "done": {"end": True}, "answer": "joined:text"}}, GOES_ON_S),
    plain: (LinesSession, {"lines": {**STARTED, "done": "^> $"}}, GOES_ON_S),
    acp: (acp_session, {"acp": STARTED}, GOES_ON_S),
    screen: (TuiSession, {"tui": {**STARTED, "ready": "^> ?$", "busy": "saves", "quiet_s": 2, **SMALL}}, GOES_ON_S + 2),
}


@pytest.mark.parametrize("way", STAYING)
def test_an_agent_that_stays_has_answered_when_the_last_of_its_answer_came(
    spec_of: Callable[..., AgentSpec], context: AgentContext, monkeypatch: pytest.MonkeyPatch, way: Any
):
    """What it does until it says that its turn is over comes after the answer; so does a screen that blinks."""
    kind, keys, after_s = STAYING[way]
    spec = spec_of(**keys)

    async def main() -> tuple[str, float | None]:
        program = Program(way)

        class Start:
            async def start(self, argv: list[str], **how: Any) -> Program:
                if way is screen:
                    program.says(0, "> ")
                return program

        monkeypatch.setattr(tui, "open_terminal", lambda columns, rows: (-1, -1))
        monkeypatch.setattr(tui, "press", lambda terminal, keys: program.write(keys) or len(keys))
        there = replace(context, clock=SimClock())
        return await outcome_of(kind(spec, there, Surroundings({}, {}, ""), cast(Tree, Start())))

    answer, took_s = simulate(main)
    assert (answer, took_s) == ("Done", pytest.approx(after_s, abs=0.1))


@pytest.mark.parametrize(
    ("keys", "after_s"),
    [
        ({"callable": "agent.py:answer"}, 0.0),
        ({"http": HTTP, "simulate": "{here}/agent.py:replies"}, 0.0),
        ({"http": HTTP, "simulate": "{here}/agent.py:streams"}, GOES_ON_S),
    ],
)
def test_a_function_has_answered_when_it_returns_and_a_service_with_the_last_byte_of_the_answer(
    spec_of: Callable[..., AgentSpec], context: AgentContext, keys: dict[str, Any], after_s: float
):
    """Not when the model's last reply was over."""
    spec = spec_of(SIMULATED, **keys)

    async def main() -> tuple[str, float | None]:
        async with open_agent(spec, replace(context, clock=SimClock(), simulated=True)) as session:
            return await outcome_of(session)

    assert simulate(main) == ("Done", pytest.approx(after_s, abs=0.1))


DO, NE, OVER = '{"text": "Do"}', '{"text": "ne"}', '{"over": true}'


@pytest.mark.parametrize(
    ("answer", "printed", "after"),
    [
        ("jsonl:text", [DO, NE, OVER], 2),
        ("jsonl:text", [DO, OVER, NE], 1),
        ("json:answer", ["log", '{"answer":', '"Done"}', ""], 2),
        ("stdout", [DO, "Error", OVER, ""], 2),
        ("stderr", [DO, "Error", OVER, ""], 3),
        ("jsonl:text", [OVER, "Error", OVER], 2),
    ],
)
def test_a_command_has_answered_with_the_output_that_completes_its_answer(
    spec_of: Callable[..., AgentSpec], context: AgentContext, answer: str, printed: list[str], after: int
):
    """What it prints after that, and its exit, come later; a plain answer ends with the last words."""
    line = ["{python}", "agent.py", json.dumps(printed)]
    spec = spec_of(SIMULATED, command=line, simulate="{here}/agent.py:prints", answer=answer)

    async def main() -> float | None:
        async with open_agent(spec, replace(context, clock=SimClock(), simulated=True)) as session:
            return (await session.say("go", first=True)).after_answer_s

    assert simulate(main) == pytest.approx(after * GOES_ON_S, abs=0.1)
