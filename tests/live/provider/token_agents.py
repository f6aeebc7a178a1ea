"""Agents that fetch an OAuth access token for the model: one is sound, the others handle its end wrongly."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import aiohttp

GRANT = {"grant_type": "client_credentials", "client_id": "me", "client_secret": "mine"}


class RefusedError(Exception):
    """The provider or the token endpoint refused."""


class Client:
    """The model and the token endpoint, with the token in a file of the session."""

    def __init__(self, http: aiohttp.ClientSession, llm_url: str, folder: Path) -> None:
        self.http, self.url, self.file = http, llm_url, folder / "token"
        self.token_url = os.environ.get("TOKEN_URL", f"{llm_url}/oauth/token")

    async def token(self, *, new: bool = False) -> str:
        """The kept token, or a new one."""
        if self.file.exists() and not new:
            return self.file.read_text()
        async with self.http.post(self.token_url, data=GRANT) as reply:
            said = await reply.json()
        if reply.status != 200:
            raise RefusedError(f"Error: no access token: {said['error']}")
        self.file.write_text(said["access_token"])
        return str(said["access_token"])

    async def ask(self, said: list[dict[str, str]], token: str) -> str | None:
        """The answer, or None if the token is refused."""
        headers = {"authorization": f"Bearer {token}"}
        body = {"model": "gpt-5", "messages": said}
        async with self.http.post(f"{self.url}/v1/chat/completions", json=body, headers=headers) as reply:
            got = await reply.json()
        return None if reply.status == 401 else str(got["choices"][0]["message"]["content"])


async def _answered(message: str, session_dir: str, llm_url: str, way: Any, limit_s: float | None = 20) -> str:
    file = Path(session_dir) / "session.json"
    said = json.loads(file.read_text()) if file.exists() else []
    said.append({"role": "user", "content": message})
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=limit_s)) as http:
        text = await way(Client(http, llm_url, Path(session_dir)), said)
    file.write_text(json.dumps([*said, {"role": "assistant", "content": text}]))
    return str(text)


async def _refreshes_once(client: Client, said: list[dict[str, str]]) -> str:
    text = await client.ask(said, await client.token())
    text = text or await client.ask(said, await client.token(new=True))
    if text is None:
        raise RefusedError("Error: the new token is refused too")
    return text


async def _keeps_it(client: Client, said: list[dict[str, str]]) -> str:
    text = await client.ask(said, await client.token())
    if text is None:
        raise RefusedError("Error: 401: the token is refused")
    return text


async def _storms(client: Client, said: list[dict[str, str]]) -> str:
    for _ in range(100):
        try:
            return await _refreshes_once(client, said)
        except RefusedError:
            await asyncio.sleep(0.01)
    raise RefusedError("Error: no access token")


async def sound(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Ask for one new token after a 401."""
    return await _answered(message, session_dir, llm_url, _refreshes_once)


async def waits(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """The same, and wait for each answer without an end."""
    return await _answered(message, session_dir, llm_url, _refreshes_once, limit_s=None)


async def keeps_it(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Never ask for a second token."""
    return await _answered(message, session_dir, llm_url, _keeps_it)


async def storms(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Ask a hundred times for a new token."""
    return await _answered(message, session_dir, llm_url, _storms)


async def has_a_key(message: str, *, session_dir: str, llm_url: str, key: str) -> str:
    """Use an API key, and no token."""

    async def way(client: Client, said: list[dict[str, str]]) -> str:
        return str(await client.ask(said, key))

    return await _answered(message, session_dir, llm_url, way)


if __name__ == "__main__":
    url, session, said_now = sys.argv[1:]
    assert "TOKEN_URL" in os.environ, "the spec gives no address of the token endpoint"
    print(asyncio.run(sound(said_now, session_dir=session, llm_url=url, key="")))
