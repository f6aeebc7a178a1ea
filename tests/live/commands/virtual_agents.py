"""Agents on aiohttp that are async functions, and others that are not for virtual time."""

import asyncio
import json
import os
import subprocess
import threading
import time
from pathlib import Path

import aiohttp
import requests


async def answer(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Wait a minute for each of two tries, and remember the session."""
    file = Path(session_dir) / "session.jsonl"
    said = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    said.append({"role": "user", "content": message})
    text = await _asked(said, llm_url, key)
    said.append({"role": "assistant", "content": text})
    file.write_text("".join(json.dumps(line) + "\n" for line in said))
    print(f"answered at {time.monotonic():.6f}")
    return text


async def _asked(said: list[dict[str, str]], llm_url: str, key: str) -> str:
    body = {"model": "claude-sonnet-4-6", "max_tokens": 500, "messages": said}
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=50)) as client:
        for _ in range(2):
            try:
                async with client.post(f"{llm_url}/v1/messages", json=body, headers=headers) as reply:
                    return str((await reply.json())["content"][0]["text"])
            except (TimeoutError, aiohttp.ClientError):
                await asyncio.sleep(1)
    raise RuntimeError("the model did not answer")


async def hangs(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Has no timer."""
    said = [{"role": "user", "content": message}]
    body = {"model": "claude-sonnet-4-6", "max_tokens": 500, "messages": said}
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as client,
        client.post(f"{llm_url}/v1/messages", json=body, headers=headers) as reply,
    ):
        return str((await reply.json())["content"][0]["text"])


async def dies(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Ends its process where the model's reply does not arrive."""
    try:
        async with asyncio.timeout(5):
            return await hangs(message, session_dir=session_dir, llm_url=llm_url, key=key)
    except TimeoutError:
        os._exit(1)


async def computes(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Computes without an end where the model's reply does not arrive."""
    try:
        async with asyncio.timeout(5):
            return await hangs(message, session_dir=session_dir, llm_url=llm_url, key=key)
    except TimeoutError:
        while True:
            pass


def starts_a_thread(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Not async, which is fine, but virtual time cannot wait for its thread."""
    thread = threading.Thread(target=time.sleep, args=(1,))
    thread.start()
    thread.join()
    return message


def blocks(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Not async: asks with requests, whose timer is fifty seconds, and asks once more."""
    body = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": message}]}
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    for _ in range(2):
        try:
            reply = requests.post(f"{llm_url}/v1/messages", json=body, headers=headers, timeout=50)
            return str(reply.json()["content"][0]["text"])
        except requests.RequestException:
            time.sleep(1)
    raise RuntimeError("the model did not answer")


def runs_a_loop(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Not async, but runs an async function."""
    return asyncio.run(answer(message, session_dir=session_dir, llm_url=llm_url, key=key))


async def starts_a_process(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Catches the error that says that this is not simulated."""
    try:
        return subprocess.check_output(["echo", message], text=True)
    except Exception:
        return "sorry"
