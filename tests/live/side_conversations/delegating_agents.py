"""Agents with subagents, for virtual time: `readers` and `planner` are correct, each of the others has one bug.

`readers` (Anthropic) runs subagents in parallel, with its own tools and system text. `planner` (OpenAI) asks for a
plan before each message and for a grade after each answer, also with its own tools and system text.
"""

import asyncio
import json
from contextlib import nullcontext
from email.utils import parsedate_to_datetime
from pathlib import Path

import aiohttp

SYSTEM = "You are a careful agent. You read files and answer."
TEXT = {"type": "string"}
DELEGATE = {"type": "object", "properties": {"title": TEXT, "prompt": TEXT}, "required": ["title", "prompt"]}
COMMAND = {"type": "object", "properties": {"command": TEXT}, "required": ["command"]}
TOOLS = [("bash", "Runs a command.", COMMAND), ("task", "Gives a task to a subagent.", DELEGATE)]
TRIES, ROUNDS, PATIENCE_S = 3, 20, 30
DEPTH = 3
SILENT = {
    "fails silently": "",
    "fails in a frame": "<task_result>\n\n</task_result>",
    "praises failure": '{"status": "completed"}',
}
"""What a failed subagent returns."""
AT_ITS_LIMIT = {
    "ends empty": "",
    "ends in canned words": "Task completed but no final response was generated.",
    "ends well": "[OK] reader:",
}
"""What a subagent returns that has reached its limit of rounds."""
MOST_TOKENS = 150_000


class ModelError(Exception):
    """The model did not answer."""


class Anthropic:
    """One conversation on the Messages API; `said` is what was said so far."""

    path, system, tools = "/v1/messages", SYSTEM, TOOLS

    def __init__(self, said):
        self.said = said

    def add_user(self, text):
        self.said.append({"role": "user", "content": text})

    def body(self):
        tools = [{"name": name, "description": says, "input_schema": schema} for name, says, schema in self.tools]
        asked = {"model": "claude-sonnet-4-6", "max_tokens": 2000, "system": self.system}
        return {**asked, "messages": self.said, "tools": tools}

    def headers(self, key):
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def add_reply(self, reply):
        """Text and tool calls (id, name, arguments) of a reply. ModelError if it is not whole."""
        parts = reply["content"]
        if reply["stop_reason"] not in ("end_turn", "tool_use") or not parts:
            raise ModelError(f"Error: the reply is incomplete: {reply['stop_reason']}")
        if not any(part["type"] == "tool_use" or part.get("text") for part in parts):
            raise ModelError("Error: the reply is incomplete: it has no words")
        for at, part in enumerate(parts):
            if part["type"] == "tool_use" and any(other.get("id") == part["id"] for other in parts[:at]):
                part["id"] += f"_{at}"
        # The provider refuses an empty text that comes back, also one of its own.
        lasting = [part for part in parts if part["type"] != "text" or part["text"]]
        self.said.append({"role": "assistant", "content": lasting})
        calls = [(part["id"], part["name"], part["input"]) for part in parts if part["type"] == "tool_use"]
        return self.words([part["text"] for part in parts if part["type"] == "text"]), calls

    def words(self, texts):
        """What a reply says."""
        return "".join(texts)

    def used(self, reply):
        return reply.get("usage", {}).get("input_tokens", 0)

    def add_results(self, results):
        parts = [
            {"type": "tool_result", "tool_use_id": id_, "content": text, "is_error": failed}
            for id_, text, failed in results
        ]
        self.said.append({"role": "user", "content": parts})


class Specialist(Anthropic):
    """A subagent with a system text of its own, which only runs commands."""

    system, tools = "You are a specialist, and do one part of the work.", TOOLS[:1]


class FirstPart(Anthropic):
    """The bug: the first text of a reply is taken for all of it."""

    def words(self, texts):
        return texts[0] if texts else ""


