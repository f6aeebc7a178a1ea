"""The agent spec: how to use an agent that we did not write. One YAML file, the same for every scenario.

    spec = load_spec(Path("my-agent.yaml"))
    for agent in variants(spec):                  # one agent, or the variants of a specimen
        async with open_agent(agent, place) as session: ...

A spec does not say what should happen under a fault.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from wedgehog.harness.agents.living_spec import AcpAgent, LinesAgent, Signal, TuiAgent
from wedgehog.harness.agents.runtime_install import Runtime, as_version, place_of
from wedgehog.harness.agents.sources import OutputSource
from wedgehog.harness.agents.spec_part import (
    Argv,
    PositiveSeconds,
    RegularExpression,
    SecondsOrNone,
    Source,
    SpecPart,
    WholeNumber,
)
from wedgehog.harness.agents.templates import NAMES, UnknownTemplateError, expand, names_in, written_in
from wedgehog.harness.record.verdict import Level
from wedgehog.harness.scenario import document
from wedgehog.harness.scenario.document import BadValueError

AgentKind = Literal["command", "callable", "http", "chat", "lines", "acp", "tui"]
AGENT_KINDS: tuple[AgentKind, ...] = get_args(AgentKind)
"""The ways to talk to an agent; a spec has exactly one of these keys."""
HostLink = Literal["llm", "chat"]
"""The links that can be behind a host."""
Wire = Literal["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"]


def _holds_answer(text: str) -> str:
    if "{answer}" not in text:
        raise BadValueError(f"expected {{answer}} where the last words go, found {text!r}")
    return text


def _function(text: str) -> str:
    if not re.fullmatch(r"[^:]+:[A-Za-z_][\w.]*", text):
        raise BadValueError(f"expected 'package.module:function' or 'file.py:function', found {text!r}")
    file = text.rpartition(":")[0]
    beside = file.endswith(".py") and not file.startswith(("/", "{"))
    return f"{{here}}/{text}" if beside else text


class HttpCall(SpecPart):
    """A request that stops a turn or wakes the service up."""

    url: str
    method: Literal["POST", "DELETE"] = "POST"
    """The HTTP client repeats other methods when a connection is lost; a wake-up must be sent once."""
    body: Any = None
    headers: dict[str, str] = {}


class Http(SpecPart):
    """An agent that is a service: one HTTP request is one turn."""

    start: Argv | None = None
    base: str | None = None
    ready: str = "/"
    url: str
    headers: dict[str, str] = {}
    body: Any = None
    answer: Source = "text"
    error: Source | None = None
    abort: HttpCall | None = None
    wake_up: HttpCall | None = None

    @model_validator(mode="after")
    def _is_started_or_runs(self) -> Self:
        if (self.start is None) == (self.base is None):
            raise BadValueError("expected either `start` (we start the service) or `base` (it is already running)")
        if self.base and not re.match(r"https?://[^/]+", self.base):
            raise BadValueError(f"expected an address like http://127.0.0.1:8000, found {self.base!r}", "base")
        for key in ("answer", "error"):
            if OutputSource.parse(getattr(self, key) or "text").kind not in ("text", "json"):
                raise BadValueError("expected `text` or `json:PATH`, which are read from the HTTP reply", key)
        return self


class Chat(SpecPart):
    """An agent that polls a chat service for its messages, and sends its answers there."""

    start: Argv
    quiet_s: PositiveSeconds = 1
    """A turn ends when the agent has sent a message and then nothing for this time; real seconds."""


class Timeout(SpecPart):
    """A timer that the agent claims to have, in its own, unscaled seconds."""

    name: str
    s: PositiveSeconds
    says: RegularExpression | None = None
    inside: str | None = None

    @property
    def templates(self) -> dict[str, str]:
        """`{idle_s}` and `{idle_ms}` for a timer called `idle`; with them, a spec sets the agent's timer."""
        word = re.sub(r"[^a-z]+", "_", self.name.lower()).strip("_")
        return {f"{word}_s": f"{self.s:g}", f"{word}_ms": f"{self.s * 1000:g}"}


