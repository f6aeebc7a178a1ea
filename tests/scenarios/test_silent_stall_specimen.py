"""The specimen of silent-stall: what each of its fixes changes."""

import asyncio
import json
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

SPECIMEN = Path(__file__).parents[2] / "scenarios/incidents/silent-stall/specimen.py"
FIXED = "retry-network-errors,honour-timeout,total-deadline,push-results-on-throw"
FAST = 100  # the report's 60 s pass in 0.6 s

Send = Callable[[asyncio.StreamWriter, bytes], Awaitable[None]]


async def whole(writer: asyncio.StreamWriter, response: bytes) -> None:
    writer.write(response)
    await writer.drain()


def stall_after(share: float) -> Send:
    """Send that share of the response, and then nothing."""

    async def send(writer: asyncio.StreamWriter, response: bytes) -> None:
        await whole(writer, response[: int(len(response) * share)])
        await asyncio.Event().wait()

    return send


async def stall_after_headers(writer: asyncio.StreamWriter, response: bytes) -> None:
    await whole(writer, response[: response.index(b"\r\n\r\n") + 4])
    await asyncio.Event().wait()


async def fin_in_body(writer: asyncio.StreamWriter, response: bytes) -> None:
    await whole(writer, response[:-20])


async def rst_in_body(writer: asyncio.StreamWriter, response: bytes) -> None:
    await whole(writer, response[:-20])
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def trickle(total_s: float) -> Send:
    """Spread the body's last 20 bytes over `total_s`, so that no gap is long."""

    async def send(writer: asyncio.StreamWriter, response: bytes) -> None:
        await whole(writer, response[:-20])
        for byte in response[-20:]:
            await asyncio.sleep(total_s / FAST / 20)
            await whole(writer, bytes([byte]))

    return send


def http(status: int, body: bytes, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(body)}", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def says(*blocks: dict, send: Send = whole) -> tuple[bytes, Send]:
    """A model reply made of content blocks, and how it is sent."""
    reply = {"role": "assistant", "content": list(blocks), "stop_reason": "end_turn"}
    return http(200, json.dumps(reply).encode()), send


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def use(tool: str, number: int = 1, /, **arguments: str) -> dict:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": arguments}


def late(delay_s: float) -> Send:
    """Nothing for `delay_s`, then the whole response."""

    async def send(writer: asyncio.StreamWriter, response: bytes) -> None:
        await asyncio.sleep(delay_s / FAST)
        await whole(writer, response)

    return send


def redirect(location: str, delay_s: float) -> tuple[bytes, Send]:
    return http(302, b"", Location=location), late(delay_s)


@dataclass
class Fake:
    """Model and web in one server: each model request takes the next reply, each page always answers the same."""

    replies: list[tuple[bytes, Send]] = field(default_factory=list)
    pages: dict[str, tuple[bytes, Send]] = field(default_factory=dict)
    asked: list[dict] = field(default_factory=list)
    url: str = ""
    tasks: set = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.add(asyncio.current_task())
        try:
            method, path, *_ = (await reader.readline()).decode().split()
            headers = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            if method == "POST":
                length = int(headers.split("content-length:")[1].split()[0])
                self.asked.append(json.loads(await reader.readexactly(length)))
            response, send = self.replies.pop(0) if method == "POST" else self.pages[path]
            await send(writer, response)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def results(self) -> list[dict]:
        """The tool results in the newest request, by what the tool answered."""
        return [json.loads(block["content"]) for block in self.asked[-1]["messages"][-1]["content"]]


@pytest.fixture
async def fake() -> AsyncIterator[Fake]:
    made = Fake()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield made
    server.close()
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks)


