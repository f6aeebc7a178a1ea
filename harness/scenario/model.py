"""A scenario (docs/scenarios.md), validated. Durations are the script's; a run divides them by `time_scale`."""

from collections.abc import Iterator

from pydantic import model_validator

from wedgehog.fake_llm.reply import CUT_STOPS, FileAction, Text, ToolCall
from wedgehog.fake_llm.script.file_tools import SEARCH_FILES, file_action
from wedgehog.fake_llm.script.roles import SHELL, SILENT_COMMANDS, SUBAGENT_TOOL
from wedgehog.fake_llm.usage import is_object
from wedgehog.harness.faults.base import Need
from wedgehog.harness.faults.process_fault import Speak
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.scenario.fault_config import AGENT
from wedgehog.harness.scenario.fault_plan import FaultPlan, PlannedFault
from wedgehog.harness.scenario.mistake import BadValuesError
from wedgehog.harness.scenario.scenario_checks import contradictions
from wedgehog.harness.scenario.scenario_keys import ScenarioKeys
from wedgehog.harness.scenario.turn_config import TurnConfig


class Scenario(ScenarioKeys):
    """One scenario file, whose parts fit together."""

    @model_validator(mode="after")
    def _fits_together(self) -> "Scenario":
        if found := list(contradictions(self)):
            raise BadValuesError(found)
        return self

    def plan(self, time_scale: float) -> FaultPlan:
        """The fault plan, in real seconds."""
        return FaultPlan(tuple(words.planned().paused() for words in self.faults)).scaled(time_scale)

    @property
    def tools_called(self) -> frozenset[str]:
        """Names of the tools that the script calls; `shell` is a role."""
        replies = [reply for turn in self.turns for reply in turn.replies]
        replies += [reply for it in self.conversations for reply in it.replies()]
        return frozenset(item.name for reply in replies for item in reply.items if isinstance(item, ToolCall))

    @property
    def files_named(self) -> tuple[str, ...]:
        """The files of the project that it writes, or that the model's calls name, in the order in which they come."""
        named = [*self.files]
        for turn in self.turns:
            named += [*turn.files, *(it.path for it in _file_actions(turn) if it.role != SEARCH_FILES)]
        return tuple(dict.fromkeys(named))

    @property
    def file_actions(self) -> tuple[FileAction, ...]:
        """What the model of the main conversation does with files."""
        return tuple(it for turn in self.turns for it in _file_actions(turn))

    @property
    def _subagents(self) -> tuple[ToolCall, ...]:
        """The calls of the script that give work to a subagent."""
        replies = [reply for turn in self.turns for reply in turn.replies]
        calls = (item for reply in replies for item in reply.items if isinstance(item, ToolCall))
        return tuple(call for call in calls if call.name == SUBAGENT_TOOL)

    @property
    def delegates(self) -> bool:
        """Whether the script gives work to a subagent."""
        return bool(self._subagents)

    @property
    def calls_at_once(self) -> int:
        """The most tool calls in one reply of the main conversation."""
        replies = [reply for turn in self.turns for reply in turn.replies]
        return max((sum(isinstance(it, ToolCall) for it in reply.items) for reply in replies), default=0)

    @property
    def commands(self) -> tuple[str, ...]:
        """The shell commands of the main conversation."""
        replies = [reply for turn in self.turns for reply in turn.replies]
        calls = (it for reply in replies for it in reply.items if isinstance(it, ToolCall) and it.name == SHELL)
        return tuple(str(call.args["command"]) for call in calls if "command" in call.args)

    @property
    def texts(self) -> tuple[str, ...]:
        """What the model says in the main conversation."""
        replies = [reply for turn in self.turns for reply in turn.replies]
        return tuple(it.text for reply in replies for it in reply.items if isinstance(it, Text))

    @property
    def silent(self) -> bool:
        """Whether a command of the script prints nothing: then only the id of its call identifies the result."""
        return any(command.strip() in SILENT_COMMANDS for command in self.commands)

    @property
    def needs(self) -> frozenset[Need]:
        """What its faults and turns need of the agent: its own timer, or a second message while one is under way."""
        of_turns: dict[Need, bool] = {
            "wake_up": any(turn.wake_up is not None for turn in self.turns),
            "permission": any(turn.permission != "allow" for turn in self.turns),
            "second_message": any(turn.during is not None and self._same(turn) for turn in self.turns),
            "message_at_once": any(turn.at_once for turn in self.turns),
            "redelivery": any(turn.again_s is not None and turn.again_as == "same_event" for turn in self.turns),
            "two_events": any(turn.again_s is not None and turn.again_as == "other_event" for turn in self.turns),
            "sessions": len(self.sessions) > 1,
            "page": self.browser_clock_s != 0 or self.one_user or any(turn.loads_again for turn in self.turns),
            "new_chat": self.one_user,
            "models": any(turn.chosen_model is not None for turn in self.turns),
            "background_subagent": any(it.args.get("background") is True for it in self._subagents),
        }
        needs = {need for words in self.faults for need in words.needs}
        return frozenset(needs | {need for need, applies in of_turns.items() if applies})

    @property
    def sessions_at_once(self) -> bool:
        """Whether turns of two sessions overlap."""
        return any(turn.during is not None and not self._same(turn) for turn in self.turns)

    def session_of(self, number: int) -> str:
        """The session of a turn; the first one for any other number."""
        return self.turns[number - 1].session if 0 < number <= len(self.turns) else self.sessions[0]

    def opens(self, number: int) -> bool:
        """Whether this turn is the first one of its session, and that does not exist before the run."""
        session = self.session_of(number)
        earlier = any(turn.session == session for turn in self.turns[: number - 1])
        return not earlier and (self.session is None or session != self.sessions[0])

    def _same(self, turn: TurnConfig) -> bool:
        """Whether the turn during which this one is given belongs to the same session."""
        return turn.during is not None and self.session_of(turn.during.turn) == turn.session

    def messages(self, time_scale: float) -> tuple[PlannedFault, ...]:
        """The messages that are given while an earlier turn is under way, with their triggers in real seconds."""
        found = ((Speak(number), turn.during) for number, turn in enumerate(self.turns, 1) if turn.during)
        return tuple(PlannedFault(AGENT, at.trigger(AGENT, it), it).scaled(time_scale) for it, at in found)

    @property
    def breaks_arguments(self) -> bool:
        """Whether a tool call's arguments are no JSON object, by a fault or as the script writes them."""
        replies = [reply for turn in self.turns for reply in turn.replies if reply.stop not in CUT_STOPS]
        calls = (item for reply in replies for item in reply.items if isinstance(item, ToolCall))
        broken = any(call.raw_args is not None and not is_object(call.raw_args) for call in calls)
        return broken or any(isinstance(it.fault, ReplyFault) and it.fault.breaks_arguments for it in self.faults)


def _file_actions(turn: TurnConfig) -> Iterator[FileAction]:
    calls = (item for reply in turn.replies for item in reply.items if isinstance(item, ToolCall))
    actions = (file_action(call.name, call.args) for call in calls)
    return (action for action in actions if action is not None)
