"""The agent spec: how to run an agent. One YAML file, the same for every scenario.

    spec = load_spec(Path("my-agent.yaml"))
    for agent in variants(spec):                  # one agent, or the variants of a specimen
        async with open_agent(agent, context) as session: ...

A spec does not say what should happen under a fault.
"""

from pathlib import Path
from typing import Self

from pydantic import PrivateAttr, model_validator

from wedgehog.harness.agents.output_source import OutputSource
from wedgehog.harness.agents.runtime_install import as_version, install_folder
from wedgehog.harness.agents.spec_checks import contradictions, lost_message, template_names
from wedgehog.harness.agents.spec_keys import AGENT_KINDS, AgentKeys, AgentKind
from wedgehog.harness.agents.templates import expand, written_in
from wedgehog.harness.record.verdict import Level
from wedgehog.harness.scenario import document
from wedgehog.harness.scenario.document import BadFileError
from wedgehog.harness.scenario.mistake import BadValuesError, Mistake
from wedgehog.harness.scenario.readable import found_in


def _names_a_user(place: tuple[str | int, ...]) -> bool:
    """Whether the key at this place of a spec names a user, and no session."""
    key = next((part.lower() for part in reversed(place) if isinstance(part, str)), "")
    return "user" in key and not any(word in key for word in ("session", "conversation", "thread", "chat"))


class AgentSpec(AgentKeys):
    """An agent spec. Seconds are real seconds, except under `timeouts`."""

    _path: Path = PrivateAttr(default_factory=lambda: Path("agent.yaml").absolute())
    _chosen: tuple[str, ...] = PrivateAttr(default=())
    _family: str = PrivateAttr(default="")
    _version: str = PrivateAttr(default="")

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        if found := list(contradictions(self)):
            raise BadValuesError(found)
        return self

    @property
    def says_it_resumes(self) -> bool:
        """Whether its user names the session with each message, or has a command of its own for the next one.

        A `user_id` names a user: some services only count by it, and remember nothing. A service that takes a list of
        messages gets what was said before from its client.
        """
        named = any(
            name == "session" and not _names_a_user(place)
            for place, name in written_in([self.command, self._sent_over_http])
        )
        own_command = self.resume is not None and self.resume != self.command
        return (named and not self._sends_a_list) or self.acp is not None or own_command

    @property
    def _sends_a_list(self) -> bool:
        body = None if self.http is None else self.http.body
        return any(name == "message" and any(isinstance(it, int) for it in place) for place, name in written_in(body))

    @property
    def _sent_over_http(self) -> object:
        return None if self.http is None else [self.http.url, self.http.headers, self.http.body]

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
        return install_folder(self.installed_as, self.version) if self.runtime else None

    @property
    def installed_as(self) -> str:
        """The name under which a known runtime is installed: its own, or that of the runtime in `same_as`."""
        return (self.runtime.same_as if self.runtime else None) or self.family

    @property
    def error_at_path(self) -> bool:
        """Whether any text at the place that `error` names counts as an error; so does an alert of a page."""
        if self.page is not None:
            return True
        place = (self.http.error or "text") if self.http else self.lines.error if self.lines else self.error
        return OutputSource.parse(place).kind in ("json", "jsonl", "joined")

    @property
    def wakes_up(self) -> bool:
        """Whether it says how to make its own timer fire."""
        return bool(self.http.wake_up if self.http else self.wake_up)

    @property
    def uses_store(self) -> bool:
        """Whether it uses `{store_url}`."""
        return "store_url" in template_names(self)

    @property
    def settable(self) -> frozenset[str]:
        """The timers that the spec sets by a template, `{NAME_s}` or `{NAME_ms}`."""
        return frozenset(timer.name for timer in self.timeouts if template_names(self) & timer.templates.keys())

    @property
    def scales_time(self) -> bool:
        """Whether it uses `{time_scale}`; its timers are then expected to fire that much earlier."""
        return "time_scale" in template_names(self)


PROGRAMS = (".py", ".js", ".ts", ".mjs", ".sh", ".go")
"""Endings of files that a newcomer names instead of a spec."""


def load_spec(path: Path) -> AgentSpec:
    """Read and check the spec at `path`. Errors: BadFileError, a line for each mistake: file, line, expectation."""
    if path.suffix in PROGRAMS and path.is_file():
        raise BadFileError(path, None, "this is a program; `wedgehog init` writes a spec for it")
    found = document.load(path)
    if isinstance(found.data, dict) and "turns" in found.data:
        raise BadFileError(path, None, "this is a scenario: name it without --agent")
    spec, mistakes = found.checked(AgentSpec)
    if spec is None:
        mistakes += _between_keys(found)
    if spec is None or mistakes:
        raise found.errors(mistakes)
    spec._path = path.absolute()
    return spec


def _between_keys(found: document.Document) -> list[Mistake]:
    """What does not fit together beside mistakes of single values."""
    _, wrong = found.checked(AgentKeys)
    keys = found.readable(AgentKeys, wrong, {"name": "unnamed", "wire": "openai-chat"})
    if keys is None:
        return []
    problems = [*contradictions(keys)]
    said = {place[0] for place, _ in problems if place}  # a key with another mistake may mean {message} there
    problems += [(place, says) for place, says in found_in(keys, [lost_message]) if place[0] not in said]
    return [Mistake(place, says) for place, says in problems]


def variants(spec: AgentSpec) -> list[AgentSpec]:
    """The agents of `spec`: itself; of a specimen `buggy`, `fixed` (the default set), and `only-FIX`, `without-FIX`."""
    if not spec.fixes or spec._family:
        return [spec]
    rows = {"buggy": (), "fixed": spec.fixed}
    rows |= {f"only-{fix}": (fix,) for fix in spec.fixes}
    rows |= {f"without-{fix}": tuple(other for other in spec.fixed if other != fix) for fix in spec.fixed}
    return [_variant(_with_timers(spec, chosen), f"{name}{spec.suffix}", chosen) for name, chosen in rows.items()]


def _with_timers(spec: AgentSpec, chosen: tuple[str, ...]) -> AgentSpec:
    """The specimen with only the timers that it has with the chosen fixes."""
    kept = {it.name: it for it in spec.timeouts if not it.fixes or set(it.fixes) & set(chosen)}
    return spec.model_copy(update={"timeouts": tuple(kept.values())})


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


def folder_of(spec: AgentSpec) -> Path | None:
    """The folder that is copied into the run's working folder."""
    return None if spec.workdir is None else spec.here / expand(spec.workdir, {"here": str(spec.here)})
