"""Agents of a few lines on unmodified clients that block, each with the client's own timer of ten minutes."""

import urllib.request
from collections.abc import Callable
from dataclasses import dataclass

import anthropic
import httpx
import httpx2
import openai
import requests

from tests.harness.sim.clients import BODY, KEY, MESSAGES, TIMER_S


def on_httpx(url: str) -> str:
    with httpx.Client(timeout=TIMER_S) as client:
        return client.post(f"{url}/v1/chat/completions", json=BODY, headers=KEY).text


def on_openai(url: str) -> str:
    with openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0, timeout=TIMER_S) as client:
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        return "".join([chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices])


def on_anthropic(url: str) -> str:
    with (
        anthropic.Anthropic(api_key="k", base_url=url, max_retries=0, timeout=TIMER_S) as client,
        client.messages.stream(model="m", max_tokens=99, messages=MESSAGES) as stream,
    ):
        return "".join(stream.text_stream)


def on_requests(url: str) -> str:
    return requests.post(f"{url}/v1/chat/completions", json=BODY, headers=KEY, timeout=TIMER_S).text


def on_urllib(url: str) -> str:
    body, headers = httpx.Request("POST", url, json=BODY).content, {"content-type": "application/json", **KEY}
    asked = urllib.request.Request(f"{url}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(asked, timeout=TIMER_S) as reply:
        return reply.read().decode()


@dataclass(frozen=True)
class Client:
    ask: Callable[[str], str]
    on_timeout: type[Exception]
    on_reset: type[Exception]
    on_refusal: type[Exception]


CLIENTS = {
    "httpx": Client(on_httpx, httpx.ReadTimeout, httpx.ReadError, httpx.ConnectError),
    "openai": Client(on_openai, openai.APITimeoutError, openai.APIConnectionError, openai.APIConnectionError),
    "anthropic": Client(on_anthropic, httpx2.ReadTimeout, httpx2.ReadError, anthropic.APIConnectionError),
    "requests": Client(
        on_requests,
        requests.exceptions.ConnectionError,
        requests.exceptions.ChunkedEncodingError,
        requests.exceptions.ConnectionError,
    ),
    "urllib": Client(on_urllib, TimeoutError, ConnectionResetError, OSError),
}
