"""Agents that shorten a long conversation, for virtual time: those without the name of a bug are correct."""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from delegating_agents import MOST_TOKENS, ROUNDS, SYSTEM, Agent, Anthropic, ModelError, OpenAI

TOO_LONG = re.compile(r"too long|context (length|window)|maximum context", re.IGNORECASE)
ONE_WORDING = re.compile(r"prompt is too long")
ASKED_AGAIN = 5
MANY = 40
GIVES_UP = 3
ROOM = 450_000
"""Characters of messages that an agent with a limit of its own sends."""
GENERAL = "You are a general helper, and do what is asked of you. Say so when you are done with it."


class Compacting(Agent):
    """Shortens when the model reports many tokens, and when it refuses a request for its length."""

    goes_on = 0
    """How often it goes on by itself after a summary that it made behind an answer."""
    said_instead = ()

    async def run(self, talk, depth=0):
        words, went_on = "", 0
        for _ in range(10**6 if self.bug == "goes on for ever" else ROUNDS):
            while self.used > MOST_TOKENS:
                await self._shorter(talk)
                self.used = self.used if self.bug == "keeps the old count" else 0
            words, calls = await self._asked_within(talk)
            if calls:
                talk.add_results(await self._results(calls, depth))
            elif self.used > MOST_TOKENS and (went_on < self.goes_on or self.bug == "goes on for ever"):
                went_on += 1
                await self._shorter(talk)
                talk.add_user("Continue if there is more to do.")
            else:
                return words
        raise ModelError("Error: stopped at the limit of tool rounds")

    async def _asked_within(self, talk):
        try:
            return await self._asked(talk, False)
        except ModelError as refused:
            known = ONE_WORDING if self.bug == "knows one wording" else TOO_LONG
            if not known.search(str(refused)):
                raise
        await self._shorter(talk)
        for _ in range(MANY if self.bug == "shortens until it fits" else 0):
            try:
                return await self._asked(talk, False)
            except ModelError:
                await self._shorter(talk)
        return await self._asked(talk, False)

    async def _shorter(self, talk):
        """A summary in the place of the messages, and the message that waits for its answer."""
        words = await self._summary(talk.said)
        while self.bug == "asks until it has words" and not words:
            words = await self._summary(talk.said)
        talk.said[:] = [] if self.bug == "drops the system text" else self._begun()
        talk.add_user(self._opening("" if self.bug == "drops the summary" else words))
        talk.said += self.said_instead

    def _begun(self):
        """What stands before all messages."""
        return self.wire([]).said

    def _opening(self, words):
        return f"What was said before: {words}\nThe message that waits for its answer: {self.asked}"

    async def _summary(self, said):
        told = "\n".join(json.dumps(message) for message in said)
        asks = self.wire([])
        asks.add_user(f"Summarize the conversation so far, with all that is needed to go on:\n{told}")
        try:
            words, calls = asks.add_reply(await self._summarized(asks))
            self.said_instead = asks.said[-1:] if calls and self.bug == "keeps the reply of a compaction" else []
        except (ModelError, ValueError, KeyError, IndexError):
            words = ""
        takes_it_as_it_is = self.bug in ("asks until it has words", "believes an empty summary")
        return words if words or takes_it_as_it_is else "Earlier messages had to be left out."

    async def _summarized(self, asks):
        for _ in range(ASKED_AGAIN if self.bug == "asks the same again" else 0):
            try:
                return await self._post(asks, 20, tries=1)
            except ModelError:
                continue
        return await self._post(asks, 20, tries=2)


class KeepsTheEnd(Compacting):
    """A summary of all but the last messages, which stay as they are."""

    async def _shorter(self, talk):
        said = talk.said
        first = len(self.wire([]).said)
        cut = max(first, len(said) - 3)
        while self.bug != "cuts between call and result" and cut > first and _is_result(said[cut]):
            cut -= 1
        words = await self._summary(said[:cut])
        kept = said[cut:]
        talk.said[:] = self.wire([]).said
        talk.add_user(self._opening(words))
        if kept and kept[0]["role"] == "user" and not _is_result(kept[0]):
            kept = kept[1:]
        talk.said += kept


class BeforeTheMessage(Compacting):
    """Looks at the length once, before it takes the next message."""

    async def run(self, talk, depth=0):
        if self.used > MOST_TOKENS:
            await self._shorter(talk)
        self.used = 0
        for _ in range(ROUNDS):
            words, calls = await self._asked_within(talk)
            if not calls:
                return words
            talk.add_results(await self._results(calls, depth))
        raise ModelError("Error: stopped at the limit of tool rounds")


class GoesOn(Compacting):
    """Shortens after an answer too, and asks the model whether there is more to do, three times at most."""

    goes_on = 3


class DropsOutputs(Compacting):
    """Asks no model: the results of tools go, and what was said stays."""

    async def _shorter(self, talk):
        for message in talk.said[:-1]:
            if message["role"] == "tool":
                message["content"] = "(dropped)"
            elif _is_result(message):
                for part in message["content"]:
                    part["content"] = "(dropped)"


class Ruled(Compacting):
    """The rules of its project (AGENTS.md) stand in front of all messages."""

    async def answer(self, message, folder):
        file = Path(folder).parent / "cwd" / "AGENTS.md"
        self.rules = [{"role": "user", "content": file.read_text()}] if file.exists() else []
        return await super().answer(message, folder)

    async def run(self, talk, depth=0):
        first = len(self.wire([]).said)
        if len(talk.said) == first + 1:
            talk.said[first:first] = self.rules
        return await super().run(talk, depth)

    def _begun(self):
        begun = super()._begun()
        if self.bug == "becomes another agent":
            begun[0]["content"] = GENERAL
        return begun if self.bug == "forgets the rules" else begun + self.rules


