"""Conversations beside the main one, told apart without a declaration: subagents, planners, judges.

A conversation is known by its opening: the system text, and the user's messages before the model's first reply. A
request belongs to a side conversation
- if its opening is that of one,
- if its opening holds the prompt of a delegating tool call whose result is still missing,
- if its opening was seen beside the answer in the control run (a planner that quotes the user), or
- if it is new and holds nothing of the main conversation: no marker, no reply, no result, no words of a summary.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from wedgehog.fake_llm.conversation import Conversation, Message
from wedgehog.fake_llm.script.call_tokens import notes_in, prompt_mark
from wedgehog.fake_llm.script.forks import Forks
from wedgehog.fake_llm.script.openings import QuotedMessage, frames, replies_in, root_of, system_mark
from wedgehog.fake_llm.value import value

SUBAGENT: Final = "subagent"
SIDE: Final = "side"
"""A planner, a judge: a call with the shape of a main call that asks something else."""
SUMMARIES: Final = ("summary", "compact", "memory")
"""Background calls whose replies may take the place of messages."""
_LEAST_PROMPT = 8
"""A shorter argument of a tool call is no prompt: it may stand in any text."""
_NAME = re.compile(r"[\w./-]+", re.ASCII)
"""The kind of a subagent, a path: any text may hold it too."""


@value
class SideConversation:
    """One conversation beside the main one: `name` is its purpose, `number` tells those of one name apart."""

    name: str
    number: int
    turn: int
    serial: int = 1
    """Its number among all side conversations of the run."""

    def __str__(self) -> str:
        return f"{self.name} {self.number}"


@value
class Traces:
    """What a request shows of the main conversation."""

    turn: int
    asked: QuotedMessage | None
    """The turn's message, if the user's messages in the request hold its marker."""
    results: bool
    """Whether it carries a result of one of the main conversation's tools."""
    fits: bool
    """Whether it has the shape of a main call."""
    compacts: bool = False
    """Whether its last message tells the model to sum up the conversation."""
    under_way: bool = True
    """Whether the turn has not ended."""


@dataclass
class _MainTurn:
    """The openings of the main conversation in one turn."""

    roots: set[str] = field(default_factory=set)
    systems: set[str] = field(default_factory=set)