class Finish(SpecPart):
    """The tool call by which the agent's model ends a turn; `text` holds {answer} where the last words go."""

    tool: str
    arg: str
    text: Annotated[str, AfterValidator(_holds_answer)] = "{answer}"


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

    @property
    def stated(self) -> dict[str, StatedLimit]:
        """Those that the agent states itself, by name."""
        return {name: limit for name, limit in self if isinstance(limit, StatedLimit)}


class AgentSpec(SpecPart):
    """All keys of a spec. Seconds are real seconds, except under `timeouts`."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]*$")]
    wire: Wire
    command: Argv | None = None
    callable: Annotated[str, AfterValidator(_function)] | None = None
    http: Http | None = None
    chat: Chat | None = None
    lines: LinesAgent | None = None
    acp: AcpAgent | None = None
    tui: TuiAgent | None = None
    resume: Argv | None = None
    wake_up: Argv | None = None
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
    limits: Limits = Limits()
    level: Level = "safe"
    start_s: PositiveSeconds = 60
    recover_s: SecondsOrNone = 30
    finish: Finish | None = None
    price_as: str = "claude-sonnet-4-6"
    known: dict[str, str] = {}
    hosts: dict[Annotated[str, Field(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)*$")], HostLink] = {}
    """Hard-coded https hosts and the link behind each; the agent then runs in a private network with only these."""
    tools: Literal["http", "stdio"] | None = None
    simulate: Annotated[str, AfterValidator(_function)] | None = None
    """An async function that does what the program does, on a running event loop; it gets the program's arguments."""
    runtime: Runtime | None = None
    fixes: dict[str, str] = {}
    fixed: tuple[str, ...] = ()
    suffix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._@+-]*$")] = ""

    _path: Path = PrivateAttr(default_factory=lambda: Path("agent.yaml").absolute())
    _chosen: tuple[str, ...] = PrivateAttr(default=())
    _family: str = PrivateAttr(default="")
    _version: str = PrivateAttr(default="")

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        for place, message in _contradictions(self):
            raise BadValueError(message, *place)
        return self

    @property
    def path(self) -> Path:
        """The spec's file."""
        return self._path

    @property
    def here(self) -> Path:
        """The folder of the spec's file."""
        return self._path.parent

    @property
    def kind(self) -> AgentKind:
        """Which kind of agent it is."""
        return next(kind for kind in AGENT_KINDS if getattr(self, kind) is not None)

    def at_level(self, level: Level | None) -> "AgentSpec":
        """The same agent, judged at this level; unchanged if it is None."""
        return self if level is None else self.model_copy(update={"level": level})

    @property
    def chosen(self) -> tuple[str, ...]:
        """The fixes of this variant of a specimen."""
        return self._chosen

    @property
    def family(self) -> str:
        """The name in the file, shared by a specimen's variants."""
        return self._family or self.name

    @property
    def version(self) -> str:
        """The version of a known runtime; empty for other agents."""
        return self._version or (self.runtime.version if self.runtime else "")

    @property
    def install(self) -> Path | None:
        """The folder in which this version of a known runtime is, or would be, installed."""
        return place_of(self.installed_as, self.version) if self.runtime else None

    @property
    def installed_as(self) -> str:
        """The name under which a known runtime is installed: its own, or that of the runtime in `same_as`."""
        return (self.runtime.same_as if self.runtime else None) or self.family

    @property
    def error_at_path(self) -> bool:
        """Whether any text at the place that `error` names counts as an error."""
        place = (self.http.error or "text") if self.http else self.lines.error if self.lines else self.error
        return OutputSource.parse(place).kind in ("json", "jsonl", "joined")

    @property
    def wakes_up(self) -> bool:
        """Whether it says how to make its own timer fire."""
        return bool(self.http.wake_up if self.http else self.wake_up)

    @property
    def uses_store(self) -> bool:
        """Whether it uses `{store_url}`."""
        return "store_url" in self._template_names

    @property
    def settable(self) -> frozenset[str]:
        """The timers that the spec sets by a template, `{NAME_s}` or `{NAME_ms}`."""
        return frozenset(timer.name for timer in self.timeouts if self._template_names & timer.templates.keys())

    @property
    def scales_time(self) -> bool:
        """Whether it uses `{time_scale}`; its timers are then expected to fire that much earlier."""
        return "time_scale" in self._template_names

    @property
    def _template_names(self) -> set[str]:
        return {name for _, name in _templates(self)}


