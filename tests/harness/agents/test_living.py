"""An agent that stays: as lines, over the Agent Client Protocol, and in a terminal."""

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from wedgehog.harness.agents.base import AgentError, DeliveredSignal, Session
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.agents.tui import Screen
from wedgehog.harness.sandbox.capture import Capture
from wedgehog.harness.sandbox.signals import deliver, tree

AGENT = """
    import json, os, pathlib, signal, sys, threading, time

    way, how = sys.argv[1:3]
    stop = threading.Event()

    def said(message):
        word = message.split()[-1]
        if word == "die": print("I am gone", file=sys.stderr, flush=True); os._exit(4)
        if word == "slow":
            stop.clear()
            pathlib.Path("up").write_text("1")
            return "stopped" if stop.wait(30) else "slow"
        return f"{how} {os.getpid()} says {word}"

    def lines():
        signal.signal(signal.SIGINT, lambda *_: stop.set())
        print(json.dumps({"type": "ready"}), flush=True)
        def work(text):
            error = {"error": "no luck"} if text.endswith("luck") else {}
            print("a word that is no JSON")
            print(json.dumps({"type": "done", "text": said(text), **error}), flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            if asked.get("cancel"): stop.set()
            else: threading.Thread(target=work, args=(asked["text"],)).start()

    def plain():
        signal.signal(signal.SIGINT, lambda *_: stop.set())
        print("> ", end="", flush=True)
        for line in sys.stdin:
            print(said(line) + "\\n> ", end="", flush=True)

    def tui():
        signal.signal(signal.SIGINT, lambda *_: stop.set())
        sys.stdin.reconfigure(encoding="utf-8")
        print("\\x1b[2J\\x1b[HThe best agent\\n-- 1 model --\\n> ", end="", flush=True)
        for line in sys.stdin:
            print("working", end="", flush=True)
            time.sleep(0.1)
            print("\\r\\x1b[K\\x1b[32m" + said(line) + "\\x1b[0m\\n-- 2 model --\\n> ", end="", flush=True)

    def acp():
        def send(**words): print(json.dumps({"jsonrpc": "2.0", **words}), flush=True)
        def chunk(kind, text):
            update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
            send(method="session/update", params={"sessionId": "s", "update": update})
        def work(number, text):
            if text.endswith("luck"):
                return send(id=number, error={"code": -32000, "message": "no luck", "data": {"details": "at all"}})
            if text.endswith("may I"):
                options = [{"optionId": "n", "kind": "reject_once"}, {"optionId": "y", "kind": "allow_once"}]
                return send(id=99, method="session/request_permission", params={"options": options, "sessionId": "s"})
            words = said(text)
            chunk("agent_thought_chunk", "hm")
            chunk("agent_message_chunk", words[:5])
            chunk("agent_message_chunk", words[5:])
            send(id=number, result={"stopReason": "cancelled" if words == "stopped" else "end_turn"})
        print("a banner that is no JSON", flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            method, number, params = asked.get("method"), asked.get("id"), asked.get("params", {})
            if method == "initialize":
                send(id=number, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
            elif method == "session/new": send(id=number, result={"sessionId": "s"})
            elif method == "session/load":
                globals()["how"] = "loaded " + params["sessionId"]
                send(id=number, result={})
            elif method == "session/prompt":
                prompt = number
                threading.Thread(target=work, args=(number, params["prompt"][0]["text"])).start()
            elif method == "session/cancel": stop.set()
            else:
                text = "allowed" if asked["result"]["outcome"].get("optionId") == "y" else "not allowed"
                chunk("agent_message_chunk", text)
                send(id=prompt, result={"stopReason": "end_turn"})

    globals()[way]()
"""


def start(way: str, how: str = "started") -> list[str]:
    return ["{python}", "-S", "-E", "{here}/agent.py", way, how]


JSON = {"ready": {"type": "ready"}, "send": {"text": "{message}"}, "done": {"type": "done"}, "answer": "jsonl:text"}
WAYS: dict[str, dict[str, Any]] = {
    "lines": {"lines": {"start": start("lines"), "resume": start("lines", "resumed"), "error": "jsonl:error", **JSON}},
    "plain": {"lines": {"start": start("plain"), "resume": start("plain", "resumed"), "ready": "^> $", "done": "^> $"}},
    "tui": {"tui": {"start": start("tui"), "resume": start("tui", "resumed"), "ready": "^> $", "quiet_s": 0.2}},
    "acp": {"acp": {"start": start("acp")}},
}
AGAIN = {"lines": "resumed", "plain": "resumed", "tui": "resumed", "acp": "loaded s"}
"""What a process says that was started for a session that exists."""
every = pytest.mark.parametrize("way", WAYS)


