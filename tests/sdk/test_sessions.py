"""One server, many clients of five kinds at the same time: none sees anything of another."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from wedgehog.harness.commands.serve import Provider

pytestmark = pytest.mark.sdk
SESSIONS = 20
ROUNDS = 3
THREADS = ThreadPoolExecutor(SESSIONS)
SAID = [{"role": "user", "content": "go"}]


def openai_chat(url: str, key: str) -> str:
    import openai

    with openai.OpenAI(base_url=f"{url}/v1", api_key=key) as client:
        stream = client.chat.completions.create(model="m", messages=SAID, stream=True)
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def openai_responses(url: str, key: str) -> str:
    import openai

    with openai.OpenAI(base_url=f"{url}/v1", api_key=key) as client:
        return str(client.responses.create(model="m", input="go").output_text)


def messages(url: str, key: str) -> str:
    import anthropic

    asked = {"model": "m", "max_tokens": 999, "messages": SAID}
    with anthropic.Anthropic(base_url=url, api_key=key) as client, client.messages.stream(**asked) as stream:
        return str(stream.get_final_text())


def gemini(url: str, key: str) -> str:
    from google import genai

    options = genai.types.HttpOptions(base_url=url, retry_options=genai.types.HttpRetryOptions(attempts=3))
    with closing(genai.Client(api_key=key, http_options=options)) as client:
        return str(client.models.generate_content(model="m", contents="go").text)


def ollama_chat(url: str, key: str) -> str:
    """Its SDK never tries again, so the caller does."""
    import ollama

    client = ollama.Client(host=url, headers={"Authorization": f"Bearer {key}"})
    with closing(client._client):
        try:
            return str(client.chat(model="m", messages=SAID).message.content)
        except ollama.ResponseError:
            return str(client.chat(model="m", messages=SAID).message.content)


@pytest.fixture(scope="module", autouse=True)
def _sdks() -> None:
    """Imported here and not when tests are collected: it takes seconds, and each worker collects all tests."""
    for name in ("anthropic", "google.genai", "ollama", "openai"):
        pytest.importorskip(name)


@pytest.fixture(scope="module", autouse=True)
def _one_certificate_store() -> Iterator[None]:
    """All clients talk plain HTTP; each would read all certificates again, which takes most of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
        yield


CLIENTS = (openai_chat, openai_responses, messages, gemini, ollama_chat)


async def ask(number: int, url: str, key: str = "k") -> str:
    """Ask with the client of this number, in a thread."""
    return await asyncio.get_running_loop().run_in_executor(THREADS, CLIENTS[number % len(CLIENTS)], url, key)


@pytest.fixture
async def llm() -> AsyncIterator[Provider]:
    async with Provider({"replies": [{"reply": {"text": "nobody's words"}}]}) as provider:
        yield provider


def words(number: int) -> dict[str, Any]:
    """A script of one's own: the first attempt fails, and there is a balance for exactly what follows."""
    reply = [{"text": f"words of {number}"}, {"usage": {"input_tokens": 90, "output_tokens": 10}}]
    fault = {"do": {"status": {"code": 503, "retry_after": 0}}, "at": {"attempt": 1}}
    return {"balance": {"tokens": 100 * ROUNDS}, "replies": [{"reply": reply, "fault": fault}]}


async def test_twenty_parallel_sessions_never_cross(llm: Provider) -> None:
    """Each has its own words, its own first attempt that fails and is retried, its own ledger and balance."""
    for number in range(SESSIONS):
        llm.put(words(number), f"s{number}")

    async def asked(number: int) -> list[str]:
        return [await ask(number, llm.session_url(f"s{number}")) for _ in range(ROUNDS)]

    said = await asyncio.gather(*map(asked, range(SESSIONS)))
    assert said == [[f"words of {number}"] * ROUNDS for number in range(SESSIONS)]
    for number in range(SESSIONS):
        ledger = llm.ledger(f"s{number}")
        assert [entry["status"] for entry in ledger] == [503] + [200] * ROUNDS
        assert [entry["attempt"] for entry in ledger] == [1, 2, 3, 4]
        assert [entry["retry_of"] for entry in ledger] == [None, *(entry["call"] for entry in ledger[:-1])]
        assert {entry["session"] for entry in ledger} == {f"s{number}"}
        left = llm.balance(f"s{number}")
        assert left is not None and left["left"] == 0
    assert len(llm.ledger()) == SESSIONS * (ROUNDS + 1)


async def test_twenty_keys_are_twenty_sessions(llm: Provider) -> None:
    """Without a prefix: one held session keeps no other waiting, and an empty purse is only its own."""
    import openai

    llm.put({"balance": {"tokens": 1}, "replies": [{"reply": {"text": "Hi"}}]})
    said = await asyncio.gather(*(ask(number, llm.url, f"key-{number}") for number in range(SESSIONS)))
    assert said == ["Hi"] * SESSIONS
    assert len({entry["session"] for entry in llm.ledger()}) == SESSIONS
    with pytest.raises(openai.RateLimitError, match="You exceeded your current quota"):
        await ask(0, llm.url, "key-0")
    assert await ask(0, llm.url, "key-fresh") == "Hi"


async def test_a_held_session_keeps_no_other_waiting(llm: Provider) -> None:
    """One waits at its gate while nineteen others are answered."""
    gate = llm.hold("s0")
    first = asyncio.create_task(ask(0, llm.session_url("s0")))
    others = [ask(number, llm.session_url(f"s{number}")) for number in range(1, SESSIONS)]
    assert await asyncio.gather(*others) == ["nobody's words"] * (SESSIONS - 1)
    assert not first.done() and len(llm.held(gate)) == 1
    llm.release(gate)
    assert await first == "nobody's words"
