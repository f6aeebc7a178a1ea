"""Agents whose subagents work in the background, for virtual time: some are correct, each of the others has one bug.

Their process stays from message to message. The subagent of `delivers_next` is heard of with the next message, that of
`delivers_itself` at once, in a request of the parent's own; `waits` ends no turn before its subagents, and the model
of `is_asked` asks for the result with a tool.
"""

import asyncio
import copy
import json
from pathlib import Path

from delegating_agents import COMMAND, DELEGATE, DEPTH, TEXT, Agent, Anthropic, ModelError

BESIDE = {**DELEGATE, "properties": {**DELEGATE["properties"], "run_in_background": {"type": "boolean"}}}
TARGET = {"type": "object", "properties": {"agent_id": TEXT}, "required": ["agent_id"]}
LETTER = {
    "type": "object",
    "properties": {"agent_id": TEXT, "message": TEXT},
    "required": ["agent_id", "message"],
}
BEGUN = "Launched {}. You will be told when it is done."
LATE = "begins late"
NO_TIMER = "no timer for a subagent's model"
ENDS = {
    "tells only the end": "has ended. What it said is in notes/subagent.md",
    "keeps its words": "has ended",
    "is idle": "is idle",
}
"""What is told of a subagent in the place of its words."""
STATUS = '{"status": "completed"}'
LATER = "Launched {}. Ask for its result with get_agent_result."


class Choosing(Anthropic):
    """Its model chooses whether a subagent works in the background."""

    tools = (("bash", "Runs a command.", COMMAND), ("task", "Gives a task to a subagent.", BESIDE))


class Asking(Anthropic):
    """A subagent always works in the background, and its model asks for the result."""

    tools = (
        ("bash", "Runs a command.", COMMAND),
        ("spawn_agent", "Gives a task to a subagent, and returns at once.", DELEGATE),
        ("get_agent_result", "Returns what a subagent said.", TARGET),
    )


class Stopping(Choosing):
    """Its model can stop a subagent."""

    tools = (*Choosing.tools, ("stop_agent", "Stops a subagent.", TARGET))


class Writing(Choosing):
    """Its model can write to a subagent."""

    tools = (*Choosing.tools, ("send_message", "Sends a message to a subagent.", LETTER))


class Corresponding(Writing):
    """Its model can write to a subagent, and wait for it."""

    tools = (*Writing.tools, Asking.tools[-1])