async def works(context: Any) -> None:
    """Return once the agent is in the middle of a message."""
    async with asyncio.timeout(15):
        while not (context.cwd / "up").exists():
            await asyncio.sleep(0.01)
    (context.cwd / "up").unlink()


def hit(session: Session, context: Any, number: signal.Signals) -> None:
    assert session.leader is not None
    leader = session.leader.pid
    assert deliver(lambda: tree(leader), number)
    session.signalled(DeliveredSignal(number, context.clock.now() + 1.0))


@every
async def test_one_process_takes_message_after_message(spec_of: Callable[..., Any], context: Any, way: str):
    """Each answer is what its own message got; the process ends with the run."""
    async with open_agent(spec_of(AGENT, **WAYS[way]), context) as session:
        first = await session.say("m1 hello", first=True)
        pid = session.started.pid
        second = await session.say("m2 again", first=False)
        assert session.started.pid == pid
    assert [first.answer.strip(), second.answer.strip()] == [
        f"started {pid} says hello",
        f"started {pid} says again",
    ], (first, second)
    assert (first.error, first.raised, first.exit_code, first.ended) == ("", None, None, "by itself")
    assert pid is not None and not psutil.pid_exists(pid)


async def test_a_pattern_that_recognises_a_json_line_leaves_the_answer_in_it(spec_of: Callable[..., Any], context: Any):
    """Only a prompt says nothing else."""
    words = {**WAYS["lines"]["lines"], "done": '"type": "done".*}$'}
    async with open_agent(spec_of(AGENT, lines=words), context) as session:
        outcome = await session.say("m1 hello", first=True)
    assert outcome.answer.endswith("says hello")


async def test_what_a_process_says_before_anybody_listens_is_not_lost(tmp_path: Path):
    """A process may be ready before the call that starts it returns."""
    out = Capture(tmp_path / "log")
    chunks: list[bytes] = []
    os.write(out.write_end, b"ready\n")
    out.started()
    await out.drained(1)
    out.listen(chunks.append)
    out.close()
    assert chunks == [b"ready\n", b""]


@every
async def test_a_stopped_turn_ends_and_the_process_stays(spec_of: Callable[..., Any], context: Any, way: str):
    """By a signal, by the key of a terminal, or by the protocol's own message."""
    async with open_agent(spec_of(AGENT, **WAYS[way]), context) as session:
        turn = asyncio.create_task(session.say("m1 slow", first=True))
        await works(context)
        await session.abort()
        outcome = await turn
        assert (outcome.ended, outcome.answer.strip(), outcome.exit_code) == ("aborted", "stopped", None)
        assert "started" in (await session.say("m2 hello", first=False)).answer


@every
async def test_a_killed_process_is_started_again_for_the_same_session(
    spec_of: Callable[..., Any], context: Any, way: str
):
    """The turn counts as killed; so does a kill between two messages, whose next one is answered."""
    async with open_agent(spec_of(AGENT, **WAYS[way]), context) as session:
        turn = asyncio.create_task(session.say("m1 slow", first=True))
        await works(context)
        hit(session, context, signal.SIGKILL)
        outcome = await turn
        assert (outcome.ended, outcome.exit_code) == ("killed", -signal.SIGKILL)
        again = (await session.say("m2 hello", first=False)).answer
        assert again.strip().startswith(AGAIN[way]), again
        hit(session, context, signal.SIGTERM)
        assert AGAIN[way] in (await session.say("m3 hello", first=False)).answer


@every
async def test_a_process_that_ends_by_itself_in_a_turn_is_an_error_with_its_exit_code(
    spec_of: Callable[..., Any], context: Any, way: str
):
    """Its user sees that; the next message gets a new process."""
    async with open_agent(spec_of(AGENT, **WAYS[way]), context) as session:
        outcome = await session.say("m1 die", first=True)
        assert (outcome.raised, outcome.exit_code, outcome.ended) == (
            "the process ended with exit code 4",
            4,
            "by itself",
        )
        assert "I am gone" in outcome.stderr + outcome.answer
        assert AGAIN[way] in (await session.say("m2 hello", first=False)).answer


