"""The fake provider on its own: its admin API, its ledger, and many sessions on one server."""

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wedgehog.harness.commands.serve import Provider
from wedgehog.harness.scenario.document import BadFileError

HI = {"replies": [{"reply": {"text": "Hi there!"}}]}
PACED = {"replies": [{"reply": [{"text": "one two three four", "pace_ms": 5}]}]}
KEY = "sk-canary"
Ask = Callable[..., Awaitable[Any]]


@pytest.fixture
async def llm() -> AsyncIterator[Provider]:
    async with Provider(HI) as provider:
        yield provider


async def sent(
    method: str, url: str, body: object = None, headers: dict[str, str] | None = None, wait_s: float = 60
) -> tuple[int, bytes]:
    """Status and body of one request, made in a thread."""
    place = urlsplit(url)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()

    def ask() -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(str(place.hostname), int(place.port or 0), timeout=wait_s)
        try:
            connection.request(method, url.partition(place.netloc)[2], data, headers or {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


async def admin(llm: Provider, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
    """Status and JSON of a request to the admin API."""
    status, told = await sent(method, f"{llm.admin_url}/{path}", body, headers)
    return status, json.loads(told)


async def chat(llm: Provider, *said: Any, session: str = "", key: str = KEY, wait_s: float = 60, **more: Any) -> Any:
    """Status and JSON of a chat completion; words are the user's, messages stay what they are."""
    messages = [{"role": "user", "content": one} if isinstance(one, str) else one for one in said]
    url = (llm.session_url(session) if session else llm.url) + "/v1/chat/completions"
    status, told = await sent(
        "POST",
        url,
        {"model": "gpt-5", "messages": messages, **more},
        {"Authorization": f"Bearer {key}"} if key else {},
        wait_s,
    )
    return status, told if more.get("stream") else json.loads(told)


async def until(met: Callable[[], Any]) -> None:
    async with asyncio.timeout(10):
        while not met():
            await asyncio.sleep(0.005)


async def test_a_lines_words_come_in_the_json_that_a_request_asks_for(llm: Provider):
    """The script's own text otherwise."""
    schema = {"type": "object", "properties": {"said": {"type": "string"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    said = [await chat(llm, "hello", **more) for more in ({"response_format": wanted}, {})]
    texts = [told["choices"][0]["message"]["content"] for _, told in said]
    assert texts == ['{"said": "Hi there!"}', "Hi there!"]


SUBAGENT = {
    "name": "reader",
    "when": {"opening": "Read the file"},
    "replies": [{"reply": {"text": "It is empty."}, "fault": {"do": {"status": 529}, "at": {"attempt": 1}}}],
}


async def test_a_conversation_has_lines_and_faults_of_its_own_and_the_ledger_names_it():
    """The subagent's first call is refused; the main conversation gets its own line meanwhile."""
    async with Provider({**HI, "conversations": [SUBAGENT]}) as llm:
        said = [str(await chat(llm, text)) for text in ("hello", "Read the file.", "Read the file.")]
        assert "Hi there!" in said[0] and "529" in said[1] and "It is empty." in said[2]
        entries = [(entry["conversation"], entry["status"]) for entry in llm.ledger()]
        assert entries == [("", 200), ("reader", 529), ("reader", 200)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"when": {}}, "expected one of system, opening, tools and model_name"),
        ({"name": "main"}, "'main' has a meaning of its own: choose another name"),
        ({"replies": [{"reply": {"text": "x"}, "fault": {"do": "kill"}}]}, "kill"),
    ],
)
def test_a_mistake_in_a_conversation_is_one_line_that_names_its_line(change: dict[str, Any], said: str):
    """The number of the line in the script's text."""
    with pytest.raises(BadFileError) as caught:
        Provider({**HI, "conversations": [SUBAGENT, {**SUBAGENT, "name": "other", **change}]})
    assert said in str(caught.value) and "\n" not in str(caught.value) and "script:" in str(caught.value)


def test_two_conversations_of_one_name_are_a_mistake():
    with pytest.raises(BadFileError, match="a second conversation of this name"):
        Provider({**HI, "conversations": [SUBAGENT, SUBAGENT]})


# ---- the admin API


async def test_health_says_what_is_going_on(llm: Provider):
    """The sessions, and the calls under way."""
    await chat(llm, "go")
    assert await admin(llm, "GET", "health") == (200, {"ok": True, "sessions": 1, "calls_under_way": 0})


async def test_a_script_can_be_read_and_replaced(llm: Provider):
    """As a text; the next request gets the new script, in all sessions or in one."""
    assert json.loads((await sent("GET", f"{llm.admin_url}/script"))[1]) == HI
    text = b"replies:\n  - {reply: {text: Other words}}\n"
    assert await admin(llm, "PUT", "script?session=red", text) == (200, {"ok": True})
    _, red = await chat(llm, "go", session="red")
    _, blue = await chat(llm, "go", session="blue")
    words = [reply["choices"][0]["message"]["content"] for reply in (red, blue)]
    assert words == ["Other words", "Hi there!"]
    assert (await sent("GET", f"{llm.admin_url}/script?session=red"))[1] == text
    await admin(llm, "PUT", "script", text)
    assert (await chat(llm, "go", session="blue"))[1]["choices"][0]["message"]["content"] == "Other words"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("replies:\n  - {reply: {text: a}}\n  - {replay: {text: b}}\n", "script:3: unknown key 'replay'"),
        ("replies: [{reply: {text: a}, fault: {do: {stal: 1}}}]", "script:1: no fault is called 'stal'"),
        (
            "replies:\n  - reply: {text: a}\n    fault: {do: {latency: 1}, at: {tool: 1}}",
            "script:3: `tool` has no meaning",
        ),
        ("replies:\n  - reply: {text: a}\n    fault: {do: down}", "script:3: down would never end"),
        ("replies: [{reply: {text: a}, fault: {do: {cut: }}}]", "script:1: cut has nothing after its colon"),
        (
            "replies: [{reply: {text: a}, fault: {do: {html_body: 204}}}]",
            "script:1: html_body: a reply with status 204",
        ),
        ("replies: [{reply: {text: a}, fault: {do: cut, at: {phase: body, byte: 1}}}]", "`byte` are two places"),
        ("replies: [{reply: {text: a}, fault: {do: cut, at: {turn: true}}}]", "expected a whole number, found true"),
        ("replies: [{reply: {text: a}, fault: {do: cut, at: {after_s: 1e400}}}]", "a finite number, found .inf"),
        ("replies: [{reply: [{delay_s: .inf}]}]", "a finite number, found .inf"),
        ("replies: [{error: {status: true}}]", "expected a whole number, found true"),
        ("balance: {usd: .inf}\nreplies: []", "script:1: 'balance.usd': expected a finite number"),
        ("balance: {usd: 1, tokens: 2}\nreplies: []", "script:1: expected either `usd` or `tokens`"),
        ("replies: []\nbalance: {usd: 1, price_as: nobody}", "script:2: no price is known for 'nobody'"),
        ("replies: !!python/object/apply:os.system [echo]", "script:1: the tag"),
        ("replies: [", "script:1: not valid YAML"),
        ("", "script: the file is empty"),
    ],
)
async def test_a_bad_script_is_refused_in_one_line_with_its_place(llm: Provider, text: str, said: str):
    """It is data, never run; what was there stays."""
    status, told = await admin(llm, "PUT", "script", text.encode())
    assert status == 400
    assert said in told["error"] and "\n" not in told["error"]
    assert (await chat(llm, "go"))[1]["choices"][0]["message"]["content"] == "Hi there!"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "nothing", None, 404, "no such thing: GET /_wedgehog/nothing"),
        ("PATCH", "script", b"x", 404, "PUT /_wedgehog/script"),
        ("GET", "ledger?session=a%2Fb", None, 400, "session: expected"),
        ("POST", "gates", b"[", 400, "a gate is"),
        ("POST", "gates", {"event": 1, "byte": 2}, 400, "a gate is"),
        ("POST", "gates", {"byte": -1}, 400, "byte: expected a whole number of at least 0, found -1"),
        ("POST", "gates", {"event": "two"}, 400, "event: expected a whole number"),
        ("DELETE", "gates/7", None, 404, "there is no gate '7'"),
        ("GET", "gates/" + "9" * 5000, None, 404, "there is no gate"),
        ("PUT", "script", b"\xff\xfe\xff", 400, "script: not UTF-8 text"),
        ("PUT", "script", b"#" * (2**20 + 1), 413, "1048576 bytes at most"),
    ],
)
async def test_a_mistake_is_one_line(llm: Provider, method: str, path: str, body: Any, status: int, said: str):
    """With a status that fits."""
    got, told = await admin(llm, method, path, body)
    assert got == status
    assert said in told["error"] and "\n" not in told["error"]


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}])
async def test_no_web_page_gets_an_answer(llm: Provider, headers: dict[str, str]):
    """Neither a cross-origin request nor one with a foreign host name."""
    status, told = await admin(llm, "PUT", "script", b"replies: []", **headers)
    assert (status, "not for web pages" in told["error"]) == (403, True)
    assert (await chat(llm, "go"))[0] == 200


