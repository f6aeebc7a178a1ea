"""The turns of a run: each message in its order, then a recovery message that must be answered."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from wedgehog.fake_llm.conversation import ToolSpec
from wedgehog.fake_llm.reply import Reply, ToolCall
from wedgehog.fake_llm.script.file_tools import offered_roles
from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.fake_llm.script.message_tool import find_message_tool
from wedgehog.fake_llm.script.openings import QuotedMessage, asides, frames, root_of, schema_mark
from wedgehog.fake_llm.script.results_in_text import ResultFrame
from wedgehog.fake_llm.script.roles import find_fetch, find_named, find_question, find_shell, find_subagent
from wedgehog.fake_llm.script.turns import ScriptedTurn
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.error_words import plain
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.events.service import ChatSeen
from wedgehog.harness.record.events.turn import StimulusGiven
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.run.control import HELLO, ControlFacts, read_control
from wedgehog.harness.run.messages import RunMessages, UserMessage
from wedgehog.harness.run.project_folder import ProjectFolder
from wedgehog.harness.run.scripted_replies import ScriptedReplies
from wedgehog.harness.run.session_files import SessionFiles
from wedgehog.harness.run.tool_turn import CONTROL_TOOL
from wedgehog.harness.run.turn import TurnPlayer


@dataclass
class Turns:
    """Plays the turns of one run on an open agent."""

    messages: RunMessages
    player: TurnPlayer
    files: SessionFiles
    project: ProjectFolder
    spec: AgentSpec
    starts_told: int = 0

    async def play(self) -> None:
        """Every turn of the scenario, then the recovery of each session."""
        scenario = self.messages.scenario
        for number in range(1, len(scenario.turns) + 1):
            await self.give(number)
        await self.player.run.injector.heal_all()
        number = len(scenario.turns) + 1
        for session in scenario.sessions:
            number = await self._recover(number, session)
        await self._look_at_chats()

    async def play_control(self, replies: ScriptedReplies, script: dict[int, ScriptedTurn]) -> None:
        """The control's message; if that was answered, one with a call of a shell or own tool, then one of our host."""
        await self.give(1)
        answered_by = _answered_by(self.player.run.history, replies)
        unended = self.player.stays and self.player.run.history.turns[0].deadline is not None
        if answered_by is None or unended:  # a process that stays takes no message before the end of the one before
            return
        tools, turn = replies.script.tools(replies.tools_seen[_put_into_json(answered_by, replies)]), script[2]
        shell = turn.replies[:1] if find_shell(tools) is not None else self._own_call(tools)
        host = (Reply((ToolCall(CONTROL_TOOL, {}),)),) if find_named(tools, CONTROL_TOOL) is not None else ()
        script[2] = replace(turn, replies=(*shell, *host, *turn.replies[-1:]))
        await self.give(2)

    def _own_call(self, tools: Sequence[ToolSpec]) -> tuple[Reply, ...]:
        """A call of the spec's `own_tool`, if the agent offers it."""
        own = self.spec.own_tool
        offered = next((it for it in tools if own is not None and it.name == own.name), None)
        if own is None or offered is None:
            return ()
        return (Reply((ToolCall(own.name, own.call(1, offered.schema or {})),)),)

    async def give(self, number: int) -> None:
        """Play one turn of the scenario; one that is given during another turn is played there."""
        turn = self.messages.scenario.turns[number - 1]
        if turn.during is not None:
            return
        await self._pause(number, turn.pause_s / self.messages.time_scale)
        self.files.plant(number, turn.append)
        self.project.write(number)
        message = self.messages.message(number)
        await self._play(message, self.messages.during(number))

    async def _pause(self, turn: int, seconds: float) -> None:
        """The user waits before a message; faults on an idle session strike in the middle of that time."""
        await self.player.run.clock.sleep(seconds / 2)
        await self.player.run.injector.while_idle(turn)
        await self.player.run.clock.sleep(seconds / 2)

    async def _recover(self, number: int, session: str) -> int:
        """One more message must be answered; after an error that it surfaced, a second one once it cooled down.

        Returns the number of the next turn.
        """
        await self._play(self.messages.recovery(number, session))
        so_far = History(events=self.player.run.history.events).seal()
        turn = so_far.turns[-1]
        refused = any(call.refused and call.refused.pairing for call in turn.calls)
        if outcome_of(turn, so_far).kind != "surfaced" or refused:
            return number + 1
        await self.player.run.clock.sleep(self.spec.recover_s)
        await self._play(self.messages.recovery(number + 1, session))
        return number + 2

    async def _look_at_chats(self) -> None:
        """Record whether a chat still shows that its agent types."""
        for session in self.player.sessions:
            types = await session.types_on()
            if types is not None:
                self.player.run.history.add(ChatSeen(session=session.name, types=types))

    async def _play(self, message: UserMessage, during: Mapping[int, UserMessage] | None = None) -> None:
        await self.player.of(message.session).play(message, during)
        self.project.look(message.number)
        self._tell_starts()

    def _tell_starts(self) -> None:
        """Record each process that was started since the last call; of an agent that has none, what it runs."""
        session = self.player.session
        starts = session.starts or [session.started]
        for number, started in enumerate(starts[self.starts_told :], self.starts_told):
            self.player.run.history.add(
                AgentStarted(
                    argv=tuple(started.argv),
                    executable=started.executable,
                    entry=started.entry or "",
                    entry_hash=started.entry_hash or "",
                    version=started.version or "",
                    pid=started.pid or 0,
                    ready_s=0.0 if number else round(session.ready_s, 4),
                    began_s=started.began_s,
                    interpreter=started.interpreter,
                    source=started.source,
                )
            )
        self.starts_told = len(starts)


