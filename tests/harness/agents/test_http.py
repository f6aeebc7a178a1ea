"""A service: started once, one request per message, left running when its front end gives up."""

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from aiohttp import web

from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.record.events.turn import ToldUsage
from wedgehog.harness.sandbox.cleanup import carrying
from wedgehog.harness.scenario.document import BadFileError

SERVICE = """
    import json, os, pathlib, select, sys, time
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Service(BaseHTTPRequestHandler):
        def log_message(self, *_): pass
        def say(self, status, data):
            body = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        def do_GET(self):
            self.say(200 if self.path == "/health" else 404, {})
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
            print(self.path, json.dumps(body), self.headers.get("X-Token"), flush=True)
            text = body.get("text", "")
            if text == "fail": return self.say(500, {"error": "broken", "answer": "sorry"})
            if text == "die": print("last words", file=sys.stderr, flush=True); os._exit(7)
            if text == "slow":
                pathlib.Path("up").write_text("1")
                readable, _, _ = select.select([self.connection], [], [], 30)
                gone = bool(readable) and self.connection.recv(1) == b""
                pathlib.Path("seen").write_text("gone" if gone else "stayed")
                pathlib.Path("went-on").write_text("1")
                return
            self.say(200, {"answer": f"{body.get('session')} says {text}", "error": None, "used": {"in": len(text)}})

    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
"""

HTTP = {
    "start": ["{python}", "{here}/agent.py", "{port}"],
    "ready": "/health",
    "url": "/message",
    "headers": {"X-Token": "{key}"},
    "body": {"session": "{session}", "text": "{message}"},
    "answer": "json:answer",
    "error": "json:error",
}


PATIENCE_S = 20.0


async def until(file: Path) -> str:
    async with asyncio.timeout(15):
        while not file.exists() or not file.read_text():
            await asyncio.sleep(0.01)
    return file.read_text()


async def test_a_message_is_one_request_and_the_answer_is_in_the_reply(spec_of, context):
    """The service is one process for all messages; its output during a turn belongs to that turn."""
    spec = spec_of(SERVICE, http=HTTP, usage={"input_tokens": "json:used.in"})
    async with open_agent(spec, context) as session:
        pid = session.started.pid
        first = await session.say('hi "{home}"', first=True)
        second = await session.say("again", first=False)
        assert session.started.pid == pid and psutil.pid_exists(pid)
    assert (first.answer, first.error, first.status) == ('s1 says hi "{home}"', "", 200)
    assert (second.answer, second.usage) == ("s1 says again", ToldUsage(input_tokens=5))
    assert second.stdout == '/message {"session": "s1", "text": "again"} canary\n'
    assert "/message" in context.log.read_text()
    assert not psutil.pid_exists(pid)
    assert session.started.entry.endswith("agent.py")


@pytest.mark.parametrize(
    ("told", "answer", "error"),
    [
        (["{}", '{"delta": "in "}', '{"delta": "two"}', "[DONE]"], "in two", ""),
        (['{"delta": "in "}', '{"error": {"message": "overloaded"}}'], "in ", "overloaded"),
    ],
)
async def test_the_answer_may_come_as_server_sent_events(spec_of, context, told: list[str], answer: str, error: str):
    """Its pieces are joined; an event may hold an error, with status 200."""

    async def say(_: web.Request) -> web.Response:
        return web.Response(text="".join(f"data: {it}\n\n" for it in told), content_type="text/event-stream")

    async with running({"/message": say}) as base:
        http = {"base": base, "url": "/message", "answer": "joined:delta", "error": "jsonl:error.message"}
        async with open_agent(spec_of(http=http), context) as session:
            outcome = await session.say("hi", first=True)
    assert (outcome.answer, outcome.error, outcome.status) == (answer, error, 200)
    assert outcome.streamed