class OpenAI:
    """The same on chat completions."""

    path = "/v1/chat/completions"

    def __init__(self, said):
        self.said = said or [{"role": "system", "content": SYSTEM}]

    def add_user(self, text):
        self.said.append({"role": "user", "content": text})

    def body(self):
        tools = [
            {"type": "function", "function": {"name": name, "description": says, "parameters": schema}}
            for name, says, schema in TOOLS
        ]
        return {"model": "gpt-5", "messages": self.said, "tools": tools}

    def headers(self, key):
        return {"authorization": f"Bearer {key}"}

    def add_reply(self, reply):
        choice = reply["choices"][0]
        said = choice["message"]
        asked = said.get("tool_calls") or []
        for at, call in enumerate(asked):
            if any(other["id"] == call["id"] for other in asked[:at]):
                call["id"] += f"_{at}"
        if choice["finish_reason"] not in ("stop", "tool_calls") or not (said.get("content") or asked):
            raise ModelError(f"Error: the reply is incomplete: {choice['finish_reason']}")
        calls = [(it["id"], it["function"]["name"], json.loads(it["function"]["arguments"])) for it in asked]
        if not all(isinstance(args, dict) for _, _, args in calls):
            raise ModelError("Error: the arguments are broken")
        self.said.append({"role": "assistant", "content": said.get("content"), "tool_calls": asked} if asked else said)
        return said.get("content") or "", calls

    def used(self, reply):
        return (reply.get("usage") or {}).get("prompt_tokens", 0)

    def add_results(self, results):
        self.said += [{"role": "tool", "tool_call_id": id_, "content": text} for id_, text, _ in results]