def load_spec(path: Path) -> AgentSpec:
    """Read and check the spec at `path`. Errors: BadFileError, one line with file, line and what was expected."""
    spec = document.load(path).into(AgentSpec)
    spec._path = path.absolute()
    return spec


def variants(spec: AgentSpec) -> list[AgentSpec]:
    """The agents of `spec`: itself; of a specimen `buggy`, `fixed` (the default set), and `only-FIX`, `without-FIX`."""
    if not spec.fixes or spec._family:
        return [spec]
    rows = {"buggy": (), "fixed": spec.fixed}
    rows |= {f"only-{fix}": (fix,) for fix in spec.fixes}
    rows |= {f"without-{fix}": tuple(other for other in spec.fixed if other != fix) for fix in spec.fixed}
    return [_variant(spec, f"{name}{spec.suffix}", chosen) for name, chosen in rows.items()]


def at_version(spec: AgentSpec, version: str) -> AgentSpec:
    """A known runtime at `version` (`codex@0.169.0`); unchanged if that is empty. Errors: BadValueError."""
    return _variant(spec, f"{spec.family}@{as_version(version)}", (), version) if version else spec


def renamed(spec: AgentSpec, name: str) -> AgentSpec:
    """The same agent under another name, with the same version and fixes."""
    return _variant(spec, name, spec.chosen, spec._version)


def _variant(spec: AgentSpec, name: str, chosen: tuple[str, ...], version: str = "") -> AgentSpec:
    variant = spec.model_copy(update={"name": name})
    variant._chosen, variant._family, variant._version = chosen, spec.family, version
    return variant


# Checks across several keys: each yields the key's path and the message.

_Problem = tuple[tuple[str | int, ...], str]
_WITH_MESSAGE = ("command", "resume", "wake_up", "http", "lines")
"""The keys in which `{message}` has a value."""
_BEFORE_A_MESSAGE = {("http", "start"), *(("lines", key) for key in LinesAgent.model_fields if key != "send")}
"""Where it has none all the same."""


def _contradictions(spec: AgentSpec) -> Iterator[_Problem]:
    ways = [way for way in AGENT_KINDS if getattr(spec, way) is not None]
    if len(ways) != 1:
        found = " and ".join(ways) or "none"
        yield (
            tuple(ways[1:2]),
            f"expected exactly one of {', '.join(AGENT_KINDS[:-1])} and {AGENT_KINDS[-1]}, found {found}",
        )
    yield from _misplaced(spec)
    yield from _timeouts(spec)
    yield from _fixes(spec)
    yield from _tool_host(spec)
    yield from _hosts(spec)
    yield from _bad_templates(spec)


def _misplaced(spec: AgentSpec) -> Iterator[_Problem]:
    """Keys that have no meaning for this kind of agent."""
    given = spec.model_fields_set
    for applies, keys, reason in (
        (spec.http, ("abort", "answer", "error", "wake_up"), "for a service, '{}' goes inside 'http'"),
        (spec.chat, ("abort", "answer", "error"), "a chat agent's messages are its answer; '{}' goes with 'command'"),
        (spec.lines, ("abort", "answer", "error", "resume"), "for an agent that takes lines, '{}' goes inside 'lines'"),
        (spec.acp, ("abort", "answer", "error"), "the Agent Client Protocol says what it is; '{}' goes with 'command'"),
        (spec.tui, ("abort", "resume"), "for an agent with a screen, '{}' goes inside 'tui'"),
        (spec.tui, ("answer", "error"), "its screen is what its user sees; '{}' goes with 'command'"),
        (not (spec.command or spec.lines or spec.tui), ("resume",), "'{}' goes with 'command'"),
        (not spec.command, ("wake_up",), "'{}' goes with 'command'"),
        (
            not spec.command and not (spec.http and spec.http.start),
            ("simulate",),
            "'{}' goes with 'command' and with http: 'start'",
        ),
        (spec.callable, ("answer",), "a callable's answer is its return value; '{}' goes with 'command'"),
    ):
        for key in keys if applies else ():
            if key in given:
                yield (key,), reason.format(key)
    for key in ("answer", "error"):
        if OutputSource.parse(getattr(spec, key)).kind in ("text", "joined"):
            yield (key,), "expected stdout, stderr, json:PATH, jsonl:PATH or file:PATH (text is for http)"