@dataclass
class Phone:
    """The specimen on one session."""

    fake: Fake
    folder: Path

    async def start(self, message: str, fixes: str, time_scale: float = FAST) -> asyncio.subprocess.Process:
        options = {"--fixes": fixes, "--time-scale": str(time_scale), "--session": str(self.folder / "session")}
        options |= {"--url": self.fake.url, "--key": "k"}
        argv = [sys.executable, str(SPECIMEN), *(word for pair in options.items() for word in pair), message]
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(*argv, cwd=self.folder, stdout=pipe, stderr=pipe)

    async def say(self, message: str, fixes: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        process = await self.start(message, fixes)
        try:
            out, err = await asyncio.wait_for(process.communicate(), 30)
        finally:
            if process.returncode is None:
                process.kill()
        return process.returncode, out.decode().strip(), err.decode().strip()

    def kept(self) -> list[dict]:
        return json.loads((self.folder / "session/conversation.json").read_text())


@pytest.fixture
def phone(fake: Fake, tmp_path: Path) -> Phone:
    return Phone(fake, tmp_path)


BROKEN = {
    "before headers": stall_after(0),
    "after headers": stall_after_headers,
    "in half the body": stall_after(0.8),
    "fin": fin_in_body,
    "rst": rst_in_body,
}


@pytest.mark.parametrize("send", BROKEN.values(), ids=BROKEN)
async def test_without_the_retry_one_broken_reply_loses_the_turn(phone: Phone, fake: Fake, send: Send):
    """A network error leaves the retry loop that a refusal goes round."""
    fake.replies += [says(text("lost"), send=send), says(text("found"))]
    code, out, err = await phone.say("hi", "honour-timeout,total-deadline,push-results-on-throw")
    assert (code, out, len(fake.asked)) == (1, "", 1)
    assert err.startswith("Error: ")


@pytest.mark.parametrize("send", BROKEN.values(), ids=BROKEN)
async def test_the_retry_alone_answers_after_one_broken_reply(phone: Phone, fake: Fake, send: Send):
    """The next try works, and gets the same request."""
    fake.replies += [says(text("lost"), send=send), says(text("found"))]
    assert await phone.say("hi", "retry-network-errors") == (0, "found", "")
    assert fake.asked[0] == fake.asked[1]


async def test_a_stall_is_called_timeout_and_nothing_else(phone: Phone, fake: Fake):
    """The report's bare error message, and a conversation that stays paired."""
    fake.pages["/a"] = http(200, b"page"), whole
    fake.replies += [says(use("web_fetch", url=f"{fake.url}/a")), says(text("lost"), send=stall_after(0))]
    assert await phone.say("hi", "none") == (1, "", "Error: Timeout")
    assert [block["type"] for block in phone.kept()[-1]["content"]] == ["tool_result"]


@pytest.mark.parametrize(("fixes", "calls"), [("none", 1), ("retry-network-errors", 3), (FIXED, 2)])
async def test_a_stall_for_ever_ends_in_the_same_error(phone: Phone, fake: Fake, fixes: str, calls: int):
    """Where nothing helps, the retry triples calls and wait, and the total deadline keeps it to what 120 s allow."""
    fake.replies += [says(text("lost"), send=stall_after(0))] * 4
    assert await phone.say("hi", fixes) == (1, "", "Error: Timeout")
    assert len(fake.asked) == calls


LONGER = f"{FIXED},model-timeout"
SLOW = [("none", 1), ("retry-network-errors", 3), (FIXED, 2), ("model-timeout", 1)]


@pytest.mark.parametrize(("fixes", "calls"), SLOW)
async def test_a_model_slower_than_the_timer_loses_the_turn_and_each_retry_pays_again(
    phone: Phone, fake: Fake, fixes: str, calls: int
):
    """The model works for 75 s, always; the call's own timeout is not read without honour-timeout."""
    fake.replies += [says(text("found"), send=late(75))] * 3
    assert await phone.say("hi", fixes) == (1, "", "Error: Timeout")
    assert len(fake.asked) == calls


@pytest.mark.parametrize("fixes", [LONGER, "model-timeout,honour-timeout"])
async def test_a_timeout_of_its_own_waits_for_a_slow_model(phone: Phone, fake: Fake, fixes: str):
    """90 s for a model call, where the HTTP function reads the option."""
    fake.replies += [says(text("found"), send=late(75))]
    assert await phone.say("hi", fixes) == (0, "found", "")


async def test_the_longer_timeout_leaves_time_for_a_retry_after_a_stall(phone: Phone, fake: Fake):
    """90 s and a pause of 1 s are less than the total of 120 s."""
    fake.replies += [says(text("lost"), send=stall_after(0)), says(text("found"))]
    assert await phone.say("hi", LONGER) == (0, "found", "")


async def test_without_a_total_deadline_a_trickle_is_waited_for(phone: Phone, fake: Fake):
    """Each byte starts the inactivity timer anew, however long the whole takes."""
    fake.replies += [says(text("slow"), send=trickle(150))]
    assert await phone.say("hi", "retry-network-errors,honour-timeout") == (0, "slow", "")


async def test_with_a_total_deadline_a_trickle_is_given_up(phone: Phone, fake: Fake):
    """The second timer isn't started anew by data, and leaves no time for another try."""
    fake.replies += [says(text("slow"), send=trickle(150))]
    assert await phone.say("hi", "retry-network-errors,total-deadline") == (1, "", "Error: Timeout")


PAGE_DEADLINES = [("honour-timeout", "page"), ("total-deadline", "page"), ("honour-timeout,total-deadline", "Timeout")]


@pytest.mark.parametrize(("fixes", "result"), PAGE_DEADLINES)
async def test_a_trickling_page_takes_both_fixes(phone: Phone, fake: Fake, fixes: str, result: str):
    """The honoured timeout is one of inactivity; only with the total deadline does it become the tool's 30 s."""
    fake.pages["/a"] = http(200, b"-" * 20 + b"page"), trickle(60)
    fake.replies += [says(use("web_fetch", url=f"{fake.url}/a")), says(text("done"))]
    assert (await phone.say("hi", fixes))[:2] == (0, "done")
    assert str(fake.results()[0]).count(result) == 1


REDIRECTS = [("none", "page"), ("total-deadline", "page"), ("honour-timeout", "Timeout"), (FIXED, "Timeout")]


@pytest.mark.parametrize(("fixes", "result"), REDIRECTS)
async def test_only_an_honoured_timeout_ends_a_slow_hop(phone: Phone, fake: Fake, fixes: str, result: str):
    """Redirects that are each under 60 s add up to more than 30 s, which is looked at between hops only."""
    fake.pages |= {"/a": redirect("/b", 10), "/b": (http(200, b"page"), late(35))}
    fake.replies += [says(use("web_fetch", url=f"{fake.url}/a")), says(text("done"))]
    assert (await phone.say("hi", fixes))[:2] == (0, "done")
    assert result in fake.results()[0].values()


async def test_a_chain_over_its_deadline_is_noticed_between_hops(phone: Phone, fake: Fake):
    """The buggy deadline does exist: the next hop isn't started."""
    fake.pages |= {"/a": redirect("/b", 40)}
    fake.replies += [says(use("web_fetch", url=f"{fake.url}/a")), says(text("done"))]
    assert (await phone.say("hi", "none"))[:2] == (0, "done")
    assert fake.results() == [{"error": "Request timeout (redirect chain)"}]


@pytest.mark.parametrize("fixes", ["none", FIXED])
async def test_a_stalled_page_is_an_error_result(phone: Phone, fake: Fake, fixes: str):
    """A tool's own network error doesn't end the turn."""
    fake.pages["/a"] = http(200, b"page"), stall_after(0)
    fake.replies += [says(use("web_fetch", url=f"{fake.url}/a")), says(text("done"))]
    assert (await phone.say("hi", fixes))[:2] == (0, "done")
    assert fake.results() == [{"error": "Timeout"}]


SIBLINGS = (
    use("shell_exec", 1, command="echo one"),
    use("read_note", 2, name="gone.md"),
    use("shell_exec", 3, command="echo three"),
)


async def test_a_throwing_tool_loses_the_turn_and_its_siblings(phone: Phone, fake: Fake):
    """The results stay behind in the loop that was left; the next message strips three calls and goes on."""
    fake.replies += [says(*SIBLINGS), says(text("hello again"))]
    code, out, err = await phone.say("read my note", "none")
    assert (code, out) == (1, "")
    assert "gone.md" in err
    code, out, err = await phone.say("still there?", "none")
    assert (code, out) == (0, "hello again")
    assert err == "[Sanitize] Stripped 3 orphaned tool_use/tool_result block(s) from conversation"
    assert [message["role"] for message in fake.asked[-1]["messages"]] == ["user", "user"]


async def test_a_caught_throw_is_one_error_result_among_its_siblings(phone: Phone, fake: Fake):
    """The turn goes on with what the others brought."""
    fake.replies += [says(*SIBLINGS), says(text("no such note"))]
    assert await phone.say("read my note", "push-results-on-throw") == (0, "no such note", "")
    first, second, third = fake.results()
    assert (first["stdout"], third["stdout"]) == ("one\n", "three\n")
    assert "gone.md" in second["error"]


@pytest.mark.parametrize("status", [429, 529])
@pytest.mark.parametrize("fixes", ["none", FIXED])
async def test_a_refusal_is_tried_again_with_and_without_fixes(phone: Phone, fake: Fake, fixes: str, status: int):
    """The retry loop always was there for refusals."""
    refusal = http(status, b'{"error": {}}', **{"Retry-After": "0"}), whole
    fake.replies += [refusal, refusal, says(text("at last"))]
    assert await phone.say("hi", fixes) == (0, "at last", "")


async def test_a_bad_request_is_not_tried_again(phone: Phone, fake: Fake):
    """400 means that the request itself is wrong."""
    fake.replies += [(http(400, b"no"), whole), says(text("never"))]
    assert await phone.say("hi", FIXED) == (1, "", "Error: API error: 400 no")


async def test_three_pages_make_a_body_of_the_reports_size(phone: Phone, fake: Fake):
    """The report measured bodyLen=85000 with three tool results."""
    fake.pages["/a"] = http(200, b"x" * 28_000), whole
    uses = [use("web_fetch", number, url=f"{fake.url}/a") for number in (1, 2, 3)]
    fake.replies += [says(*uses), says(text("done"))]
    await phone.say("Compare the three pages.", "none")
    assert len(json.dumps(fake.asked[-1])) == pytest.approx(85_000, abs=1_000)


async def test_sanitizing_before_each_call_changes_nothing(phone: Phone, fake: Fake):
    """The tempting fix: what a stall leaves behind is paired anyway, and the turn is lost all the same."""
    fake.replies += [says(text("lost"), send=stall_after(0)), says(text("found"))]
    assert await phone.say("hi", "sanitize-each-call") == (1, "", "Error: Timeout")


async def test_an_abort_keeps_the_conversation(phone: Phone, fake: Fake):
    """Ctrl-C ends the turn at once; the user's message stays."""
    asked = asyncio.Event()

    async def announce(writer: asyncio.StreamWriter, response: bytes) -> None:
        asked.set()
        await asyncio.Event().wait()

    fake.replies += [says(text("never"), send=announce)]
    process = await phone.start("hi", "retry-network-errors", time_scale=1)  # its timer must not fire before the signal
    await asyncio.wait_for(asked.wait(), 30)
    while psutil.Process(process.pid).status() != psutil.STATUS_SLEEPING:
        await asyncio.sleep(0.01)  # Python drops a KeyboardInterrupt that it raises in a callback, as of an import
    process.send_signal(signal.SIGINT)
    _, err = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, err.decode().strip()) == (130, "Aborted")
    assert phone.kept() == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(("fixes", "stripped"), [("none", True), (FIXED, True), ("pair-aware-trimming", False)])
async def test_a_full_history_is_cut_between_a_call_and_its_result_unless_trimming_knows_of_pairs(
    phone: Phone, fake: Fake, fixes: str, stripped: bool
):
    """A lost turn of three messages, then plain ones: the seventh message finds 14 where 12 have a place."""
    fake.replies += [says(use("shell_exec", command="true")), (http(400, b"no"), whole)]
    await phone.say("look", fixes)
    for number in range(6):
        fake.replies += [says(text("plain"))]
        _, out, err = await phone.say(f"message {number}", fixes)
        assert out == "plain"
        assert ("[Sanitize]" in err) == (stripped and number == 5)
