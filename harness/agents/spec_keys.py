"""The keys of an agent spec, one class for each part."""

import re
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from wedgehog.fake_llm.script.calls_in_text import CallsInText, placeholders
from wedgehog.fake_llm.script.roles import SHELL, find_shell
from wedgehog.harness.agents.backend_links import Backends
from wedgehog.harness.agents.living_spec import AcpAgent, LinesAgent, Signal, TuiAgent
from wedgehog.harness.agents.output_source import OutputSource
from wedgehog.harness.agents.own_tool import OwnTool
from wedgehog.harness.agents.pages.page_spec import PageAgent
from wedgehog.harness.agents.runtime_install import Runtime
from wedgehog.harness.agents.service_spec import Chat, Http
from wedgehog.harness.agents.spec_part import (
    Argv,
    PositiveSeconds,
    RegularExpression,
    SecondsOrNone,
    Source,
    SpecPart,
    WholeNumber,
)
from wedgehog.harness.agents.templates import names_in
from wedgehog.harness.record.verdict import Level
from wedgehog.harness.scenario.mistake import BadValueError

AgentKind = Literal["command", "callable", "http", "page", "chat", "lines", "acp", "tui"]
AGENT_KINDS: tuple[AgentKind, ...] = get_args(AgentKind)
"""The ways to talk to an agent; a spec has exactly one of these keys."""
HostLink = Literal["llm", "chat"]
"""The links that can be behind a host."""
Wire = Literal["openai-chat", "openai-responses", "openai-realtime", "anthropic", "gemini", "ollama"]


ONLY_WORDS = "{answer}"
"""The last words as they are."""


def _holds_answer(text: str) -> str:
    if "{answer}" not in text:
        raise BadValueError(f"expected {{answer}} where the last words go, found {text!r}")
    return text


def _holds_argument(template: str) -> str:
    if not placeholders(template):
        raise BadValueError(f"expected the place of an argument, such as {{command}} or {{args}}, found {template!r}")
    return template


def _takes_command(templates: dict[str, str]) -> dict[str, str]:
    if SHELL in templates and find_shell(CallsInText({SHELL: templates[SHELL]}).tools) is None:
        raise BadValueError(f"expected {{command}} where the command goes, found {templates[SHELL]!r}", SHELL)
    return templates


def _function(text: str) -> str:
    if not re.fullmatch(r"[^:]+:[A-Za-z_][\w.]*", text):
        raise BadValueError(f"expected 'package.module:function' or 'file.py:function', found {text!r}")
    file = text.rpartition(":")[0]
    beside = file.endswith(".py") and not file.startswith(("/", "{"))
    return f"{{here}}/{text}" if beside else text


def _python(text: str) -> str:
    if not text or set(names_in(text)) - {"here"}:
        raise BadValueError(f"expected the path of a Python, such as .venv/bin/python, found {text!r}")
    return f"{{here}}/{text}" if "/" in text and not text.startswith(("/", "{")) else text


CallTemplate = Annotated[str, AfterValidator(_holds_argument)]


class Timeout(SpecPart):
    """A timer that the agent claims to have, in its own, unscaled seconds."""

    name: str
    s: PositiveSeconds
    says: RegularExpression | None = None
    inside: str | None = None
    fixes: tuple[str, ...] = ()
    """Of a specimen: only a variant with one of these fixes has the timer, in place of another one of its name."""

    @property
    def templates(self) -> dict[str, str]:
        """`{idle_s}` and `{idle_ms}` for a timer called `idle`; with them, a spec sets the agent's timer."""
        word = re.sub(r"[^a-z]+", "_", self.name.lower()).strip("_")
        return {f"{word}_s": f"{self.s:g}", f"{word}_ms": f"{self.s * 1000:g}"}


class Finish(SpecPart):
    """The tool call by which the agent's model ends a turn; `text` holds {answer} where the last words go.

    Without `arg` the words are text before the call. Without `tool`, `arg` is the property of a structured reply that
    the agent shows, and `text` is how a reply without a schema holds the words. `with` has the values of other
    properties by name, in that call and in every reply by a schema.
    """

    tool: str = ""
    arg: str = ""
    text: Annotated[str, AfterValidator(_holds_answer)] = ONLY_WORDS
    chosen: dict[str, Any] = Field(default={}, alias="with")

    @property
    def wraps_words(self) -> bool:
        """Whether the agent expects the last words in a tool call, or in a text around them."""
        return bool(self.tool) or self.text != ONLY_WORDS

    @property
    def writes_json(self) -> bool:
        """Whether a reply without a schema has the last words as a string of JSON."""
        return not self.tool and '"{answer}"' in self.text

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not self.tool and not self.arg and not self.chosen and self.text == ONLY_WORDS:
            raise BadValueError("expected at least one of tool, arg, text and with")
        return self