class Agent:
    """An agent, correct without a `bug`; `in_turn` runs subagents one after the other, as specialists."""

    def __init__(self, wire, url, key, *, plans=False, in_turn=False, bug=""):
        self.wire, self.url, self.key, self.plans, self.bug = wire, url, key, plans, bug
        self.in_turn = in_turn
        small = bug in ("a small pool", "holds its place")
        self.pool = asyncio.Semaphore(4 if small else 1000)
        self.used, self.asked = 0, ""

    async def answer(self, message, folder):
        file = Path(folder) / "session.json"
        kept = json.loads(file.read_text()) if file.exists() else {"said": [], "used": 0}
        self.used, self.asked = kept["used"], message
        talk = self.wire(kept["said"])
        if self.plans:
            await self._aside(f"Plan the work for this request, in one line: {message}")
        talk.add_user(message)
        words = await self.run(talk)
        if self.plans:
            await self._aside(f"Grade this answer from 1 to 10: {words}")
        file.write_text(json.dumps({"said": talk.said, "used": self.used}))
        return words

    async def _shorter(self, talk):
        """A summary in the place of the messages; without one, only the message that waits for its answer."""
        told = "\n".join(json.dumps(message) for message in talk.said)
        asks = self.wire([])
        asks.add_user(f"Summarize the conversation so far, with all that is needed to go on:\n{told}")
        try:
            words, _ = asks.add_reply(await self._post(asks, None if self.bug == "compacts for ever" else 20, tries=2))
        except (ModelError, ValueError, KeyError, IndexError):
            if self.bug == "needs a summary":
                raise
            words = "Earlier messages had to be left out."
        if self.bug == "loses the message":
            self.asked = ""
        talk.said[:] = self.wire([]).said
        talk.add_user(f"What was said before: {words}\nThe message that waits for its answer: {self.asked}")
        self.used = 0

    async def _aside(self, question):
        """A plan or a grade is worth a try, and no failure of the turn."""
        talk = self.wire([])
        talk.add_user(question)
        try:
            talk.add_reply(await self._post(talk, 20, tries=1))
        except (ModelError, ValueError, KeyError):
            return

    async def run(self, talk, depth=0):
        for _ in range(10**6 if depth and self.bug == "no limit below" else ROUNDS):
            if not depth and self.used > MOST_TOKENS and self.bug != "never compacts":
                await self._shorter(talk)
            words, calls = await self._asked(talk, depth > 0)
            if not calls:
                return words
            results = await self._results(calls, depth)
            if depth and self.bug == "ends with its tool" and any(failed for _, _, failed in results):
                raise ModelError("Error: a tool failed")
            talk.add_results(results)
        if depth and self.bug == "praises its last words":
            return json.dumps({"success": True, "output": words})
        if depth and self.bug == "ends with its last words":
            return words or "The subagent was stopped at the limit of tool rounds, and has said nothing."
        return AT_ITS_LIMIT.get(self.bug if depth else "", "Error: stopped at the limit of tool rounds")

    async def _asked(self, talk, sub):
        limit_s = {"waits": None, "hurries": 1}.get(self.bug, PATIENCE_S) if sub else PATIENCE_S
        for tried in range(TRIES):
            try:
                tries = {"": TRIES, "hurries": 20}.get(self.bug, 1) if sub else TRIES
                reply = await self._post(talk, limit_s, tries=tries)
                self.used = self.used if sub else talk.used(reply)
                return talk.add_reply(reply)
            except (ValueError, KeyError, IndexError) as broken:
                if tried == TRIES - 1:
                    raise ModelError(f"Error: the reply is broken: {broken}") from broken
                await asyncio.sleep(1)
        raise AssertionError

    async def _results(self, calls, depth):
        if self.in_turn:
            ran = [await self._ran(name, args, depth) for _, name, args in calls]
        else:
            ran = await asyncio.gather(*(self._ran(name, args, depth) for _, name, args in calls))
        if self.bug == "keeps the first" and any(failed for _, failed in ran):
            ran = [ran[0], *[("Done.", False)] * (len(ran) - 1)]
        if self.bug == "forgets" and any(failed for _, failed in ran):
            ran = [("Error: a subagent failed", True)] * len(ran)
        return [(id_, text, failed) for (id_, _, _), (text, failed) in zip(calls, ran, strict=True)]

    async def _ran(self, name, args, depth):
        if name == "bash" and isinstance(args.get("command"), str):
            async with self.pool if self.bug == "a small pool" else nullcontext():
                return await self._command(args["command"])
        if name == "task" and depth >= DEPTH and self.bug != "no depth":
            return "Error: do this part yourself, this is the deepest subagent", True
        if name == "task" and isinstance(args.get("prompt"), str):
            async with self.pool:
                work = asyncio.ensure_future(self._delegated(args["prompt"], depth + 1))
                return await (asyncio.shield(work) if self.bug == "outlives" else work)
        return f"Error: no tool {name} with these arguments", True

    async def _command(self, command):
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        try:
            out, _ = await asyncio.wait_for(process.communicate(), 30)
        except TimeoutError:
            process.kill()
            await process.wait()
            return "Error: the command timed out", True
        return out.decode(errors="replace"), process.returncode != 0

    def _result(self, prompt, words, talk):
        """What a subagent said; with the bug an error, if it was to write and called no tool."""
        if self.bug == "wants changes" and "write" in prompt and len(talk.said) == 2:
            return "Error: the subagent has ended without a change", True
        return words, False

    async def _delegated(self, prompt, depth):
        while True:
            talk = Specialist([]) if self.in_turn else self.wire([])
            if self.bug == "takes the first part":
                talk = FirstPart([])
            talk.add_user(f"The user asked: {self.asked}\nYour part: {prompt}" if self.in_turn else prompt)
            try:
                return self._result(prompt, await self.run(talk, depth), talk)
            except ModelError as failed:
                if self.bug == "praises the first words":
                    said = [it["content"] for it in talk.said if it["role"] == "assistant"]
                    words = [part["text"] for parts in said for part in parts if part["type"] == "text"]
                    return json.dumps({"success": True, "output": "".join(words[-1:])}), False
                if self.bug in SILENT:
                    return SILENT[self.bug], False
                if self.bug not in ("insists", "shortens for ever"):
                    return f"The subagent failed: {failed}", True
                if self.bug == "shortens for ever":
                    await self._aside(f"Summarize the conversation so far, with all that is needed: {prompt}")
                await asyncio.sleep(1)

    async def _post(self, talk, limit_s, tries):
        failed = ""
        for tried in range(tries):
            try:
                return await self._posted(talk, limit_s)
            except PassingError as passing:
                failed = str(passing)
                if tried < tries - 1:
                    await asyncio.sleep(max(passing.wait_s, min(4, 2**tried)))
        raise ModelError(failed)

    async def _posted(self, talk, limit_s):
        timeout = aiohttp.ClientTimeout(total=limit_s)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as client,
                client.post(self.url + talk.path, json=talk.body(), headers=talk.headers(self.key)) as reply,
            ):
                if reply.status >= 400:
                    said = f"Error: status {reply.status}: {(await reply.text())[:200]}"
                    wait_s = wait_of(reply.headers)
                    if (reply.status == 429 or reply.status >= 500) and wait_s <= 60:
                        raise PassingError(said, wait_s)
                    raise ModelError(said)
                return json.loads(await reply.text())
        except TimeoutError as late:
            raise PassingError("Error: the model timed out") from late
        except aiohttp.ClientError as broken:
            raise PassingError(f"Error: connection broken: {type(broken).__name__}") from broken