class Background(Agent):
    """One process of an agent: its sessions, and the subagents that work."""

    def __init__(self, wire, url, key, *, how="next", bug="", hands_on=0):
        super().__init__(wire, url, key, bug="waits" if NO_TIMER in bug else "")
        self.hands_on = hands_on
        self.how, self.fault = how, bug
        self.talk = wire([])
        self.news, self.results = [], {}
        self.talks, self.letters = {}, {}
        self.working, self.waits = {}, None
        self.turn = asyncio.Lock()

    async def answer(self, message, folder):
        async with self.turn:
            self.asked = message
            self.talk.add_user("\n".join([*self._told(), message]))
            words = await self.run(self.talk)
            while self.how == "waits" and self.working:
                await asyncio.wait(self.working.values(), return_when=asyncio.FIRST_COMPLETED)
                words = await self._heard() or words
        return words

    def _told(self):
        told, self.news = self.news, []
        return told

    async def _heard(self):
        """What the model says when it is told of its subagents."""
        told = self._told()
        if not told:
            return ""
        self.talk.add_user("\n".join(told))
        return await self.run(self.talk)

    async def _ran(self, name, args, depth):
        if name == "get_agent_result" and "agent_id" in args:
            while self.fault == "keeps letters for ever" and self.letters.get(args["agent_id"]):
                await asyncio.sleep(1)
            if work := self.working.get(args["agent_id"]):
                done, _ = await asyncio.wait([work], timeout=30 if "a limit for the wait" in self.fault else None)
                if not done:
                    return "It still works.", False
            return self.results.get(args["agent_id"], "Error: there is no such agent"), False
        if name == "stop_agent" and "agent_id" in args:
            return self._stopped(args["agent_id"])
        if name == "send_message" and "agent_id" in args:
            return self._written(args["agent_id"], args["message"])
        beside = args.get("run_in_background") or name == "spawn_agent"
        if name not in ("task", "spawn_agent") or not beside or (depth and self.hands_on == 0):
            return await super()._ran("task" if name == "spawn_agent" else name, args, depth)
        if depth and depth >= self.hands_on:
            return "Error: no more subagents here, do the work yourself", True
        label = f"agent-{len(self.working) + len(self.results) + 1}"
        work = (self._late if LATE in self.fault else self._work)(label, args["prompt"], depth + 1)
        task = asyncio.create_task(work)
        if self.fault == f"{LATE}, stopped or not":
            self.waits = task
        else:
            self.working[label] = task
        return (LATER if self.how == "asked" else BEGUN).format(json.dumps({"agent_id": label})), False

    def _stopped(self, label):
        work = self.working.pop(label, None) or self.waits
        if work is None:
            return f"Error: no subagent {label} works", True
        if self.fault != "changes the status" and work is not self.waits:
            work.cancel()
        return f"Agent {label} is cancelled.", False

    async def _late(self, label, prompt, depth):
        await asyncio.sleep(1)
        self.working[label], self.waits = asyncio.current_task(), None
        await self._work(label, prompt, depth)

    def _written(self, label, words):
        """A subagent that works reads it with its next request; one that has ended goes on."""
        talk = self.talks.get(label)
        if talk is None or (label not in self.working and self.fault == "refuses"):
            return f"Error: no subagent {label} works", True
        if (label in self.working and self.fault != "copies") or self.fault == "keeps letters for ever":
            self.letters.setdefault(label, []).append(words)
            return "It will be read with the next step.", False
        if self.fault == "begins again":
            talk = self.wire(talk.said[:1])
        if self.fault == "copies":
            ends = max(at for at, it in enumerate(talk.said) if it["role"] == "user")
            talk = self.wire(copy.deepcopy(talk.said[: ends + 1]))
        self._adds(talk, words)
        self.working[f"{label}+"] = asyncio.create_task(self._goes_on(f"{label}+", talk, 1))
        return "It works on.", False

    def _adds(self, talk, words):
        """Two messages of the user are one."""
        last = talk.said[-1]
        if last["role"] != "user":
            talk.add_user(words)
        elif isinstance(last["content"], str):
            last["content"] += f"\n{words}"
        else:
            last["content"].append({"type": "text", "text": words})

    async def _asked(self, talk, sub):
        for label in (it for it, own in self.talks.items() if own is talk):
            for words in self.letters.pop(label, []):
                self._adds(talk, words)
        return await super()._asked(talk, sub)

    async def _work(self, label, prompt, depth):
        if self.fault == "begins behind the turn":
            async with self.turn:
                pass
        talk = self.talks[label] = self.wire([])
        talk.add_user(prompt)
        await self._goes_on(label, talk, depth)

    async def _goes_on(self, label, talk, depth):
        try:
            said, failed = await self.run(talk, depth), False
        except ModelError as wrong:
            said, failed = f"It failed: {wrong}", True
        self.working.pop(label, None)
        self.results[label] = said
        if self.how == "asked" or self.fault == "tells nothing" or (failed and self.fault == "tells no failure"):
            self.results[label] = STATUS if self.fault == "keeps its words" else "" if self.fault else said
            return
        if self.fault == "drops what comes in a turn" and self.turn.locked():
            return
        if self.fault == "tells one end" and label.endswith("+"):
            return
        if self.fault == "gives up after some tries" and not await self._is_free():
            return
        told = ENDS.get(self.fault, f"{'failed' if failed else 'completed'}: {said}")
        self.news.append(f"<notice>Your subagent {label} {told}</notice>")
        if self.how == "itself":
            async with self.turn:
                await self._heard()

    async def _is_free(self):
        """Whether the parent's turn is over, seen within seven seconds."""
        for wait_s in (1, 2, 4):
            if not self.turn.locked():
                break
            await asyncio.sleep(wait_s)
        return not self.turn.locked()


AGENTS = {}


async def of(name, message, session_dir, llm_url, key, **how):
    """The agent of this process and session."""
    wire = {"asked": Asking, "next": Stopping, "written": Writing, "both": Corresponding}.get(
        how.get("how", "next"), Choosing
    )
    agent = AGENTS.get((name, session_dir))
    if agent is None:
        agent = AGENTS[name, session_dir] = Background(wire, llm_url, key, **how)
    return await agent.answer(message, Path(session_dir))


async def delivers_next(message, *, session_dir, llm_url, key):
    """Correct: the next message brings what the subagents said."""
    return await of("next", message, session_dir, llm_url, key)


async def delivers_itself(message, *, session_dir, llm_url, key):
    """Correct: the model is told at once, in a request between two messages."""
    return await of("itself", message, session_dir, llm_url, key, how="itself")


async def waits(message, *, session_dir, llm_url, key):
    """Correct: a turn ends after its subagents."""
    return await of("waits", message, session_dir, llm_url, key, how="waits")


async def tells_only_the_end(message, *, session_dir, llm_url, key):
    """Correct: the model is told of the end, and the result is in a file."""
    return await of("end", message, session_dir, llm_url, key, bug="tells only the end")


async def keeps_its_words(message, *, session_dir, llm_url, key):
    """The model is told of the end, and the result is nowhere."""
    return await of("keeps", message, session_dir, llm_url, key, bug="keeps its words")


async def answers_with_a_status(message, *, session_dir, llm_url, key):
    """The model asks for the result, and reads of the end only."""
    return await of("completed", message, session_dir, llm_url, key, how="asked", bug="keeps its words")


async def tells_that_it_is_idle(message, *, session_dir, llm_url, key):
    """The same in other words."""
    return await of("idle", message, session_dir, llm_url, key, bug="is idle")


