"""A bot in Slack's socket mode: `socket_bot.py CHAT_URL LLM_URL [BUG]`.

It acknowledges each envelope at once, knows a message by its `ts`, and connects again when it is asked to, or when no
ping came for half a minute. Its bugs:

- `acknowledges-late`: when it has answered its user; and it takes each event for a new one
- `connects-once`: does not connect again
"""

import asyncio
import sys

import aiohttp

CHAT, LLM = sys.argv[1:3]
BUG = sys.argv[3] if len(sys.argv) > 3 else ""
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
FAILURES = (aiohttp.ClientError, OSError, TimeoutError)
SILENCE_S = 30


async def post(client, url, **body):
    async with client.post(url, json=body, headers=HEADERS) as reply:
        reply.raise_for_status()
        return await reply.json()


class Bot:
    """One conversation; it works on one message after the other."""

    def __init__(self, client):
        self.client, self.said, self.known, self.inbox = client, [], set(), asyncio.Queue()

    async def listen(self):
        while True:
            try:
                await self.one_connection()
            except FAILURES as wrong:
                print("no connection:", repr(wrong), file=sys.stderr)
            if BUG == "connects-once":
                await asyncio.sleep(3600)
            await asyncio.sleep(0.5)

    async def one_connection(self):
        url = (await post(self.client, f"{CHAT}/api/apps.connections.open"))["url"]
        async with self.client.ws_connect(url, autoping=False) as ws:
            while True:
                message = await ws.receive(SILENCE_S)
                if message.type == aiohttp.WSMsgType.PING:
                    await ws.pong(message.data)
                elif message.type != aiohttp.WSMsgType.TEXT or message.json()["type"] == "disconnect":
                    return
                elif message.json()["type"] == "events_api":
                    await self.take(ws, message.json())

    async def take(self, ws, envelope):
        event = envelope["payload"]["event"]
        if BUG == "acknowledges-late":
            task = asyncio.create_task(self.late(ws, envelope["envelope_id"], event["text"]))
            self.known.add(task)
            return
        await ws.send_json({"envelope_id": envelope["envelope_id"]})
        if event["ts"] not in self.known:
            self.known.add(event["ts"])
            self.inbox.put_nowait(event["text"])

    async def late(self, ws, id_, text):
        await self.handle(text)
        await ws.send_json({"envelope_id": id_})

    async def work(self):
        while True:
            await self.handle(await self.inbox.get())

    async def handle(self, text):
        self.said.append({"role": "user", "content": text})
        try:
            body = {"model": "claude-sonnet-4-6", "max_tokens": 999, "messages": self.said}
            reply = await post(self.client, f"{LLM}/v1/messages", **body)
            self.said.append({"role": "assistant", "content": reply["content"]})
            answer = "".join(part.get("text", "") for part in reply["content"])
        except FAILURES as wrong:
            answer = f"Error: {wrong}"
        await post(self.client, f"{CHAT}/api/chat.postMessage", channel="D7", text=answer)


async def main():
    async with aiohttp.ClientSession() as client:
        bot = Bot(client)
        await asyncio.gather(bot.listen(), bot.work())


asyncio.run(main())