class PassingError(Exception):
    """A failure that may pass."""

    def __init__(self, says, wait_s=0.0):
        super().__init__(says)
        self.wait_s = wait_s


def wait_of(headers):
    """Seconds of Retry-After; a date asks for more than is waited for."""
    value = headers.get("retry-after", "0")
    try:
        return float(value)
    except ValueError:
        return 3600.0 if parsedate_to_datetime(value) else 0.0


async def readers(message, *, session_dir, llm_url, key):
    """Correct: subagents run at once, each with the tools and the system text of their parent."""
    return await Agent(Anthropic, llm_url, key).answer(message, session_dir)


async def planner(message, *, session_dir, llm_url, key):
    """Correct: a planner before, a judge after, subagents in between."""
    return await Agent(OpenAI, llm_url, key, plans=True).answer(message, session_dir)


async def specialists(message, *, session_dir, llm_url, key):
    """Correct: one subagent after the other, with a system text of their own, fewer tools, and the user's message."""
    return await Agent(Anthropic, llm_url, key, in_turn=True).answer(message, session_dir)


async def keeps_the_first(message, *, session_dir, llm_url, key):
    """If one subagent fails, only the first result is passed on."""
    return await Agent(Anthropic, llm_url, key, in_turn=True, bug="keeps the first").answer(message, session_dir)


async def hurries(message, *, session_dir, llm_url, key):
    """A subagent's call is given up after a second, and asked twenty times."""
    return await Agent(Anthropic, llm_url, key, bug="hurries").answer(message, session_dir)


async def forgets(message, *, session_dir, llm_url, key):
    """One failed subagent takes the results of its siblings with it."""
    return await Agent(Anthropic, llm_url, key, bug="forgets").answer(message, session_dir)


async def insists(message, *, session_dir, llm_url, key):
    """A subagent that fails is run again, for ever."""
    return await Agent(Anthropic, llm_url, key, bug="insists").answer(message, session_dir)


async def shortens_for_ever(message, *, session_dir, llm_url, key):
    """A subagent that fails is given the same task again, with a summary in between."""
    return await Agent(Anthropic, llm_url, key, bug="shortens for ever").answer(message, session_dir)


async def fails_silently(message, *, session_dir, llm_url, key):
    """What a failed subagent returns is empty, and no error."""
    return await Agent(Anthropic, llm_url, key, bug="fails silently").answer(message, session_dir)


async def fails_in_a_frame(message, *, session_dir, llm_url, key):
    """The same in a frame, which is always there."""
    return await Agent(Anthropic, llm_url, key, bug="fails in a frame").answer(message, session_dir)


async def praises_failure(message, *, session_dir, llm_url, key):
    """The result of a failed subagent says that it has completed its task."""
    return await Agent(Anthropic, llm_url, key, bug="praises failure").answer(message, session_dir)


async def outlives(message, *, session_dir, llm_url, key):
    """A stop of the turn does not reach its subagents."""
    return await Agent(Anthropic, llm_url, key, bug="outlives").answer(message, session_dir)