async def is_asked(message, *, session_dir, llm_url, key):
    """Correct: the model asks for the result."""
    return await of("asked", message, session_dir, llm_url, key, how="asked")


async def waits_half_a_minute(message, *, session_dir, llm_url, key):
    """Correct: a subagent may wait for its model as long as it likes, and its parent does not."""
    return await of("half", message, session_dir, llm_url, key, how="asked", bug=f"{NO_TIMER}, a limit for the wait")


async def waits_for_what_stalls(message, *, session_dir, llm_url, key):
    """A subagent waits for its model for ever, and its parent for the subagent."""
    return await of("stalls", message, session_dir, llm_url, key, how="asked", bug=NO_TIMER)


async def begins_behind_the_turn(message, *, session_dir, llm_url, key):
    """A subagent begins when its parent's turn is over, and the model waits for it in that turn."""
    return await of("turn", message, session_dir, llm_url, key, how="asked", bug="begins behind the turn")


async def hands_on_thrice(message, *, session_dir, llm_url, key):
    """Correct: a subagent may start one in the background, down to a limit of depth."""
    return await of("thrice", message, session_dir, llm_url, key, hands_on=DEPTH)


async def hands_on_for_ever(message, *, session_dir, llm_url, key):
    """No limit of depth, and no limit of the number of subagents."""
    return await of("for ever", message, session_dir, llm_url, key, hands_on=10**6)


async def tells_nothing(message, *, session_dir, llm_url, key):
    """What a subagent said is lost."""
    return await of("nothing", message, session_dir, llm_url, key, bug="tells nothing")


async def gives_up_after_some_tries(message, *, session_dir, llm_url, key):
    """A subagent that ends while its parent works is heard of if the parent is free within seven seconds."""
    return await of("gives up", message, session_dir, llm_url, key, bug="gives up after some tries")


async def drops_what_comes_in_a_turn(message, *, session_dir, llm_url, key):
    """A subagent that ends while its parent works is never heard of."""
    return await of("drops", message, session_dir, llm_url, key, bug="drops what comes in a turn")


async def tells_no_failure(message, *, session_dir, llm_url, key):
    """A subagent that failed is never heard of."""
    return await of("no failure", message, session_dir, llm_url, key, bug="tells no failure")


async def forgets_when_asked(message, *, session_dir, llm_url, key):
    """What a subagent said is an empty text when the model asks for it."""
    return await of("forgets", message, session_dir, llm_url, key, how="asked", bug="forgets")


async def changes_the_status(message, *, session_dir, llm_url, key):
    """A subagent that is stopped is called so, and works on."""
    return await of("status", message, session_dir, llm_url, key, bug="changes the status")


async def begins_late(message, *, session_dir, llm_url, key):
    """Correct: a subagent waits a second before it begins, and a stop reaches it there too."""
    return await of("late", message, session_dir, llm_url, key, bug=LATE)


async def begins_behind_its_stop(message, *, session_dir, llm_url, key):
    """A subagent that is stopped before it has begun begins all the same."""
    return await of("behind", message, session_dir, llm_url, key, bug=f"{LATE}, stopped or not")


async def is_written_to(message, *, session_dir, llm_url, key):
    """Correct: a subagent reads a message with its next request, or goes on where it has ended."""
    return await of("written", message, session_dir, llm_url, key, how="written")


async def refuses_what_has_ended(message, *, session_dir, llm_url, key):
    """Correct: a subagent that has ended can not be written to."""
    return await of("refuses", message, session_dir, llm_url, key, how="written", bug="refuses")


async def is_written_to_and_asked(message, *, session_dir, llm_url, key):
    """Correct: as above, and its model may wait for a subagent."""
    return await of("both", message, session_dir, llm_url, key, how="both")


async def refuses_and_is_asked(message, *, session_dir, llm_url, key):
    """Correct: a subagent that has ended can not be written to, and its last words are there at once."""
    return await of("refuses both", message, session_dir, llm_url, key, how="both", bug="refuses")


async def keeps_letters_for_ever(message, *, session_dir, llm_url, key):
    """A message to a subagent that has ended waits for its next step, and the model waits for that."""
    return await of("letters", message, session_dir, llm_url, key, how="both", bug="keeps letters for ever")


async def copies_what_works(message, *, session_dir, llm_url, key):
    """A message to a subagent that works starts a second copy of it."""
    return await of("copies", message, session_dir, llm_url, key, how="written", bug="copies")


async def tells_one_end(message, *, session_dir, llm_url, key):
    """The bug: a subagent that went on after a message ends again, and its parent is told only of the first end."""
    return await of("one end", message, session_dir, llm_url, key, how="written", bug="tells one end")


async def begins_what_has_ended_again(message, *, session_dir, llm_url, key):
    """A subagent that has ended, and gets a message, has forgotten what it has done."""
    return await of("again", message, session_dir, llm_url, key, how="written", bug="begins again")