async def test_an_http_error_is_an_error_and_not_an_answer(spec_of, context):
    """The text at the spec's path; without a path, the whole reply."""
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        told = await session.say("fail", first=True)
    assert (told.answer, told.error, told.status) == ("", "broken", 500)
    plain = {key: value for key, value in HTTP.items() if key != "error"}
    async with open_agent(spec_of(SERVICE, http=plain), context) as session:
        assert '"broken"' in (await session.say("fail", first=True)).error


async def test_giving_up_closes_the_connection_and_the_service_goes_on(spec_of, context):
    """The service sees the connection close, works on, and answers the next message."""
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        turn = asyncio.create_task(session.say("slow", first=True))
        await until(context.cwd / "up")
        await session.give_up()
        outcome = await turn
        assert (outcome.ended, outcome.answer, outcome.status, outcome.raised) == ("gave up", "", None, None)
        assert await until(context.cwd / "seen") == "gone"
        assert await until(context.cwd / "went-on")
        assert (await session.say("next", first=False)).answer == "s1 says next"


async def test_the_deadline_closes_the_connection_too_and_the_service_stays(spec_of, context):
    """One slow turn does not end a service."""
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        turn = asyncio.create_task(session.say("slow", first=True))
        await until(context.cwd / "up")
        await session.end_turn()
        assert (await turn).ended == "deadline"
        assert await until(context.cwd / "seen") == "gone"
        assert (await session.say("next", first=False)).status == 200


async def test_without_a_request_for_it_an_abort_closes_the_connection(spec_of, context):
    """A user could not do more."""
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        turn = asyncio.create_task(session.say("slow", first=True))
        await until(context.cwd / "up")
        await session.abort()
        assert (await turn).ended == "aborted" and session.stops_by_hanging_up
        assert await until(context.cwd / "seen") == "gone"


async def test_an_abort_is_the_specs_request_and_the_turn_ends_with_the_services_reply(spec_of, context):
    """The turn's connection stays open until the service replies."""
    stopped = asyncio.Event()

    async def message(request: web.Request) -> web.Response:
        (context.cwd / "up").write_text("1")
        await stopped.wait()
        return web.json_response({"answer": "stopped by you"})

    async def stop(request: web.Request) -> web.Response:
        assert await request.json() == {"session": "s1"}
        stopped.set()
        return web.Response()

    async with running({"/message": message, "/stop": stop}) as base:
        http = {"base": base, "url": "/message", "answer": "json:answer"}
        http["abort"] = {"url": "/stop", "body": {"session": "{session}"}}
        async with open_agent(spec_of(http=http), context) as session:
            turn = asyncio.create_task(session.say("x", first=True))
            await until(context.cwd / "up")
            await session.abort()
            outcome = await turn
    assert (outcome.answer, outcome.ended) == ("stopped by you", "aborted") and not session.stops_by_hanging_up


@pytest.mark.parametrize(
    ("stop", "said"),
    [
        (
            {"url": "/nostop"},
            r"agent\.yaml: http\.abort: POST http://127.*/nostop failed \(HTTP 404\), and the turn goes on",
        ),
        ({"url": "/broken"}, r"/broken failed \(HTTP 500\)"),
        ({"url": "/broken", "method": "DELETE"}, r"DELETE http://.*/broken failed \(HTTP 405\)"),
    ],
)
async def test_an_abort_that_the_service_refuses_while_the_turn_goes_on_blames_the_spec(
    spec_of, context, stop: dict[str, str], said: str
):
    """The agent was not stopped, so its next actions are not judged."""
    over = asyncio.Event()

    async def message(request: web.Request) -> web.Response:
        (context.cwd / "up").write_text("1")
        await over.wait()
        return web.Response()

    async def broken(request: web.Request) -> web.Response:
        return web.Response(status=500)

    async with running({"/message": message, "/broken": broken}) as base:
        async with open_agent(spec_of(http={"base": base, "url": "/message", "abort": stop}), context) as session:
            turn = asyncio.create_task(session.say("x", first=True))
            await until(context.cwd / "up")
            await session.abort()
            with pytest.raises(AgentError, match=said):
                await asyncio.wait_for(turn, PATIENCE_S)
        over.set()