async def a_small_pool(message, *, session_dir, llm_url, key):
    """A subagent keeps one of four places while it waits for one for its command."""
    return await Agent(Anthropic, llm_url, key, bug="a small pool").answer(message, session_dir)


async def holds_its_place(message, *, session_dir, llm_url, key):
    """A subagent keeps one of four places for subagents while it waits for others."""
    return await Agent(Anthropic, llm_url, key, bug="holds its place").answer(message, session_dir)


async def no_limit_below(message, *, session_dir, llm_url, key):
    """Only the parent's rounds of tools have a limit."""
    return await Agent(Anthropic, llm_url, key, bug="no limit below").answer(message, session_dir)


async def ends_empty(message, *, session_dir, llm_url, key):
    """A subagent that has reached its limit of rounds has no words for its parent."""
    return await Agent(Anthropic, llm_url, key, bug="ends empty").answer(message, session_dir)


async def ends_in_canned_words(message, *, session_dir, llm_url, key):
    """The same, and the words of a success stand in their place."""
    return await Agent(Anthropic, llm_url, key, bug="ends in canned words").answer(message, session_dir)


async def ends_well(message, *, session_dir, llm_url, key):
    """The same in a frame that says that all is well."""
    return await Agent(Anthropic, llm_url, key, bug="ends well").answer(message, session_dir)


async def praises_its_last_words(message, *, session_dir, llm_url, key):
    """A subagent that has reached its limit is a success if it has said anything."""
    return await Agent(Anthropic, llm_url, key, bug="praises its last words").answer(message, session_dir)


async def ends_with_its_last_words(message, *, session_dir, llm_url, key):
    """Correct: what a subagent said last is what its parent reads, also at its limit."""
    return await Agent(Anthropic, llm_url, key, bug="ends with its last words").answer(message, session_dir)


async def delegates_on(message, *, session_dir, llm_url, key):
    """A subagent may start a subagent, which may start a subagent."""
    return await Agent(Anthropic, llm_url, key, bug="no depth").answer(message, session_dir)


async def ends_with_its_tool(message, *, session_dir, llm_url, key):
    """A failed command of a subagent ends the subagent."""
    return await Agent(Anthropic, llm_url, key, bug="ends with its tool").answer(message, session_dir)


async def waits(message, *, session_dir, llm_url, key):
    """Only the parent's calls have a timer."""
    return await Agent(OpenAI, llm_url, key, bug="waits").answer(message, session_dir)


async def compacts_for_ever(message, *, session_dir, llm_url, key):
    """Its call for a summary has no timer."""
    return await Agent(Anthropic, llm_url, key, bug="compacts for ever").answer(message, session_dir)


async def needs_a_summary(message, *, session_dir, llm_url, key):
    """If no summary comes in time, its turn ends."""
    return await Agent(Anthropic, llm_url, key, bug="needs a summary").answer(message, session_dir)


async def wants_changes(message, *, session_dir, llm_url, key):
    """A subagent that was to write something, and called no tool, has failed."""
    return await Agent(Anthropic, llm_url, key, bug="wants changes").answer(message, session_dir)


async def loses_the_message(message, *, session_dir, llm_url, key):
    """After a compaction the message that waits for its answer is gone."""
    return await Agent(OpenAI, llm_url, key, bug="loses the message").answer(message, session_dir)


async def never_compacts(message, *, session_dir, llm_url, key):
    """Correct as long as its window is: no scenario about compaction is about it."""
    return await Agent(Anthropic, llm_url, key, bug="never compacts").answer(message, session_dir)


async def praises_the_first_words(message, *, session_dir, llm_url, key):
    """A subagent that fails returns what it had said before, as a success."""
    return await Agent(Anthropic, llm_url, key, bug="praises the first words").answer(message, session_dir)


async def takes_the_first_part(message, *, session_dir, llm_url, key):
    """The result of a subagent is the first text of its last reply, also if that is empty."""
    return await Agent(Anthropic, llm_url, key, bug="takes the first part").answer(message, session_dir)