def _timeouts(spec: AgentSpec) -> Iterator[_Problem]:
    names = {timeout.name for timeout in spec.timeouts}
    for index, timeout in enumerate(spec.timeouts):
        if timeout.inside is not None and timeout.inside not in names - {timeout.name}:
            yield ("timeouts", index, "inside"), f"'{timeout.inside}' is not another timeout of this spec"


def _fixes(spec: AgentSpec) -> Iterator[_Problem]:
    if bool(spec.fixes) != bool(spec.fixed):
        yield ("fixed" if spec.fixed else "fixes",), "'fixes' (all switches) and 'fixed' (the default set) go together"
    for index, fix in enumerate(spec.fixed):
        if fix not in spec.fixes:
            yield ("fixed", index), f"'{fix}' is not among the fixes: {', '.join(spec.fixes)}"
    for fix in spec.fixes:
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", fix):
            yield ("fixes", fix), f"a fix is one word, found {fix!r}"
    if spec.fixes and "fixes" not in spec._template_names:
        yield ("fixes",), "no key contains {fixes}, so the switches have no effect"


_TOOL_TEMPLATES = {"http": "tool_url", "stdio": "tool_command"}
"""The template that carries the tool host's address, for each value of `tools`."""


def _tool_host(spec: AgentSpec) -> Iterator[_Problem]:
    """The template for `tools` must be used; the other one has no value."""
    used = {name: place for place, name in _templates(spec)}
    for way, template in _TOOL_TEMPLATES.items():
        if spec.tools == way and template not in used and not spec.acp:  # an ACP agent gets it with its session
            yield ("tools",), f"no key contains {{{template}}}, so the agent cannot find the tool host"
        elif spec.tools != way and template in used:
            yield used[template], f"{{{template}}} has a value only with `tools: {way}`"


def _hosts(spec: AgentSpec) -> Iterator[_Problem]:
    """What does not work in a private network."""
    if not spec.hosts:
        return
    for host, link in spec.hosts.items():
        if link == "chat" and not spec.chat:
            yield ("hosts", host), "only agents with `chat: {start: …}` have a chat service"
    if spec.http:
        yield ("hosts",), "an agent with `hosts` runs in a private network, where its `http` port cannot be reached"
    if spec.tools == "stdio" or "pipe" in spec._template_names:
        key = "tools" if spec.tools == "stdio" else "hosts"
        yield (key,), "a pipe does not cross into the private network of an agent with `hosts`; tools: http does"


def _templates(spec: AgentSpec) -> Iterator[tuple[tuple[str | int, ...], str]]:
    asked = {"command", "resume", "wake_up", "callable", "http", "chat", "env", "files", "workdir", "answer"}
    asked |= {"session_files", "session_file", "lines", "acp", "tui"}
    return written_in(spec.model_dump(include=asked | {"error"}, exclude_none=True))


def _bad_templates(spec: AgentSpec) -> Iterator[_Problem]:
    timers = {name for timer in spec.timeouts for name in timer.templates}
    for place, name in _templates(spec):
        if name in timers:
            continue
        if name not in NAMES:
            yield place, str(UnknownTemplateError(name))
        elif name == "message" and (place[0] not in _WITH_MESSAGE or place[:2] in _BEFORE_A_MESSAGE):
            yield place, "{message} has no value here, only in command, resume, wake_up, http requests and lines: send"
        elif name == "port" and not (spec.http and spec.http.start):
            yield place, "{port} is only for a service that we start (http: {start: …})"
    if spec.workdir is not None and set(names_in(spec.workdir)) - {"here"}:
        yield ("workdir",), "expected a path, absolute or with {here}"


def folder_of(spec: AgentSpec) -> Path | None:
    """The folder that is copied into the run's working folder."""
    return None if spec.workdir is None else spec.here / expand(spec.workdir, {"here": str(spec.here)})