async def test_an_abort_request_that_cannot_connect_blames_the_spec(spec_of, context):
    """A service may accept aborts at another port; here no process listens on it."""
    up, over = asyncio.Event(), asyncio.Event()

    async def only_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"GET" in await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            writer.close()
            return
        server.close()
        up.set()
        await over.wait()
        writer.close()

    server = await asyncio.start_server(only_one, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    spec = spec_of(http={"base": base, "url": "/m", "abort": {"url": "/stop"}})
    async with open_agent(spec, context) as session:
        turn = asyncio.create_task(session.say("x", first=True))
        await asyncio.wait_for(up.wait(), PATIENCE_S)
        await session.abort()
        with pytest.raises(AgentError, match=r"agent\.yaml: http\.abort: .*/stop failed \(ClientConnectorError"):
            await asyncio.wait_for(turn, PATIENCE_S)
    over.set()


async def test_an_abort_that_came_too_late_to_stop_anything_was_refused_rightly(spec_of, context):
    """The turn was ending already, so "no such turn" is the right reply."""
    asked = asyncio.Event()

    async def message(request: web.Request) -> web.Response:
        (context.cwd / "up").write_text("1")
        await asked.wait()
        return web.json_response({"answer": "done"})

    async def stop(request: web.Request) -> web.Response:
        asked.set()
        return web.Response(status=404)

    async with running({"/message": message, "/stop": stop}) as base:
        http = {"base": base, "url": "/message", "answer": "json:answer", "abort": {"url": "/stop"}}
        async with open_agent(spec_of(http=http), context) as session:
            turn = asyncio.create_task(session.say("x", first=True))
            await until(context.cwd / "up")
            await session.abort()
            assert (await asyncio.wait_for(turn, PATIENCE_S)).answer == "done"


async def test_the_turn_does_not_wait_for_the_reply_to_an_abort(spec_of, context):
    """The reply may be late or missing; the turn ends with its own request."""
    stopped, over = asyncio.Event(), asyncio.Event()

    async def message(request: web.Request) -> web.Response:
        (context.cwd / "up").write_text("1")
        await stopped.wait()
        return web.json_response({"answer": "stopped by you"})

    async def stop(request: web.Request) -> web.Response:
        stopped.set()
        await over.wait()
        return web.Response(status=500)

    async with running({"/message": message, "/stop": stop}) as base:
        http = {"base": base, "url": "/message", "answer": "json:answer", "abort": {"url": "/stop"}}
        async with open_agent(spec_of(http=http), context) as session:
            turn = asyncio.create_task(session.say("x", first=True))
            await until(context.cwd / "up")
            await asyncio.wait_for(session.abort(), PATIENCE_S)
            assert (await asyncio.wait_for(turn, PATIENCE_S)).answer == "stopped by you"
        over.set()


async def test_a_service_that_already_runs_is_neither_started_nor_stopped(spec_of, context):
    """Only requests are sent; a wake-up is a request of its own."""
    asked = []

    async def any_request(request: web.Request) -> web.Response:
        asked.append((request.method, request.path, await request.text()))
        return web.Response(text="plain words")

    async with running({"/m/s1": any_request, "/tick": any_request}) as base:
        http = {"base": base + "/", "url": "/m/{session}", "body": "{message}", "wake_up": {"url": "/tick"}}
        async with open_agent(spec_of(http=http), context) as session:
            outcome = await session.say("hi", first=True)
            await session.say("ignored", kind="wake_up", first=False)
            assert session.started.pid is None
    assert outcome.answer == "plain words"
    assert asked == [("POST", "/m/s1", '"hi"'), ("POST", "/tick", "")]


async def test_a_request_is_never_repeated_by_us(spec_of, context):
    """A connection that closes without a reply ends the turn after one request."""
    requests = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        requests.append(head.split(b"\r\n")[0])
        if b"GET" in head:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, open_agent(spec_of(http={"base": base, "url": "/m"}), context) as session:
        outcome = await session.say("hi", first=True)
    assert outcome.raised and "ServerDisconnected" in outcome.raised
    assert requests == [b"GET / HTTP/1.1", b"POST /m HTTP/1.1"]


async def test_a_service_that_ends_in_a_turn_is_reported_with_its_last_output(spec_of, context):
    """Exit code and log are in the outcome; the next message cannot connect."""
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        outcome = await session.say("die", first=True)
        after = await session.say("there?", first=False)
    assert outcome.raised and "the service ended with exit code 7" in outcome.raised
    assert "last words" in outcome.raised
    assert after.raised and "ClientConnectorError" in after.raised


async def test_a_service_that_does_not_start_is_reported_with_its_last_output(spec_of, context):
    """Before any message; it is no verdict."""
    code = "import sys; print('no config', file=sys.stderr); sys.exit(3)"
    with pytest.raises(AgentError, match=r"agent.yaml: the service ended with exit code 3; it printed:\nno config"):
        async with open_agent(spec_of(code, http=HTTP), context):
            pytest.fail("it opened")


async def test_a_service_that_is_never_ready_is_reported_and_ended(spec_of, context):
    """After start_s, with its output."""
    code = "import time; print('warming up', flush=True); time.sleep(60)"
    with pytest.raises(AgentError, match=r"was not ready within 0.5 s \(no answer\); it printed:\nwarming up"):
        async with open_agent(spec_of(code, http=HTTP, start_s=0.5), context):
            pytest.fail("it opened")
    assert carrying(context.run_id) == []


ANSWERS = """
    import http.server, sys
    class Service(http.server.BaseHTTPRequestHandler):
        def do_{method}(self):
            self.send_response(503)
            self.send_header("content-length", "0")
            self.end_headers()
        def log_message(self, *words): pass
    http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
"""


async def test_a_service_that_knows_no_get_is_ready(spec_of, context):
    """Its 501 says that it is up."""
    async with open_agent(spec_of(ANSWERS.replace("{method}", "POST"), http=HTTP, start_s=5), context) as session:
        assert (await session.say("hi", first=True)).status == 503


async def test_the_last_answer_of_a_service_that_is_not_ready_is_told(spec_of, context):
    """The path may be the wrong one."""
    with pytest.raises(AgentError, match=r"was not ready within 2 s \(GET .* answered 503\)"):
        async with open_agent(spec_of(ANSWERS.replace("{method}", "GET"), http=HTTP, start_s=2), context):
            pytest.fail("it opened")


async def test_a_cancelled_turn_closes_its_connection(spec_of, context):
    """The connection is closed at once."""
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        turn = asyncio.create_task(session.say("slow", first=True))
        await until(context.cwd / "up")
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert await until(context.cwd / "seen") == "gone"


async def test_the_users_proxy_is_not_used(spec_of, context, monkeypatch):
    """Our client ignores proxy variables."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        assert (await session.say("hi", first=True)).status == 200


async def test_a_service_killed_by_a_signal_names_it(spec_of, context):
    """SIGKILL is easier to read than -9."""
    async with open_agent(spec_of(SERVICE, http=HTTP), context) as session:
        turn = asyncio.create_task(session.say("slow", first=True))
        await until(context.cwd / "up")
        os.kill(session.started.pid, signal.SIGKILL)
        outcome = await turn
    assert outcome.raised and "the service ended by SIGKILL" in outcome.raised


def test_an_http_spec_without_a_wake_up_says_so(spec_of):
    """Scenarios that need one are skipped because of it."""
    spec = spec_of(http={"base": "http://127.0.0.1:1", "url": "/m"})
    assert not spec.wakes_up
    with pytest.raises(BadFileError, match="goes inside 'http'"):
        spec_of(http={"base": "http://127.0.0.1:1", "url": "/m"}, wake_up=["x"])


@asynccontextmanager
async def running(routes):
    """A service in this process; returns its address."""
    app = web.Application()
    app.add_routes([web.post(path, handler) for path, handler in routes.items()])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
