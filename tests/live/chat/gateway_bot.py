"""A bot in Discord: `gateway_bot.py CHAT_URL LLM_URL [BUG…]`.

It notices a gateway that is silent or gone, resumes its session, sends again what Discord did not take, and sends a
long answer in parts. Its bugs:

- `sends-once`: tries once to send an answer, and says nothing of an error
- `in-one`: sends the whole answer at once, however long it is
- `must-type`: gives up the turn if it can not show that it writes
- `draft`: no bug; shows its answer while it grows, in a message that it changes. `edits-once`: tries each change once
- `connects-once`: does not connect again
- `trusts-silence`: never looks whether its heartbeats are answered
- `forgets-numbers`: resumes with the number of the first event, and works on each event that comes
"""

import asyncio
import json
import sys
import time

import aiohttp

CHAT, LLM = sys.argv[1:3]
BUGS = frozenset(sys.argv[3:])
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
TRIES, LONGEST = 8, 2000
FAILURES = (aiohttp.ClientError, OSError, TimeoutError)
ATTEMPT = aiohttp.ClientTimeout(total=4)


class RefusedError(Exception):
    """Discord does not take a request."""


async def chat(client, verb, path, tries=TRIES, **body):
    """The result of one request, which is tried again."""
    why = ""
    for _ in range(tries):
        try:
            async with client.request(verb, f"{CHAT}/api/v10/{path}", json=body or None, timeout=ATTEMPT) as reply:
                told = await reply.json() if reply.status != 204 else {}
                if reply.status < 300:
                    return told
                why = f"{reply.status} {told}"
                if reply.status in (400, 404):
                    break
                wait_s = told.get("retry_after", 1)
        except FAILURES as wrong:
            why, wait_s = repr(wrong), 1
        print(f"{verb} {path}: {why}", file=sys.stderr)
        if tries > 1:
            await asyncio.sleep(wait_s)
    raise RefusedError(why)


async def answer_to(client, said, grows):
    """Read the reply line by line; `grows` gets all of it that has come so far."""
    body = {"model": "claude-sonnet-4-6", "max_tokens": 4000, "messages": said, "stream": True}
    answer = ""
    async with client.post(f"{LLM}/v1/messages", json=body, headers=HEADERS) as reply:
        reply.raise_for_status()
        async for line in reply.content:
            if line.startswith(b"data:"):
                answer += json.loads(line[5:]).get("delta", {}).get("text", "")
                await grows(answer)
    return answer


class Bot:
    """One conversation."""

    def __init__(self, client):
        self.client, self.said = client, []
        self.me = self.session = self.url = None
        self.seq, self.first_seq = None, None
        self.acked, self.inbox = True, asyncio.Queue()

    # ---- the gateway

    async def listen(self):
        self.url = (await chat(self.client, "GET", "gateway/bot"))["url"]
        while True:
            try:
                await self.one_connection()
            except FAILURES as wrong:
                print("the gateway is gone:", repr(wrong), file=sys.stderr)
            if "connects-once" in BUGS:
                await asyncio.sleep(3600)
            await asyncio.sleep(0.5)

    async def one_connection(self):
        async with self.client.ws_connect(f"{self.url}/?v=10&encoding=json", timeout=ATTEMPT.total) as ws:
            hello = await ws.receive_json(timeout=10)
            beats = asyncio.create_task(self.beat(ws, hello["d"]["heartbeat_interval"] / 1000))
            try:
                await ws.send_json(self.greeting())
                async for message in ws:
                    if not await self.take(ws, json.loads(message.data)):
                        break
            finally:
                beats.cancel()

    def greeting(self):
        if self.session is None:
            return {"op": 2, "d": {"token": "T", "intents": 1 << 12, "properties": {}}}
        seq = self.first_seq if "forgets-numbers" in BUGS else self.seq
        return {"op": 6, "d": {"token": "T", "session_id": self.session, "seq": seq}}

    async def beat(self, ws, every_s):
        self.acked = True
        while True:
            await asyncio.sleep(every_s)
            if not self.acked and "trusts-silence" not in BUGS:
                print("no heartbeat came back", file=sys.stderr)
                await ws.close(code=4000)
                return
            self.acked = False
            await ws.send_json({"op": 1, "d": self.seq})

    async def take(self, ws, payload):
        """One payload; false: connect again."""
        if payload["op"] == 11:
            self.acked = True
        if payload["op"] == 9 and not payload["d"]:
            self.session = None
        if payload["op"] != 0:
            return payload["op"] not in (7, 9)
        self.seq, data = payload["s"], payload["d"]
        if payload["t"] == "READY":
            self.me, self.session, self.url = data["user"]["id"], data["session_id"], data["resume_gateway_url"]
            self.first_seq = self.seq
        elif payload["t"] == "MESSAGE_CREATE" and data["author"]["id"] != self.me:
            self.inbox.put_nowait(data["content"].removeprefix(f"<@{self.me}> "))
        return True

    # ---- messages

    async def work(self):
        while True:
            text = await self.inbox.get()
            try:
                await self.handle(text)
            except (*FAILURES, RefusedError) as wrong:
                print("not answered:", wrong, file=sys.stderr)

    async def handle(self, text):
        try:
            await chat(self.client, "POST", "channels/1000007/typing", tries=1)
        except RefusedError:
            if "must-type" in BUGS:
                raise
        self.said.append({"role": "user", "content": text})
        draft = Draft(self) if "draft" in BUGS else None
        if draft is not None:
            await draft.begins()
        answer = await answer_to(self.client, self.said, draft.grows if draft else nothing)
        self.said.append({"role": "assistant", "content": answer})
        if draft is not None:
            await draft.becomes(answer)
            answer = answer[LONGEST:]
        size = len(answer) if "in-one" in BUGS else LONGEST
        for at in range(0, len(answer), size or 1):
            await self.send(answer[at : at + size])

    async def send(self, text):
        tries = 1 if "sends-once" in BUGS else TRIES
        return await chat(self.client, "POST", "channels/1000007/messages", tries=tries, content=text)


async def nothing(so_far):
    pass


class Draft:
    """A message that is changed at most twice in a second."""

    def __init__(self, bot):
        self.bot, self.at, self.shown = bot, time.monotonic(), "…"

    async def begins(self):
        self.id = (await self.bot.send(self.shown))["id"]

    async def grows(self, answer):
        if time.monotonic() > self.at + 0.5 and answer.strip():
            await self.becomes(answer)

    async def becomes(self, answer):
        self.at, answer = time.monotonic(), answer[:LONGEST]
        if answer != self.shown:
            tries = 1 if "edits-once" in BUGS else TRIES
            path = f"channels/1000007/messages/{self.id}"
            await chat(self.bot.client, "PATCH", path, tries=tries, content=answer)
            self.shown = answer


async def main():
    async with aiohttp.ClientSession() as client:
        bot = Bot(client)
        await asyncio.gather(bot.listen(), bot.work())


asyncio.run(main())