async def test_agents_cannot_reach_the_admin_api(llm: Provider):
    """Their address has only the provider's API."""
    for prefix in ("", "/s/red"):
        status, told = await sent("GET", f"{llm.url}{prefix}/_wedgehog/ledger", None, {"Authorization": "Bearer x"})
        assert status == 404 and b"attempts" not in told


WORDS = ["replies", "reply", "text", "when", "user", "fault", "do", "at", "stall", "byte", "balance", "usd", "tokens"]
VALUES = st.recursive(
    st.sampled_from([*WORDS, None, True, -1, 0, 5, 1e300, "/(/", "x" * 70]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=8,
)
SCRIPTS = st.text(max_size=40) | st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=3).map(json.dumps)


@given(SCRIPTS)
def test_whatever_comes_as_a_script_is_read_or_refused_in_one_line(text: str):
    """Nothing else is raised, so nothing can take the server down."""
    try:
        assert READER._read(text).text == text
    except ValueError as wrong:
        assert str(wrong).startswith("script") and "\n" not in str(wrong)


READER = Provider(HI)


# ---- gates


async def test_a_held_call_is_listed_and_released(llm: Provider):
    """Before its first byte: nothing comes until the gate is opened."""
    _, gate = await admin(llm, "POST", "gates?session=red")
    assert gate == {"gate": 1, "session": "red", "at": {"phase": "headers"}, "held": []}
    red = asyncio.create_task(chat(llm, "go", session="red"))
    status, held = await admin(llm, "GET", "gates/1?wait_s=10")
    assert (status, held["held"]) == (200, [1])
    assert (await chat(llm, "go", session="blue"))[0] == 200, "another session is not held"
    assert not red.done()
    assert (await admin(llm, "GET", "gates?session=blue"))[1] == {"gates": []}
    _, opened = await admin(llm, "DELETE", "gates/1")
    assert opened["opened"][0]["held"] == [1]
    assert (await red)[0] == 200
    assert (await admin(llm, "GET", "gates"))[1] == {"gates": []}


