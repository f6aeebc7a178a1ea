"""Agents on chat completions, for virtual time, before a provider that is stricter than OpenAI: each bug has a name."""

import asyncio
import json
from pathlib import Path

import aiohttp

COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
SHELL = {"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": COMMAND}}
TRIES, ROUNDS, LIMIT_S = 3, 12, 20


class ModelError(Exception):
    """Ends the turn, with words for the user."""


class Agent:
    """Correct without a `bug`: `mends` puts what is missing into the conversation, else it takes a failed turn back."""

    def __init__(self, url, key, folder, *, mends, bug=""):
        self.url, self.key, self.mends, self.bug = url, key, mends, bug
        self.file = Path(folder) / "session.json"
        self.said = json.loads(self.file.read_text()) if self.file.exists() else []

    async def answer(self, message):
        before = len(self.said)
        self.said.append({"role": "user", "content": message})
        try:
            return await self._turn()
        except asyncio.CancelledError:
            if self.bug == "an empty message at a stop":
                self.said.append({"role": "assistant", "content": ""})
            else:
                del self.said[before:]
            raise
        except ModelError:
            if self.mends:
                author = "system" if self.bug == "a second system text" else "assistant"
                self.said.append({"role": author, "content": "(The turn failed.)"})
            elif self.bug != "two messages in a row":
                del self.said[before:]
            raise
        finally:
            self.file.write_text(json.dumps(self.said))

    async def _turn(self):
        for _ in range(ROUNDS):
            said = await self._asked()
            calls = said.get("tool_calls") or []
            if not calls:
                return said["content"]
            for call in calls:
                text = await _ran(call["function"]["arguments"])
                self.said.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        raise ModelError("Error: stopped at the limit of tool rounds")

    async def _asked(self):
        for tried in range(TRIES):
            said = await self._posted(last=tried == TRIES - 1)
            if said is None:
                await asyncio.sleep(1)
                continue
            if self.bug == "thoughts are dropped":
                said.pop("reasoning_content", None)
            called = [call["function"] for call in said.get("tool_calls") or []]
            broken = any(not (_object(it["arguments"]) and _proper(it["name"])) for it in called)
            empty = not (said.get("content") or said.get("tool_calls"))
            if empty and self.bug == "an empty message":
                self.said.append(said)
            if empty or (broken and not self.mends and not self.bug):
                continue
            for it in called:
                if not _object(it["arguments"]) and self.bug != "broken arguments":
                    it["arguments"] = "{}"
                if not it["name"] and self.bug != "a call without a name":
                    it["name"] = "bash"
                if not _proper(it["name"]) and self.bug not in ("a call without a name", "marks in a name"):
                    it["name"] = "".join(letter for letter in it["name"] if letter.isalnum())
            self.said.append(said)
            return said
        raise ModelError("Error: the model gave no whole reply")

    async def _posted(self, last):
        told = {"role": "system", "content": "You run commands, and answer."}
        grown = sum(it["role"] == "user" for it in self.said) if self.bug == "tools of each turn" else 1
        body = {"model": "gpt-5", "messages": [told, *self.said], "tools": [SHELL] * grown}
        timeout, head = aiohttp.ClientTimeout(total=LIMIT_S), {"authorization": f"Bearer {self.key}"}
        async with (
            aiohttp.ClientSession(timeout=timeout) as client,
            client.post(f"{self.url}/v1/chat/completions", json=body, headers=head) as reply,
        ):
            if reply.status == 200:
                return json.loads(await reply.text())["choices"][0]["message"]
            if reply.status < 500 or last:
                raise ModelError(f"Error: status {reply.status}: {(await reply.text())[:200]}")
            return None


def _object(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _proper(name):
    return bool(name) and all(letter.isalnum() or letter in "_-" for letter in name)


async def _ran(arguments):
    if not _object(arguments) or not isinstance(json.loads(arguments).get("command"), str):
        return "Error: the arguments are no JSON object with a command"
    command = ("sh", "-c", json.loads(arguments)["command"])
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return out.decode()


def _agent(*, mends, bug=""):
    async def answer(message, *, session_dir, llm_url, key):
        return await Agent(llm_url, key, session_dir, mends=mends, bug=bug).answer(message)

    return answer


mends = _agent(mends=True)
takes_back = _agent(mends=False)
broken_arguments = _agent(mends=True, bug="broken arguments")
a_call_without_a_name = _agent(mends=True, bug="a call without a name")
an_empty_message = _agent(mends=True, bug="an empty message")
an_empty_message_at_a_stop = _agent(mends=True, bug="an empty message at a stop")
two_messages_in_a_row = _agent(mends=False, bug="two messages in a row")
thoughts_are_dropped = _agent(mends=True, bug="thoughts are dropped")
a_second_system_text = _agent(mends=True, bug="a second system text")
tools_of_each_turn = _agent(mends=True, bug="tools of each turn")
marks_in_a_name = _agent(mends=True, bug="marks in a name")