class UsageSources(SpecPart):
    """Where the agent says what a turn took, as it counts itself: a number at a place of its JSON output."""

    input_tokens: Source | None = None
    output_tokens: Source | None = None
    usd: Source | None = None
    counts: Literal["turn", "session"] = "turn"

    @property
    def given(self) -> dict[str, str]:
        """The places, by what stands there."""
        return {key: place for key in ("input_tokens", "output_tokens", "usd") if (place := getattr(self, key))}

    @model_validator(mode="after")
    def _are_in_json(self) -> Self:
        if not self.given:
            raise BadValueError("expected at least one of input_tokens, output_tokens and usd")
        for key, place in self.given.items():
            if OutputSource.parse(place).kind not in ("json", "jsonl"):
                raise BadValueError(f"expected json:PATH or jsonl:PATH, found {place!r}", key)
        return self


class StatedLimit(SpecPart):
    """A limit that the agent states itself, above the stock bound, and where it does (`why`)."""

    at_most: Annotated[float, Field(ge=0)]
    why: Annotated[str, Field(min_length=3)]


class Limits(SpecPart):
    """What the agent promises; each value tightens the stock bound of that name."""

    turn_s: PositiveSeconds | None = None
    calls_per_turn: WholeNumber | StatedLimit | None = None
    calls_without_progress: WholeNumber | StatedLimit | None = None
    tool_rounds: WholeNumber | StatedLimit | None = None
    tool_result_chars: WholeNumber | None = None
    tool_s: PositiveSeconds | None = None
    usd_per_turn: SecondsOrNone | StatedLimit | None = None
    tokens_per_turn: WholeNumber | StatedLimit | None = None

    @property
    def stated(self) -> dict[str, StatedLimit]:
        """Those that the agent states itself, by name."""
        return {name: limit for name, limit in self if isinstance(limit, StatedLimit)}


class AgentKeys(SpecPart):
    """All keys of a spec."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}$")]
    wire: Wire
    command: Argv | None = None
    callable: Annotated[str, AfterValidator(_function)] | None = None
    python: Annotated[str, AfterValidator(_python)] | None = None
    """The Python that runs a `callable`; ours without this key."""
    http: Http | None = None
    page: PageAgent | None = None
    chat: Chat | None = None
    lines: LinesAgent | None = None
    acp: AcpAgent | None = None
    tui: TuiAgent | None = None
    resume: Argv | None = None
    wake_up: Argv | None = None
    stdin: Literal["none", "open"] = "none"
    """What a `command` has as its stdin: nothing, or a pipe that stays open and into which nothing is written."""
    env: dict[str, str] = {}
    inherit_env: tuple[str, ...] = ()
    files: dict[str, str] = {}
    workdir: str | None = None
    session_files: tuple[str, ...] = ()
    session_file: str | None = None
    answer: Source = "stdout"
    error: Source = "stderr"
    errors: tuple[RegularExpression, ...] = ()
    abort: Signal = "SIGINT"
    timeouts: tuple[Timeout, ...] = ()
    models: Annotated[tuple[str, ...], Field(min_length=2, max_length=2)] | None = None
    """Two models among which its user chooses, in the middle of a session too."""
    limits: Limits = Limits()
    usage: UsageSources | None = None
    """Where it says what it used itself."""
    level: Level = "safe"
    start_s: PositiveSeconds = 60
    recover_s: SecondsOrNone = 30
    finish: Finish | None = None
    calls_in_text: Annotated[dict[str, CallTemplate], AfterValidator(_takes_command)] = {}
    """How its model writes a call of each tool in its text, if the agent does not use the provider's tool calls."""
    price_as: str = "claude-sonnet-4-6"
    known: dict[str, str] = {}
    hosts: dict[Annotated[str, Field(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)*$")], HostLink] = {}
    """Hard-coded https hosts and the link behind each; the agent then runs in a private network with only these."""
    links: Backends = {}
    """Servers of the user's own, each reached through a link `tcp:NAME`."""
    tools: Literal["http", "stdio"] | None = None
    own_tool: OwnTool | None = None
    """A tool of the agent's own that scenarios call if it has no shell."""
    simulate: Annotated[str, AfterValidator(_function)] | None = None
    """An async function that does what the program does, on a running event loop; it gets the program's arguments."""
    runtime: Runtime | None = None
    fixes: dict[str, str] = {}
    fixed: tuple[str, ...] = ()
    suffix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._@+-]*$")] = ""