@pytest.mark.parametrize(("at", "events"), [({"event": 2}, 2), ({"event": 0}, 0), ({"byte": 0}, 0)])
@pytest.mark.parametrize("script", [HI, PACED])
async def test_a_stream_is_held_at_its_place(llm: Provider, at: dict[str, int], events: int, script: Any):
    """Behind an event or a byte; what comes before has come, and nothing else."""
    llm.put(script)
    gate = llm.hold(**at)
    place = urlsplit(llm.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]})
    head = f"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer k\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + body).encode())
    await until(lambda: llm.held(gate))
    got = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    for _ in range(events):
        got += await asyncio.wait_for(reader.readuntil(b"\n\n\r\n"), 5)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1), 0.05)
    llm.release(gate)
    rest = await asyncio.wait_for(reader.readuntil(b"[DONE]"), 5)
    assert (got.count(b"data: "), rest.count(b"data: ") > 1) == (events, True)
    writer.transport.abort()


async def test_a_client_that_hangs_up_at_a_gate_is_held_no_more(llm: Provider):
    """And the ledger says when that was."""
    gate = llm.hold()
    with pytest.raises(TimeoutError):
        await chat(llm, "go", wait_s=0.2)
    await until(lambda: not llm.held(gate))
    (entry,) = llm.ledger()
    assert (entry["ended"], entry["bytes_delivered"], entry["tokens_delivered"]) == ("hung_up", 0, 0)
    assert 0.1 < entry["hung_up_s"] < 60


