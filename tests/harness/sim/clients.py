"""Agents of a few lines on unmodified clients, each with the client's own timer of ten minutes."""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import pydantic_ai
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

TIMER_S = 600.0
MESSAGES: Any = [{"role": "user", "content": "Hi"}]
BODY = {"model": "m", "stream": True, "messages": MESSAGES}
KEY = {"authorization": "Bearer k"}
Tls = ssl.SSLContext | None


async def on_aiohttp(url: str, tls: Tls) -> str:
    connector = aiohttp.TCPConnector(ssl=tls) if tls else None
    async with (
        aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=TIMER_S)) as client,
        client.post(f"{url}/v1/chat/completions", json=BODY, headers=KEY) as response,
    ):
        return b"".join([part async for part in response.content.iter_any()]).decode()


async def on_httpx(url: str, tls: Tls) -> str:
    async with (
        httpx.AsyncClient(timeout=TIMER_S, verify=tls or True) as client,
        client.stream("POST", f"{url}/v1/chat/completions", json=BODY, headers=KEY) as response,
    ):
        return b"".join([part async for part in response.aiter_raw()]).decode()


def trusting(tls: Tls) -> httpx2.AsyncClient | None:
    return httpx2.AsyncClient(verify=tls, timeout=TIMER_S) if tls else None


async def on_openai(url: str, tls: Tls) -> str:
    async with openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", http_client=trusting(tls)) as client:
        stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])


async def on_anthropic(url: str, tls: Tls) -> str:
    async with (
        anthropic.AsyncAnthropic(api_key="k", base_url=url, http_client=trusting(tls)) as client,
        client.messages.stream(model="m", max_tokens=99, messages=MESSAGES) as stream,
    ):
        return "".join([text async for text in stream.text_stream])


async def on_pydantic_ai(url: str, tls: Tls) -> str:
    provider = OpenAIProvider(
        openai_client=openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", http_client=trusting(tls))
    )
    async with pydantic_ai.Agent(OpenAIChatModel("m", provider=provider)).run_stream("Hi") as result:
        return "".join([text async for text in result.stream_text(delta=True)])


@dataclass(frozen=True)
class Client:
    """What asks, and what it raises."""

    ask: Callable[[str, Tls], Awaitable[str]]
    on_timeout: type[Exception]
    on_reset: type[Exception]
    timer_s: float = TIMER_S


CLIENTS = {
    "aiohttp": Client(on_aiohttp, TimeoutError, aiohttp.ClientPayloadError),
    "httpx": Client(on_httpx, httpx.ReadTimeout, httpx.ReadError),
    "openai": Client(on_openai, openai.APITimeoutError, openai.APIConnectionError),
    "anthropic": Client(on_anthropic, httpx2.ReadTimeout, httpx2.ReadError),
    "pydantic-ai": Client(on_pydantic_ai, pydantic_ai.exceptions.ModelAPIError, pydantic_ai.exceptions.ModelAPIError),
}
