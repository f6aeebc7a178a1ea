"""Agents whose model writes its tool calls in text: three correct ones, and one for each bug.

They are async functions. `Scratchpad` grows one prompt, as ReAct agents of LangChain do; `Fenced` reads a block of
bash, as mini-swe-agent does; `Tagged` reads elements, as Cline and Roo Code do.
"""

import asyncio
import json
import re
import signal
import time
from email.utils import parsedate_to_datetime
from pathlib import Path

import aiohttp

CALL_S, TOOL_S, ROUNDS, SHOWN, TRIES = 20, 20, 12, 20_000, 4
PASSING = (429, 500, 502, 503, 529)


class ModelError(Exception):
    """The model did not answer."""


def seconds(retry_after):
    if retry_after.isdigit():
        return float(retry_after)
    return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time()) + 1


class Agent:
    """What the three share: a session in a file, a model with retries, a shell with a deadline."""

    repair = "I could not read that. Use the format."
    call = last_words = re.compile("(?!)")
    stops = ("Observation:",)
    rounds = ROUNDS

    def __init__(self, folder, url):
        self.file, self.url = Path(folder) / "session.json", url
        self.said = json.loads(self.file.read_text()) if self.file.exists() else []

    def keep(self):
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps(self.said))
        fresh.replace(self.file)

    async def answer(self, message):
        self.begin(message)
        for _ in range(self.rounds):
            text = self.first_call_of(await self.asked())
            if (words := self.final(text)) is not None:
                if not words.strip():
                    raise ModelError("the model's answer is empty")
                self.end(text, words)
                return words
            command = self.command(text)
            self.result(text, await self.run(command) if command is not None else self.repair)
        raise ModelError(f"stopped after its limit of {self.rounds} rounds")

    def first_call_of(self, text):
        """Without what the model says behind a call: the result is not its to tell."""
        found = self.call.search(text)
        return text[: found.end()] if found else text

    def command(self, text):
        found = self.call.search(text)
        return found and found[1]

    def final(self, text):
        found = self.last_words.search(text)
        return found and found[1]

    async def asked(self):
        wrong = ""
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(0.5 * 2**attempt)
            try:
                text, wrong, wait_s = await self.attempt()
            except (aiohttp.ClientError, TimeoutError, ValueError) as failure:
                wrong, wait_s, text = f"{type(failure).__name__} {failure}", 0.0, ""
            if text.strip():
                return text
            if wait_s > 60:
                break
            await asyncio.sleep(wait_s)
        raise ModelError(f"the model did not answer: {wrong}")

    async def attempt(self):
        body = {"model": "gpt-5", "messages": self.messages(), "stop": [*self.stops], "max_completion_tokens": 4000}
        patience = aiohttp.ClientTimeout(total=CALL_S)
        async with (
            aiohttp.ClientSession(timeout=patience) as client,
            client.post(f"{self.url}/v1/chat/completions", json=body, headers={"authorization": "Bearer k"}) as reply,
        ):
            said = await reply.json(content_type=None)
            if reply.status in PASSING:
                return "", f"HTTP {reply.status}", seconds(reply.headers.get("retry-after", "0"))
            if reply.status != 200:
                raise ModelError(f"HTTP {reply.status} {said['error']['message']}")
            choice = said["choices"][0]
            if choice["finish_reason"] == "length":
                return self.cut(choice["message"]["content"])
            return choice["message"]["content"] or "", "it said nothing", 0.0

    def cut(self, text):
        raise ModelError("the reply was cut at the token limit")

    async def run(self, command):
        pipe = asyncio.subprocess.PIPE
        shell = await asyncio.create_subprocess_shell(command, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
        try:
            output, _ = await asyncio.wait_for(shell.communicate(), TOOL_S)
        except TimeoutError:
            shell.send_signal(signal.SIGKILL)
            return self.late()
        text = output.decode(errors="replace")
        if len(text) > SHOWN:
            text = f"{text[: SHOWN // 2]}\n[… cut …]\n{text[-SHOWN // 2 :]}"
        return f"{text}[exit code {shell.returncode}]" if shell.returncode else text

    def late(self):
        return f"[the command was killed after {TOOL_S} s]"


class Scratchpad(Agent):
    """One prompt, in which the calls and their results of the turn stand."""

    call = re.compile(r"Action: *shell\nAction Input: *(.*)")
    last_words = re.compile(r"Final Answer: *(.*)", re.DOTALL)

    def begin(self, message):
        self.asks, self.pad = message, ""

    def messages(self):
        before = "".join(f"Question: {asked}\nFinal Answer: {words}\n" for asked, words in self.said)
        prompt = f"Use: Thought, Action, Action Input.\n{before}Question: {self.asks}\n{self.pad}"
        return [{"role": "user", "content": prompt}]

    def result(self, text, result):
        self.pad += f"{text}\nObservation: {result}\nThought: "

    def end(self, text, words):
        self.said.append([self.asks, words])
        self.keep()


class Chat(Agent):
    """Messages of a chat; results are the user's."""

    system = "Answer with one command, or with the answer."

    def begin(self, message):
        self.said.append({"role": "user", "content": message})

    def messages(self):
        return [{"role": "system", "content": self.system}, *self.said]

    def result(self, text, result):
        self.said += [{"role": "assistant", "content": text}, {"role": "user", "content": self.shown(result)}]
        self.keep()

    def end(self, text, words):
        self.said.append({"role": "assistant", "content": text})
        self.keep()


class Fenced(Chat):
    """A command is a block of bash; a text without one is the answer."""

    call = re.compile(r"```bash\n(.*?)\n```", re.DOTALL)

    def final(self, text):
        return None if "```bash" in text else text

    def shown(self, result):
        return f"<output>\n{result}\n</output>"


class Tagged(Chat):
    """A command is an element, and so is the answer."""

    call = re.compile(r"<command>(.*?)</command>", re.DOTALL)
    last_words = re.compile(r"<result>(.*?)</result>", re.DOTALL)

    def shown(self, result):
        return f"[execute_command] Result:\n{result}"


class LosesResults(Scratchpad):
    """Bug: what a command printed is lost if it is long."""

    async def run(self, command):
        result = await super().run(command)
        return result if len(result) < 2000 else ""


class RunsAgain(Fenced):
    """Bug: a failed request begins the turn again, without what was done."""

    async def asked(self):
        kept = len(self.said)
        try:
            return await self.attempt_once()
        except ModelError:
            begins = max(
                at for at, it in enumerate(self.said) if not it["content"].startswith("<output>") and at % 2 == 0
            )
            del self.said[begins + 1 : kept]
            return await super().asked()

    async def attempt_once(self):
        text, wrong, _ = await self.attempt()
        if not text:
            raise ModelError(wrong)
        return text


class RunsTwice(Fenced):
    """Bug: two parts of the program each run the code of a reply."""

    async def run(self, command):
        await super().run(command)
        return await super().run(command)


class RunsHalves(Tagged):
    """Bug: a command that was cut at the token limit is run as far as it came."""

    def cut(self, text):
        return f"{text}</command>" if "<command>" in text else text, "", 0.0


class Believes(Scratchpad):
    """Bug: the reply is not stopped at a result, and what the model makes up there is its answer."""

    stops = ()

    def first_call_of(self, text):
        return text if "Final Answer:" in text else super().first_call_of(text)

    def command(self, text):
        return None if self.final(text) else super().command(text)


class Patient(Scratchpad):
    """Correct: it asks again as often as frameworks do."""

    rounds = 25


class NeverTires(Scratchpad):
    """Bug: a reply that it can not read is asked for again and again."""

    rounds = 60


class SaysNothing(Tagged):
    """Bug: a reply that it can not read ends the turn without a word."""

    def first_call_of(self, text):
        whole = self.call.search(text) or self.last_words.search(text)
        return super().first_call_of(text) if whole else "<result>\n</result>"

    async def answer(self, message):
        try:
            return await super().answer(message)
        except ModelError:
            return ""


class Forgets(Tagged):
    """Bug: nothing of a turn that failed is kept, and the session does not go on."""

    async def answer(self, message):
        try:
            return await super().answer(message)
        except ModelError:
            self.said = []
            self.keep()
            raise


class Silent(Fenced):
    """Bug: a model that does not answer is an answer without a word."""

    async def answer(self, message):
        try:
            return await super().answer(message)
        except ModelError:
            return ""


def _function(kind):
    async def answer(message, llm_url, session_dir):
        agent = kind(session_dir, llm_url)
        try:
            return await agent.answer(message)
        except ModelError as wrong:
            raise RuntimeError(f"Error: {wrong}") from None

    return answer


scratchpad, fenced, tagged = map(_function, (Scratchpad, Fenced, Tagged))
loses_results, runs_again, runs_halves = map(_function, (LosesResults, RunsAgain, RunsHalves))
forgets, silent, runs_twice = map(_function, (Forgets, Silent, RunsTwice))
believes, never_tires, says_nothing, patient = map(_function, (Believes, NeverTires, SaysNothing, Patient))