async def test_closing_lets_go_of_everything():
    """Held calls and waits for them: no task is left."""
    before = asyncio.all_tasks()
    async with Provider(HI) as llm:
        gates = [llm.hold("red"), llm.hold("blue")]
        asking = [asyncio.create_task(chat(llm, "go", session="red"))]
        await until(lambda: llm.held(gates[0]))
        asking.append(asyncio.create_task(admin(llm, "GET", f"gates/{gates[1]}?wait_s=60")))
        await until(lambda: any(connection.is_busy for connection in llm._admin.connections))
    ended = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 10)
    assert all(isinstance(one, OSError | http.client.HTTPException) for one in ended)
    assert asyncio.all_tasks() == before


# ---- the ledger


async def test_the_ledger_tells_each_attempt(llm: Provider):
    """The request, its outcome and its cost."""
    call = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": CALLED}]}
    result = {"role": "tool", "tool_call_id": "a", "content": "21"}
    await chat(llm, "weather", call, result)
    _, told = await admin(llm, "GET", "ledger")
    (entry,) = told["attempts"]
    expected = {"call": 1, "wire": "openai-chat", "method": "POST", "model": "gpt-5", "status": 200, "error": None}
    expected |= {"accepted": True, "tool_results": 1, "turn": 1, "step": 2, "attempt": 1, "retry_of": None}
    expected |= {"stream": False, "background": "", "ended": "complete", "fault": None, "hung_up_s": None}
    assert entry | expected == entry
    assert entry["request_bytes"] > 100 and entry["bytes_delivered"] > 100
    assert entry["tokens_delivered"] == entry["output_tokens_billed"] > 0 < entry["input_tokens_billed"]


CALLED = {"name": "get_weather", "arguments": "{}"}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("a", "b", "c")]


async def test_the_ledger_tells_which_request_was_refused_and_why(llm: Provider):
    """A broken history in the provider's words, and nothing billed."""
    await chat(llm, {"role": "tool", "tool_call_id": "z", "content": "x"})
    (entry,) = llm.ledger()
    assert (entry["status"], entry["accepted"], entry["input_tokens_billed"]) == (400, False, 0)
    assert (entry["error"]["pairing"], entry["error"]["scripted"]) == (True, False)
    assert "must be a response to a preceeding message" in entry["error"]["message"]


async def test_a_repeat_is_told_from_a_new_request(llm: Provider):
    """The same messages again are the next attempt; other ones are another place; each session counts for itself."""
    for session in ("red", "red", "blue"):
        await chat(llm, "go", session=session)
    await chat(llm, "go", {"role": "assistant", "content": "ok"}, "on", session="red")
    places = [(it["session"], it["turn"], it["attempt"], it["retry_of"]) for it in llm.ledger()]
    assert places == [("red", 1, 1, None), ("red", 1, 2, 1), ("blue", 1, 1, None), ("red", 2, 1, None)]


async def test_background_calls_are_named(llm: Provider):
    """A call without the tools of the main ones, unless it brings results."""
    await chat(llm, "make a title for this")
    await chat(llm, "go", tools=TOOLS)
    call = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": CALLED}]}
    await chat(llm, "go", call, {"role": "tool", "tool_call_id": "a", "content": "21"})
    assert [entry["background"] for entry in llm.ledger()] == ["title", "", ""]


async def test_a_hang_up_in_a_stall_is_told(llm: Provider):
    """The reply is under way until the client hangs up."""
    llm.put({"replies": [{"reply": {"text": "Hi there!"}, "fault": {"do": "stall", "at": {"byte": 10}}}]})
    with pytest.raises(TimeoutError):
        await chat(llm, "go", wait_s=0.3)
    await until(lambda: llm.ledger()[0]["ended"])
    (entry,) = llm.ledger()
    assert (entry["ended"], entry["bytes_delivered"], entry["tokens_delivered"]) == ("hung_up", 10, 0)
    assert 0.2 < entry["hung_up_s"] < 60 and entry["fault"]["name"] == "stall"
    assert entry["output_tokens_billed"] > 0, "it was generated all the same"