@pytest.mark.parametrize("way", ["lines", "tui"])
async def test_the_last_words_of_a_process_that_ends_before_it_is_ready_are_kept(
    spec_of: Callable[..., Any], context: Any, way: str
):
    """They say why it did not start; what is dropped before a turn is what an earlier turn said."""
    code = 'import sys; sys.exit("no such session")'
    async with open_agent(spec_of(code, **WAYS[way]), context) as session:
        outcome = await session.say("m1 hello", first=True)
    assert outcome.exit_code == 1
    assert "no such session" in outcome.stderr + outcome.answer


@every
async def test_a_second_message_gets_a_second_process_which_ends_with_its_turn(
    spec_of: Callable[..., Any], context: Any, way: str
):
    """As in a second window on the same home; the first one goes on, and its deadline ends it."""
    async with open_agent(spec_of(AGENT, **WAYS[way]), context) as session:
        turn = asyncio.create_task(session.say("m1 slow", first=True))
        await works(context)
        second = session.beside()
        assert second is not None
        answer = (await second.say("m2 hello", first=False)).answer
        assert AGAIN[way] in answer and second.leader is None and not turn.done()
        os.kill(session.started.pid or 0, signal.SIGSTOP)
        await session.end_turn(0.1)
        outcome = await turn
        assert (outcome.ended, outcome.exit_code) == ("deadline", -signal.SIGKILL)


@pytest.mark.parametrize("way", ["lines", "acp"])
async def test_an_error_has_a_place_of_its_own(spec_of: Callable[..., Any], context: Any, way: str):
    """Where the spec says, or where the protocol has it."""
    async with open_agent(spec_of(AGENT, **WAYS[way]), context) as session:
        outcome = await session.say("m1 no luck", first=True)
    assert outcome.error == {"lines": "no luck", "acp": "no luck: at all"}[way]


@pytest.mark.parametrize(("way", "log"), [("acp", True), ("lines", True), ("plain", False)])
async def test_the_standard_error_of_an_agent_that_speaks_a_protocol_is_its_log(
    spec_of: Callable[..., Any], context: Any, way: str, log: bool
):
    """A person at a prompt reads what the program prints there."""
    async with open_agent(spec_of(AGENT, **WAYS[way]), context) as session:
        outcome = await session.say("m1 hello", first=True)
        assert (outcome.log_on_stderr, outcome.appends) == (log, way == "acp")


async def test_a_permission_that_an_acp_agent_asks_for_is_given(spec_of: Callable[..., Any], context: Any):
    """Thoughts are no part of the answer, and a banner on stdout disturbs nothing."""
    async with open_agent(spec_of(AGENT, **WAYS["acp"]), context) as session:
        assert (await session.say("m1 may I", first=True)).answer == "allowed"


@pytest.mark.parametrize("how", [{"cancel": True}, "EOF"])
async def test_a_turn_in_lines_is_stopped_as_the_spec_says(spec_of: Callable[..., Any], context: Any, how: Any):
    """By a line; by the end of its stdin, which this agent does not take for one."""
    spec = spec_of(AGENT, lines={**WAYS["lines"]["lines"], "abort": how})
    async with open_agent(spec, context) as session:
        turn = asyncio.create_task(session.say("m1 slow", first=True))
        await works(context)
        if how == "EOF":
            await session.end_turn(0.1)
            assert (await turn).ended == "deadline"
        else:
            await session.abort()
            assert ((await turn).ended, (await turn).answer) == ("aborted", "stopped")


async def test_a_program_that_never_is_ready_ends_with_its_deadline(spec_of: Callable[..., Any], context: Any):
    """It is no answer, and the message was not given."""
    spec = spec_of(AGENT, lines={**WAYS["plain"]["lines"], "ready": "^never$"})
    async with open_agent(spec, context) as session:
        turn = asyncio.create_task(session.say("m1 hello", first=True))
        async with asyncio.timeout(10):
            while session.leader is None:
                await asyncio.sleep(0.01)
        await session.end_turn(0.1)
        assert ((await turn).ended, (await turn).answer) == ("deadline", "")


async def test_an_acp_agent_that_refuses_its_session_says_so_in_the_turn(spec_of: Callable[..., Any], context: Any):
    """The protocol's error is what its user reads."""
    code = AGENT.replace(
        'send(id=number, result={"sessionId": "s"})', 'send(id=number, error={"code": 1, "message": "full"})'
    )
    async with open_agent(spec_of(code, **WAYS["acp"]), context) as session:
        outcome = await session.say("m1 hello", first=True)
    assert (outcome.raised, outcome.error) == ("full", "full")