@dataclass
class SideConversations:
    """The side conversations of one run, and what is known of the main one."""

    salt: str
    asides: frozenset[str] = frozenset()
    """Frames of the calls that the agent makes beside the answering one in its control run."""
    marked: bool = False
    """Whether the agent's main calls hold their turn's marker, in its control run."""
    _mains: dict[int, _MainTurn] = field(default_factory=dict)
    _openings: set[tuple[str, str]] = field(default_factory=set)
    """Of the main conversation."""
    _prompts: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    """The turn of each tool call, by token, and the texts in its arguments."""
    _tasks: dict[str, str] = field(default_factory=dict)
    """The same texts by the call's mark, as the model wrote them."""
    _returned: set[str] = field(default_factory=set)
    """Tool calls whose result was sent."""
    _summaries: set[int] = field(default_factory=set)
    """Background calls that are no conversations: a later opening may hold the words of their replies."""
    _unknown_summary: bool = False
    """JSON was the last thing that a request for a summary got: a later opening may hold its other properties only."""
    _empty_summary: bool = False
    """A request for a summary came last, and its reply had no words: what follows may hold nothing that was said."""
    _known: dict[tuple[str, str], SideConversation] = field(default_factory=dict)
    _declared: dict[tuple[str, str], SideConversation] = field(default_factory=dict)
    _with_tools: set[str] = field(default_factory=set)
    """The names of declared conversations, and the prompts of subagents, whose requests offer tools."""
    _forks: Forks = field(default_factory=Forks)
    _begun_by: set[str] = field(default_factory=set)
    """The marks of the calls whose subagent has asked."""
    _count: Counter[str] = field(default_factory=Counter)
    _attempts: Counter[tuple[SideConversation, int]] = field(default_factory=Counter)

    # ---- what happens

    def offered(self, token: str, turn: int, args: Mapping[str, object]) -> None:
        """The model calls a tool in this turn that is no shell."""
        texts = [text.strip() for text in args.values() if isinstance(text, str)]
        prompts = [text for text in texts if len(text) >= _LEAST_PROMPT and not _NAME.fullmatch(text)]
        if prompts:
            self._prompts[token] = turn, (prompt_mark(token), *map(str.lower, prompts))
            self._tasks[prompt_mark(token)] = "\n".join(prompts)

    def main(self, conversation: Conversation, traces: Traces, tokens: Iterable[str]) -> None:
        """A request of the main conversation came, with the results of these tool calls."""
        self.returned(tokens)
        self._unknown_summary = self._empty_summary = False
        self._openings.add(_opening(conversation))
        if traces.asked is not None:
            main = self._mains.setdefault(traces.turn, _MainTurn())
            main.roots.add(root_of(conversation).lower())
            main.systems.add(system_mark(conversation))

    def returned(self, tokens: Iterable[str]) -> None:
        """The results of these tool calls were sent."""
        self._returned.update(tokens)

    def answered(self, call: int, purpose: str, *, structured: bool) -> None:
        """A background call that belongs to no side conversation gets its words, perhaps as one property of many."""
        self._summaries.add(call)
        self._unknown_summary = structured and purpose in SUMMARIES

    def said_nothing(self, purpose: str) -> None:
        """The reply to such a background call has no words."""
        self._empty_summary = purpose in SUMMARIES

    # ---- what a request is

    def unforked(self, conversation: Conversation) -> Conversation:
        """A subagent's request without the parent's conversation, if it began as a copy of that."""
        return self._forks.own_part(conversation, self._marks_in, self._begun_by) if self._prompts else conversation

    def with_task(self, conversation: Conversation, traces: Traces) -> Conversation:
        """A subagent's request with its task as its first message: some agents give it in the system text only."""
        if not (self._prompts and self.marked) or traces.asked is not None or traces.compacts:
            return conversation
        tasks = [self._tasks[mark] for mark in self._marks_in(conversation.system.lower())]
        given = (Message("user", "\n".join(tasks)),) if tasks else ()
        return replace(conversation, messages=(*given, *conversation.messages))

    def find(self, conversation: Conversation, traces: Traces) -> SideConversation | None:
        """The side conversation that a request belongs to; None: to the main one, or it is another background call."""
        opening = _opening(conversation)
        if opening not in self._known and opening not in self._openings:
            name = self._name(conversation, traces, opening[1].lower())
            if name:
                self._known[opening] = self._begun(name, opening[1], traces.turn)
        return self._known.get(opening)

    def named(self, name: str, conversation: Conversation, turn: int) -> SideConversation | None:
        """The declared conversation of this name and opening; None if the request only tells of it."""
        opening = name, root_of(conversation)
        if opening not in self._declared and not self._tells_of([name], conversation):
            self._declared[opening] = self._begun(name, opening[1], turn)
        return self._declared.get(opening)

    def _tells_of(self, opened: Sequence[str], conversation: Conversation) -> bool:
        """Whether a new request without tools quotes a conversation that has tools, as one for its title does.

        `opened` are the names or prompts in the request. One with tools opens these conversations, and is kept.
        """
        if conversation.tools:
            self._with_tools.update(opened)
            return False
        return not self._with_tools.isdisjoint(opened)

    def _begun(self, name: str, root: str, turn: int) -> SideConversation:
        """A new one; it belongs to the turn of the scripted call that gave it its prompt, else to this turn."""
        marks = self._marks_in(root.lower())
        self._begun_by.update(marks)
        turn = next((of for of, texts in self._prompts.values() if texts[0] in marks), turn)
        self._count[name] += 1
        return SideConversation(name, self._count[name], turn, self._count.total())

    def attempt(self, side: SideConversation, step: int) -> int:
        """The number of this attempt at a step of a side conversation."""
        self._attempts[side, step] += 1
        return self._attempts[side, step]

    def _name(self, conversation: Conversation, traces: Traces, root: str) -> str:
        """The name of a new side conversation; empty for the main one."""
        if traces.results or replies_in(conversation):
            return ""
        main = self._mains.get(traces.turn, _MainTurn())
        if self._spawned(conversation, traces, root, main):
            return SUBAGENT
        if not traces.fits or self._unknown_summary or self.quotes_a_summary(conversation):
            return ""
        if traces.asked is not None:
            return SIDE if self.asides.intersection(frames(conversation, traces.asked)) else ""
        goes_on = (traces.compacts or self._empty_summary) and system_mark(conversation) in main.systems
        if not self.marked or not main.roots or goes_on:
            return ""
        return SUBAGENT if self._prompts_of(traces.turn) else SIDE

    def _spawned(self, conversation: Conversation, traces: Traces, root: str, main: _MainTurn) -> bool:
        """Whether a delegating call made this conversation: its prompt is there, or another agent has the message."""
        prompts = self._prompts_of(traces.turn)
        given = [prompt for prompt in prompts if prompt in root and not any(prompt in said for said in main.roots)]
        if not given and traces.asked is None and not self.quotes_a_summary(conversation):
            given = [mark for mark in self._marks_in(root) if not any(mark in said for said in main.roots)]
        if given:
            return not self._tells_of(given, conversation)
        other_system = bool(main.systems) and system_mark(conversation) not in main.systems
        return bool(prompts) and traces.asked is not None and traces.under_way and other_system

    def _marks_in(self, root: str) -> list[str]:
        """The marks of scripted calls, answered or not, that an opening holds: it works beside the conversation."""
        return [texts[0] for _, texts in self._prompts.values() if texts[0] in root]

    def _prompts_of(self, turn: int) -> list[str]:
        """Texts in the arguments of this turn's tool calls that have no result yet."""
        waiting = (given for token, given in self._prompts.items() if token not in self._returned)
        return [text for of, texts in waiting if of == turn for text in texts]

    def told_in(self, conversation: Conversation) -> SideConversation | None:
        """The one side conversation whose task a request quotes."""
        text = conversation.text.lower()
        known = {*self._known.items(), *self._declared.items()}
        told = {it for (_, root), it in known if any(mark in text for mark in self._marks_in(root.lower()))}
        return told.pop() if len(told) == 1 else None

    def quoted(self, conversation: Conversation) -> tuple[int, ...]:
        """The calls of side conversations whose replies stand in the messages or in results of tools."""
        if not self._count:
            return ()
        results = [result.text for message in conversation.messages for result in message.tool_results]
        texts = "\n".join([message.text for message in conversation.messages] + results)
        return tuple(sorted(notes_in(self.salt, texts) - self._summaries))

    def quotes_a_summary(self, conversation: Conversation) -> bool:
        """Whether it holds the reply to a background call: a summary in the place of messages."""
        return not self._summaries.isdisjoint(notes_in(self.salt, conversation.text))


def _opening(conversation: Conversation) -> tuple[str, str]:
    """What tells conversations apart, and the text that may hold a prompt."""
    return system_mark(conversation), root_of(conversation)