async def test_no_key_is_in_the_ledger(llm: Provider):
    """In every place: in headers, or in the query as Gemini allows."""
    await chat(llm, "go")
    body = {"contents": [{"parts": [{"text": "go"}]}]}
    await sent("POST", f"{llm.url}/v1beta/models/m:generateContent?key={KEY}&alt=sse", body)
    _, told = await admin(llm, "GET", "ledger")
    assert KEY not in json.dumps(told)
    assert [len(entry["key"]) for entry in told["attempts"]] == [8, 8]
    assert told["attempts"][1]["path"].endswith("m:generateContent?alt=sse")


async def test_the_ledger_keeps_no_words(llm: Provider):
    """A long history in each of many requests is not kept as often."""
    await chat(llm, "very secret words")
    (session,) = llm._sessions.all()
    assert "very secret words" not in repr(session.request_log.attempts)


async def test_a_reset_begins_anew(llm: Provider):
    """No entry, no gate, first attempts again; in one session or in all."""
    llm.hold("blue")
    for session in ("red", "blue"):
        with pytest.raises(TimeoutError) if session == "blue" else NOTHING:
            await chat(llm, "go", session=session, wait_s=0.2)
    await admin(llm, "POST", "reset?session=red")
    assert [entry["session"] for entry in llm.ledger()] == ["blue"]
    assert len((await admin(llm, "GET", "gates"))[1]["gates"]) == 1
    await admin(llm, "POST", "reset")
    await chat(llm, "go", session="blue")
    assert [entry["attempt"] for entry in llm.ledger()] == [1]


class _Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *exc_info: object) -> None: ...


NOTHING = _Nothing()


# ---- sessions


async def test_a_session_is_named_by_its_prefix_else_by_its_key(llm: Provider):
    """Requests with neither share one."""
    await chat(llm, "go", session="red")
    await chat(llm, "go", session="red", key="another")
    for key in ("a", "b", "a"):
        await chat(llm, "go", key=key)
    await sent("POST", f"{llm.url}/api/chat", {"model": "m", "messages": [{"role": "user", "content": "go"}]})
    names = [entry["session"] for entry in llm.ledger()]
    assert names[:2] == ["red", "red"] and names[2] == names[4] != names[3] and names[5] == "default"
    assert all(name.startswith("key-") for name in names[2:5])
    _, told = await admin(llm, "GET", f"sessions?session={names[2]}")
    assert told == {"sessions": [{"session": names[2], "calls": 2, "balance": None}]}


async def test_what_a_provider_keeps_is_its_sessions_own(llm: Provider):
    """A response of another session is not found."""
    headers = {"Authorization": "Bearer k"}
    _, told = await sent("POST", f"{llm.session_url('red')}/v1/responses", {"model": "m", "input": "go"}, headers)
    id_ = json.loads(told)["id"]
    found = [(await sent("GET", f"{llm.session_url(it)}/v1/responses/{id_}", None, headers))[0] for it in ("red", "x")]
    assert found == [200, 404]


@pytest.mark.parametrize(
    ("fault", "statuses"),
    [
        ({"do": {"status": 529}, "at": {"attempt": 1}}, [529, 200, 200]),
        ({"do": {"status": 529}, "at": {"attempt": 2}}, [200, 529, 200]),
        ({"do": {"status": 529}, "times": 2}, [529, 529, 200]),
        ({"do": {"status": 529}}, [529, 529, 529]),
        ({"do": {"status": 529}, "at": {"step": 2}}, [200, 200, 200]),
    ],
)
async def test_a_fault_has_its_position_in_each_session(llm: Provider, fault: Any, statuses: list[int]):
    """A retry may succeed; another session, and one that was reset, begins at its own first attempt."""
    llm.put({"replies": [{"reply": {"text": "Hi"}, "fault": fault}]})
    for session in ("red", "blue"):
        assert [(await chat(llm, "go", session=session))[0] for _ in range(3)] == statuses
    llm.reset("red")
    assert (await chat(llm, "go", session="red"))[0] == statuses[0]