async def test_an_acp_agent_that_wants_its_user_to_sign_in_tells_the_ways(spec_of: Callable[..., Any], context: Any):
    """A spec chooses one of them."""
    code = AGENT.replace(
        'send(id=number, result={"sessionId": "s"})', 'send(id=number, error={"code": -32000, "message": "sign in"})'
    ).replace('"loadSession": True}', '"loadSession": True}, "authMethods": [{"id": "key", "name": "By key"}]')
    async with open_agent(spec_of(code, **WAYS["acp"]), context) as session:
        outcome = await session.say("m1 hello", first=True)
    assert outcome.raised == "sign in; choose a method with `acp: {auth: …}`: key"


@pytest.mark.parametrize(("way", "needs"), [("acp", "acp"), ("tui", "pty")])
async def test_a_missing_package_is_named_with_its_extra(
    spec_of: Callable[..., Any], context: Any, monkeypatch: pytest.MonkeyPatch, way: str, needs: str
):
    """One line, with the command that installs it."""

    def gone(name: str) -> Any:
        raise ModuleNotFoundError(name=way)

    monkeypatch.setattr("wedgehog.harness.agents.opening.import_module", gone)
    with pytest.raises(AgentError, match=rf"pip install 'wedgehog\[{needs}\]'"):
        async with open_agent(spec_of(AGENT, **WAYS[way]), context):
            pass


STYLES = (b"[?4m", b"[4:3m", b"[38:2::1:2:3m", b"[1;31m", b"[1;2 q", b"(B", b"[3J", b"[!p")
QUESTIONS = (b"[?6n", b"[?2026$p", b"P+q544e\x1b\\", b"]11;?\x07")
OTHERS = (b"[<u", b"[>1u", b"[=1;1u", b"_Gi=31;AAAA\x1b\\", b"]8;;http://x\x1b\\")


@pytest.mark.parametrize("sequence", [*STYLES, *QUESTIONS, *OTHERS])
def test_what_a_program_says_to_its_terminal_is_not_on_the_screen(sequence: bytes):
    """Also if it comes in two pieces, cut anywhere."""
    written = b"a\x1b" + sequence + b"b"
    for cut in range(len(written)):
        screen = Screen(40, 5)
        screen.feed(written[:cut])
        screen.feed(written[cut:])
        assert screen.shown[0] == "ab", cut


async def test_a_message_longer_than_a_screen_and_an_answer_that_scrolls_are_read_whole(
    spec_of: Callable[..., Any], context: Any, tmp_path: Path
):
    """What has left the screen at the top can still be scrolled back to."""
    code = AGENT.replace('return f"{how}', 'return "\\n".join(map(str, range(60))) + f"\\n{how}')
    spec = spec_of(code, tui={**WAYS["tui"]["tui"], "rows": 10, "columns": 40})
    async with open_agent(spec, replace(context, folder=tmp_path / "long")) as session:
        for number in (1, 2):
            outcome = await session.say(f"m{number} {'word ' * 30}hello", first=number == 1)
            assert [line.strip() for line in outcome.answer.splitlines()][:60] == list(map(str, range(60)))
            assert outcome.answer.strip().endswith("says hello")


async def test_a_prompt_before_the_message_that_was_typed_there_does_not_say_that_the_agent_waits(
    spec_of: Callable[..., Any], context: Any
):
    """It stays on the screen while the agent works, and so do those of earlier messages."""
    spec = spec_of(AGENT.replace("time.sleep(0.1)", "time.sleep(1)"), tui={**WAYS["tui"]["tui"], "ready": "^> "})
    async with open_agent(spec, context) as session:
        for number in (1, 2):
            outcome = await session.say(f"m{number} hello", first=number == 1)
            assert outcome.answer.strip().endswith("says hello")


@pytest.mark.parametrize("waited_s", [0.0, 1.0])
async def test_a_screen_that_stands_still_while_the_agent_waits_for_a_processor_does_not_end_its_turn(
    spec_of: Callable[..., Any], context: Any, waited_s: float
):
    """Its prompt is there again, and the rest of the machine keeps it from drawing more."""
    code = AGENT.replace('print("working"', 'print("> "').replace("time.sleep(0.1)", "time.sleep(0.6)")
    spec = spec_of(code, tui=WAYS["tui"]["tui"])
    async with open_agent(spec, replace(context, waited_s=lambda since_s: waited_s)) as session:
        outcome = await session.say("m1 hello", first=True)
        assert outcome.answer.strip().endswith("says hello") is (waited_s > 0)