def control_facts(history: History, replies: ScriptedReplies, wire: str) -> ControlFacts:
    """The facts of a control run; `wire` is what the spec says that the agent speaks."""
    shown = _answered_by(history, replies)
    call = None if shown is None else _put_into_json(shown, replies)
    tools = () if call is None else replies.script.tools(replies.tools_seen[call])
    shapes = replies.shapes
    if call is not None and shown is not None:
        shapes = {**shapes, call: replace(shapes[call], schema=schema_mark(replies.tools_seen[shown]))}
    facts = read_control(History(events=history.events).seal(), shapes, find_shell(tools) is not None, call, wire)
    schemas = {tool.name: dict(tool.schema or {}) for tool in tools}
    shape = None if call is None or facts.shape is None else _with_asides(facts.shape, history, replies, call, shown)
    beside = shape is not None and bool(shape.asides)
    subagents = find_subagent(tools)
    if beside:
        after = facts.background_after if facts.background else 0
        later = facts.background_later or _asks_alike(shape, history, shapes, {call, shown})
        facts = replace(facts, background=True, background_after=after, background_first=True, background_later=later)
    fetches, questions = find_fetch(tools) is not None, find_question(tools) is not None
    in_background = subagents is not None and subagents.offers_background
    facts = replace(facts, schemas=schemas, shape=shape, fetches=fetches, questions=questions)
    facts = replace(facts, file_tools=offered_roles(tools), writes=find_message_tool(tools) is not None)
    facts = replace(facts, delegates=subagents is not None, delegates_in_background=in_background)
    return replace(facts, tools=frozenset(schemas), frame=_frame_of_results(replies))


def _asks_alike(
    shape: MainShape | None, history: History, shapes: Mapping[int, MainShape], answering: Set[int | None]
) -> bool:
    """Whether a call of the first turn beside the answer looks like the main one: then later ones are not told."""
    turn = next(history.of(StimulusGiven)).turn
    beside = [it.call for it in history.of(RequestArrived) if it.turn == turn and it.call not in answering]
    return any(shape is not None and call in shapes and shape.alike(shapes[call]) for call in beside)


def _frame_of_results(replies: ScriptedReplies) -> ResultFrame | None:
    """What the agent writes around the result of the tool turn's command, if results stand in its text."""
    if replies.script.positions.results_in_text is None:
        return None
    output = re.compile(rf"{HELLO}\s+{replies.script.positions.tokens.token(2, 1, 1)}")
    read = map(replies.read, replies.tools_seen.values())
    results = (result.text for talk in read for message in talk.messages for result in message.tool_results)
    return next((frame for text in results if (frame := ResultFrame.around(output, text))), None)


def _with_asides(
    shape: MainShape, history: History, replies: ScriptedReplies, answered_by: int, shown: int | None
) -> MainShape:
    """The shape with what the first turn's other calls tell: those that quote its message too are beside the answer."""
    given = next(history.of(StimulusGiven))
    asked = QuotedMessage(given.marker, given.text)
    arrived = (it.call for it in history.of(RequestArrived) if it.turn == given.turn)
    mine = [number for number in arrived if number != shown]
    calls = [replies.tools_seen[call] for call in mine if call in replies.tools_seen]
    answering = replies.tools_seen[answered_by]
    marked = bool(frames(answering, asked)[0])
    return replace(shape, marked=marked, asides=asides(calls, answering, asked))


def _answered_by(history: History, replies: ScriptedReplies) -> int | None:
    """The call whose nonce is in the answer of the first turn."""
    turns = History(events=history.events).seal().turns
    if not turns:
        return None
    answer = plain(turns[0].end.answer) if turns[0].end else ""
    nonce_of = replies.script.nonce_of
    return next((it.number for it in turns[0].calls if it.paid and plain(nonce_of(it.number)) in answer), None)


def _put_into_json(shown: int, replies: ScriptedReplies) -> int:
    """The call with tools whose words the shown one asked for again, by a schema and without tools; else the shown one.

    Some agents do so behind each round of tools: both calls are of the conversation.
    """
    seen, shown_call = replies.tools_seen, replies.tools_seen[shown]
    if shown_call.schema is None or shown_call.tools:
        return shown
    asked = root_of(shown_call)
    before = [call for call in seen if call < shown and seen[call].tools and asked.startswith(root_of(seen[call]))]
    return max(before, default=shown)