async def test_a_reply_fault_is_told(llm: Provider):
    """Which, and if it changed anything."""
    llm.put({"replies": [{"reply": {"text": "Hi"}, "fault": {"do": {"status": 529}}}]})
    await chat(llm, "go")
    (entry,) = llm.ledger()
    assert entry["fault"] == {"name": "status", "byte": None, "proof": "the model's answer is another one"}


# ---- in a thread


def test_a_test_without_an_event_loop_has_it_in_a_thread():
    """The same, from ordinary code; all of it is gone afterwards."""
    with Provider(HI) as llm:
        status, told = asyncio.run(chat(llm, "go"))
        assert (status, told["choices"][0]["message"]["content"]) == (200, "Hi there!")
        gate = llm.hold()
        assert llm.held(gate) == []
        llm.release(gate)
        llm.put("replies: [{error: {status: 503}}]")
        assert asyncio.run(chat(llm, "go"))[0] == 503
        assert [entry["status"] for entry in llm.ledger()] == [200, 503]
        llm.reset()
        assert llm.ledger() == []
        url = llm.url
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(sent("GET", url))


def test_a_mistake_leaves_no_thread_behind(tmp_path: Path):
    """A bad script, and a port that is taken."""
    (tmp_path / "bad.yaml").write_text("replies: [{}]")
    with pytest.raises(BadFileError, match=r"bad\.yaml:1: expected either `reply` or `error`"):
        Provider(tmp_path / "bad.yaml")
    with Provider(HI) as llm:
        port = int(llm.url.rpartition(":")[2])
        with pytest.raises(OSError, match="can't listen at"), Provider(HI, port=port):
            pass
        with pytest.raises(OSError, match="can't listen at"), Provider(HI, admin_port=port):
            pass


# ---- what was asked


async def test_a_test_can_read_what_was_asked(llm: Provider):
    """By the call's number, from the test or over HTTP; only the last hundred of a session are kept."""
    await chat(llm, "first words")
    (entry,) = llm.ledger()
    assert llm.request(entry["call"])["messages"] == [{"role": "user", "content": "first words"}]
    assert (await admin(llm, "GET", f"requests/{entry['call']}"))[1]["model"] == "gpt-5"
    for number in range(100):
        await chat(llm, f"words {number}")
    with pytest.raises(LookupError, match="no body of call 1"):
        llm.request(entry["call"])
    assert (await admin(llm, "GET", "requests/1"))[0] == 404


async def test_the_key_of_a_request_is_not_kept(llm: Provider):
    """An agent may quote it; a request without a body asked nothing."""
    key = "sk-live-0123456789abcdef"
    url, key_in = f"{llm.url}/v1/chat/completions", {"authorization": f"Bearer {key}"}
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": f"My key is {key}."}]}
    async with aiohttp.ClientSession() as client:
        for asked in (client.post(url, json=body, headers=key_in), client.get(f"{llm.url}/v1/models", headers=key_in)):
            async with asked as reply:
                await reply.read()
    said, listed = (llm.request(entry["call"]) for entry in llm.ledger())
    assert said["messages"][0]["content"] == "My key is ***." and listed is None


def test_the_name_of_a_file_is_its_path(tmp_path: Path):
    """As text too; a missing one is named."""
    (tmp_path / "hi.yaml").write_text(json.dumps(HI))
    with Provider(str(tmp_path / "hi.yaml")) as llm:
        assert llm.ledger() == []
    with pytest.raises(BadFileError, match=r"gone\.yaml: no such file"):
        Provider("gone.yaml")


async def test_each_request_is_a_line_of_the_log():
    """With its result; a refusal says why, and nothing that a client sends breaks the line."""
    lines: list[str] = []
    script = {"replies": [{"when": {"user": "busy"}, "error": {"status": 429}}, *HI["replies"]]}
    async with Provider(script, log=lines.append) as llm:
        await chat(llm, "hello")
        await chat(llm, "busy", model="a\nb")
    fine, refused = lines
    assert fine.startswith("#1 200 POST /v1/chat/completions gpt-5 ") and fine.endswith(" ms") and " tokens " in fine
    assert refused.startswith("#2 429 POST /v1/chat/completions a b ") and "Rate limit reached" in refused
