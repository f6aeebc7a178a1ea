"""One turn of a scenario: the user's message, and the model's replies."""

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, NonNegativeFloat, PositiveInt, model_validator

from wedgehog.fake_llm.reply import Reply
from wedgehog.fake_llm.script.items import ConfigModel, ReplyConfig
from wedgehog.harness.faults.process_fault import Speak
from wedgehog.harness.record.events.turn import MAIN_SESSION, ChosenModel, Permission
from wedgehog.harness.scenario.fault_config import AGENT, TriggerConfig
from wedgehog.harness.scenario.mistake import BadValueError
from wedgehog.harness.scenario.project_file import ProjectFiles


class WakeUp(ConfigModel):
    """The agent's own timer fires."""

    fires: PositiveInt = 1


def _beside(name: str) -> str:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        here = f"planted/{PurePosixPath(name).name}"
        raise BadValueError(f"expected a file beside the scenario, such as {here}, found {name!r}")
    return name


Beside = Annotated[str, AfterValidator(_beside)]
"""A file named by its path from the scenario's folder."""


class TurnConfig(ConfigModel):
    """One stimulus, and what the model answers: entry 1 for step 1, and so on."""

    user: str | None = None
    wake_up: WakeUp | None = None
    resume: str | None = None
    append: Beside | None = None
    """Lines that are appended to the session file before this turn."""
    session: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9-]*$", max_length=20)] = MAIN_SESSION
    """The session that it belongs to."""
    during: TriggerConfig | None = None
    """Said while an earlier turn is under way, when that trigger of it is met."""
    pause_s: NonNegativeFloat = 0
    """The user waits so long before the message, after the turn before it has ended."""
    at_once: bool = False
    """The user stops the turn before, and sends the message as soon as the agent takes it."""
    again_s: Annotated[float, Field(gt=0)] | None = None
    """So long after the message its front end delivers it again, with the same id."""
    again_as: Literal["same_event", "other_event"] = "same_event"
    """With `other_event` it comes again as an event of another kind, as a mention in Slack does."""
    permission: Permission = "allow"
    """What the user answers to a request for permission to run a tool; `deny_once` denies only the first one."""
    chosen_model: ChosenModel | None = None
    """The user chooses this one of the spec's `models` before the message; by default the choice stays."""
    loads_again: bool = False
    """The user loads the agent's page again before the message."""
    files: ProjectFiles = {}
    """The user writes these files of the project before the message."""
    model: list[ReplyConfig] = []

    @model_validator(mode="after")
    def _one_stimulus(self) -> "TurnConfig":
        if sum(given is not None for given in (self.user, self.wake_up, self.resume)) != 1:
            raise BadValueError("a turn has exactly one of user, wake_up and resume")
        if self.during is None:
            return self
        if self.pause_s:
            raise BadValueError("a message during a turn comes at the moment of `during`", "pause_s")
        if self.at_once:
            raise BadValueError("a message during a turn does not follow on its stop", "at_once")
        if self.again_s is not None:
            raise BadValueError("a message during a turn is delivered once", "again_s")
        if self.files:
            raise BadValueError("the user writes no file in the middle of a turn", "files")
        if self.append is not None:
            raise BadValueError("a session can't be appended to in the middle of a turn", "append")
        if self.during.phase in ("connect", "request"):
            raise BadValueError("a message is given at headers, body, middle, terminal or linger", "during", "phase")
        self.during.trigger(AGENT, Speak(1), "during")
        return self

    @property
    def text(self) -> str:
        """The message to the agent."""
        return self.user or self.resume or "Look after your scheduled work."

    @property
    def stimulus(self) -> Literal["user", "wake_up", "resume"]:
        """What kind of stimulus it is."""
        return "user" if self.user is not None else "resume" if self.resume is not None else "wake_up"

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The scripted replies."""
        return tuple(words.reply() for words in self.model)
