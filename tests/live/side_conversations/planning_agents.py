"""Agents that ask for JSON beside the conversation, as async functions: a plan, a check, a route. Chat completions.

`plans` asks again, and then works without a plan. `guards` refuses what it cannot check. `fenced` reads JSON in a
fence, and says so where there is none. `in_words` asks for JSON without a schema. Each of the others has one bug.
"""

import json
import re
from pathlib import Path

import aiohttp

TEXT = {"type": "string"}
PLAN = {"type": "object", "properties": {"goal": TEXT, "steps": {"type": "array", "items": TEXT, "minItems": 1}}}
PLAN["required"] = ["goal", "steps"]
SAY = {"required": ["say"]}
NOTE = {"type": "function", "function": {"name": "note", "parameters": {"type": "object", "properties": {}}}}
CHECK = {"type": "object", "properties": {"safe": {"type": "boolean"}, "reason": TEXT}, "required": ["safe", "reason"]}


class Plans:
    """Makes a plan for each message; without one it answers all the same."""

    schema, tries, asks = PLAN, 2, "Write a plan for this message as JSON: "

    def __init__(self, folder, url):
        self.file, self.url = Path(folder) / "messages.json", url
        self.said = json.loads(self.file.read_text()) if self.file.exists() else []

    async def asked(self, messages, **more):
        body = {"model": "gpt-5-mini", "messages": messages, **more}
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as client,
            client.post(f"{self.url}/v1/chat/completions", json=body, headers={"authorization": "Bearer k"}) as reply,
        ):
            said = await reply.json()
            if reply.status != 200:
                raise RuntimeError(f"Error: {reply.status} {said['error']['message']}")
            return said["choices"][0]["message"]["content"] or ""

    async def beside(self, message):
        wanted = {"type": "json_schema", "json_schema": {"name": "it", "schema": self.schema}}
        asked = [{"role": "system", "content": "You help an agent."}, {"role": "user", "content": self.asks + message}]
        for _ in range(self.tries):
            found = self.read(await self.asked(asked, response_format=wanted))
            if found is not None:
                return found
        return self.without()

    def read(self, text):
        try:
            found = json.loads(text)
        except ValueError:
            return None
        return found if isinstance(found, dict) and {*self.schema["required"]} <= {*found} else None

    def without(self):
        return {"goal": "", "steps": []}

    async def answer(self, message):
        plan = await self.beside(message)
        self.said.append({"role": "user", "content": message})
        steps = {"role": "system", "content": f"Your steps: {plan['steps']}"}
        text = await self.asked([{"role": "system", "content": "You answer."}, *self.said, steps], tools=[NOTE])
        self.said.append({"role": "assistant", "content": text})
        self.file.write_text(json.dumps(self.said))
        return text


class Guards(Plans):
    """Checks each message; one that it cannot check is not answered, and its user reads why."""

    schema, asks = CHECK, "Is this message safe? "

    def without(self):
        raise RuntimeError("Error: the check of this message failed, so it was not answered")

    async def beside(self, message):
        if not (await super().beside(message))["safe"]:
            raise RuntimeError("Error: this message is not allowed")
        return {"steps": []}


class Fenced(Plans):
    tries = 1

    def read(self, text):
        found = re.search(r"\{.*\}", text, re.DOTALL)
        return super().read(found[0]) if found else None

    def without(self):
        raise RuntimeError("Error: the model made no plan that can be read")


class Apologizes(Plans):
    """A plan that cannot be read ends the turn, and its user reads nothing of it."""

    tries = 1

    async def answer(self, message):
        try:
            return await super().answer(message)
        except KeyError:
            return "I am having trouble thinking right now."

    def without(self):
        return {}


class Insists(Plans):
    """Asks for a plan until there is one."""

    tries = 10**6


class Stores(Plans):
    """What it could not read stands in the conversation, as a message without content."""

    def without(self):
        self.said.append({"role": "assistant", "content": None})
        return {"steps": []}


class InWords(Plans):
    """Asks for its answer as JSON, without a schema, and again if it cannot read it."""

    asks, tries = "Answer as JSON, with the key say: ", 2
    schema = SAY

    async def answer(self, message):
        for _ in range(self.tries):
            said = self.read(await self.asked([*self.said, {"role": "user", "content": self.asks + message}]))
            if said is not None and isinstance(said["say"], str):
                break
        else:
            said = self.without()
        self.said += [{"role": "user", "content": message}, {"role": "assistant", "content": said["say"] or "(none)"}]
        self.file.write_text(json.dumps(self.said))
        return said["say"]

    def without(self):
        raise RuntimeError("Error: the model's answer is no JSON with the key say")


class Swallows(InWords):
    """What it cannot read is an empty success."""

    def without(self):
        return {"say": ""}


def _agent(kind):
    async def answer(message: str, *, session_dir: str, llm_url: str) -> str:
        return await kind(session_dir, llm_url).answer(message)

    return answer


plans, guards, fenced = map(_agent, (Plans, Guards, Fenced))
apologizes, insists, stores = map(_agent, (Apologizes, Insists, Stores))
in_words, swallows = map(_agent, (InWords, Swallows))