class Trims(Agent):
    """Sends the newest messages that have room, from a message of its user on, and asks for no summary."""

    async def _asked(self, talk, sub):
        first = len(self.wire([]).said)
        kept = talk.said[first:]
        while sum(map(_length, kept)) > ROOM:
            kept = kept[1:]
        while self.bug != "keeps a result without its call" and kept and kept[0]["role"] != "user":
            kept = kept[1:]
        talk.said[first:] = kept
        return await super()._asked(talk, sub)


class ForOneRequest(Compacting):
    """The bug: a summary is used for one request, and not stored."""

    async def _asked(self, talk, sub):
        if sum(map(_length, talk.said)) <= ROOM:
            return await super()._asked(talk, sub)
        words = await self._summary(talk.said)
        short = self.wire(self._begun())
        short.add_user(self._opening(words))
        found = await super()._asked(short, sub)
        self.used = 0
        talk.said.append(short.said[-1])
        return found


class Wordy(OpenAI):
    """Its system text is longer than most conversations."""

    def __init__(self, said):
        super().__init__(said or [{"role": "system", "content": SYSTEM + " Look twice." * 2000}])


class Compares(Compacting):
    """A summary that is longer than what it stands for is thrown away. What was said is stored after an error too."""

    async def answer(self, message, folder):
        file = Path(folder) / "session.json"
        talk, self.asked = self.wire(json.loads(file.read_text()) if file.exists() else []), message
        talk.add_user(message)
        try:
            return await self.run(talk)
        finally:
            file.write_text(json.dumps(talk.said))

    async def _asked_within(self, talk):
        try:
            return await self._asked(talk, False)
        except ModelError as refused:
            before = len(talk.said)
            await self._shorter(talk)
            if not TOO_LONG.search(str(refused)) or len(talk.said) == before:
                raise
        return await self._asked(talk, False)

    async def _shorter(self, talk):
        words = await self._summary(talk.said)
        system = _length(self.wire([]).said) if self.bug == "counts its system text too" else 0
        if system + len(words) < sum(map(_length, talk.said[1:])):
            talk.said[:] = self.wire([]).said
            talk.add_user(self._opening(words))


class KeepsAll(Compacting):
    """Where a summary fails, all messages stay. After three that failed in a row it asks for none any more.

    The bug `asks with each message`: it never gives up.
    """

    async def answer(self, message, folder):
        self.failed = Path(folder) / "failed"
        return await super().answer(message, folder)

    async def _shorter(self, talk):
        failed = len(self.failed.read_text()) if self.failed.exists() else 0
        self.used = 0
        if failed >= GIVES_UP and self.bug != "asks with each message":
            return
        before = list(talk.said)
        await super()._shorter(talk)
        if "had to be left out" in json.dumps(talk.said):
            talk.said[:] = before
            self.failed.write_text("x" * (failed + 1))
        else:
            self.failed.unlink(missing_ok=True)


def _length(message):
    return len(json.dumps(message))


def _is_result(message):
    parts = message["content"] if isinstance(message["content"], list) else []
    return message["role"] == "tool" or any(part.get("type") == "tool_result" for part in parts)


def _agent(kind, wire, bug=""):
    async def answer(message, *, session_dir, llm_url, key):
        return await kind(wire, llm_url, key, bug=bug).answer(message, session_dir)

    return answer


summarizes = _agent(Compacting, Anthropic)
summarizes_on_chat = _agent(Compacting, OpenAI)
keeps_the_end = _agent(KeepsTheEnd, Anthropic)
drops_outputs = _agent(DropsOutputs, OpenAI)
keeps_all = _agent(KeepsAll, Anthropic)
before_the_message = _agent(BeforeTheMessage, Anthropic)
goes_on_after_an_answer = _agent(GoesOn, OpenAI)
goes_on_for_ever = _agent(GoesOn, OpenAI, "goes on for ever")
knows_the_rules = _agent(Ruled, OpenAI)
trims = _agent(Trims, OpenAI)
compares = _agent(Compares, Wordy)

forgets_the_rules = _agent(Ruled, OpenAI, "forgets the rules")
becomes_another_agent = _agent(Ruled, OpenAI, "becomes another agent")
shortens_until_it_fits = _agent(Compacting, Anthropic, "shortens until it fits")
keeps_the_old_count = _agent(Compacting, Anthropic, "keeps the old count")
drops_the_summary = _agent(Compacting, Anthropic, "drops the summary")
drops_the_system_text = _agent(Compacting, OpenAI, "drops the system text")
cuts_between_call_and_result = _agent(KeepsTheEnd, Anthropic, "cuts between call and result")
knows_one_wording = _agent(Compacting, OpenAI, "knows one wording")
starts_anew = _agent(BeforeTheMessage, Anthropic, "drops the summary")
asks_until_it_has_words = _agent(Compacting, Anthropic, "asks until it has words")
keeps_the_reply_of_a_compaction = _agent(Compacting, Anthropic, "keeps the reply of a compaction")
keeps_a_result_without_its_call = _agent(Trims, OpenAI, "keeps a result without its call")
sums_up_for_one_request = _agent(ForOneRequest, OpenAI)
counts_its_system_text_too = _agent(Compares, Wordy, "counts its system text too")
believes_an_empty_summary = _agent(Compacting, Anthropic, "believes an empty summary")
believes_an_empty_summary_and_keeps_the_end = _agent(KeepsTheEnd, Anthropic, "believes an empty summary")
asks_with_each_message = _agent(KeepsAll, Anthropic, "asks with each message")
asks_the_same_again = _agent(Compacting, Anthropic, "asks the same again")
