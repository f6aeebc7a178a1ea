"""Checks across several keys of an agent spec: each yields the key's path and the message."""

import re
from collections.abc import Iterator

from wedgehog.harness.agents.backend_links import OWN_TEMPLATES, template_of
from wedgehog.harness.agents.living_spec import LinesAgent
from wedgehog.harness.agents.output_source import OutputSource
from wedgehog.harness.agents.spec_keys import AGENT_KINDS, AgentKeys, AgentKind
from wedgehog.harness.agents.templates import NAMES, UnknownTemplateError, names_in, written_in
from wedgehog.harness.scenario.readable import found_in, is_given

_Problem = tuple[tuple[str | int, ...], str]
_WITH_MESSAGE = ("command", "resume", "wake_up", "http", "lines")
"""The keys in which `{message}` has a value."""
_WITH_MESSAGE_ID = (("http", "headers"), ("http", "body"))
_BEFORE_A_MESSAGE = {("http", "start"), *(("lines", key) for key in LinesAgent.model_fields if key != "send")}
"""Keys below these that have none."""


def contradictions(spec: AgentKeys) -> Iterator[_Problem]:
    """All that does not fit together; of a `Readable` spec, as far as it can be read."""
    ways = [way for way in AGENT_KINDS if is_given(spec, way)]
    if len(ways) != 1:
        found = " and ".join(ways) or "none"
        yield (
            tuple(ways[1:2]),
            f"expected exactly one of {', '.join(AGENT_KINDS[:-1])} and {AGENT_KINDS[-1]}, found {found}",
        )
    checks = {0: (_timeouts,), 1: (*_OF_ITS_KIND, *_CHECKS)}
    yield from found_in(spec, checks.get(len(ways), _CHECKS))


_OTHERS = {kind: tuple(other for other in AGENT_KINDS if other != kind) for kind in AGENT_KINDS}
"""The kinds of agents beside each."""
_NO_MEANING: tuple[tuple[tuple[AgentKind, ...], tuple[str, ...], str], ...] = (
    (("http",), ("abort", "answer", "error", "wake_up"), "for a service, '{}' goes inside 'http'"),
    (("page",), ("abort", "answer", "error"), "for an agent with a page, '{}' goes inside 'page'"),
    (("chat",), ("answer", "error"), "a chat agent's messages are its answer; '{}' goes with 'command'"),
    (("chat",), ("abort",), "for an agent in a chat, '{}' goes inside 'chat'"),
    (
        ("lines",),
        ("abort", "answer", "error", "resume"),
        "for an agent that takes lines, '{}' goes inside 'lines'",
    ),
    (("acp",), ("abort", "answer", "error"), "the Agent Client Protocol says what it is; '{}' goes with 'command'"),
    (("tui",), ("abort", "resume"), "for an agent with a screen, '{}' goes inside 'tui'"),
    (("tui",), ("answer", "error"), "its screen is what its user sees; '{}' goes with 'command'"),
    (("callable",), ("answer",), "a callable's answer is its return value; '{}' goes with 'command'"),
    (("callable", "http", "page", "chat", "acp"), ("resume",), "'{}' goes with 'command'"),
    (_OTHERS["command"], ("stdin",), "'{}' goes with 'command'"),
    (("callable", "page", "chat", "lines", "acp", "tui"), ("wake_up",), "'{}' goes with 'command'"),
    (
        _OTHERS["callable"],
        ("python",),
        "'{}' goes with 'callable'; elsewhere the command line begins with its Python",
    ),
)
"""Which keys have no meaning for which kinds of agents, and where they go."""


def _misplaced(spec: AgentKeys) -> Iterator[_Problem]:
    """Keys that have no meaning for this kind of agent."""
    given = spec.model_fields_set
    kind = next(way for way in AGENT_KINDS if is_given(spec, way))
    for kinds, keys, reason in _NO_MEANING:
        for key in keys if kind in kinds else ():
            if key in given:
                yield (key,), reason.format(key)


def _simulated(spec: AgentKeys) -> Iterator[_Problem]:
    """Only a program that we start has a function that does the same."""
    if "simulate" in spec.model_fields_set and not is_given(spec, "command") and not (spec.http and spec.http.start):
        yield ("simulate",), "'simulate' goes with 'command' and with http: 'start'"


def _answers(spec: AgentKeys) -> Iterator[_Problem]:
    """Text is what a service replies; other agents write it somewhere."""
    for key in ("answer", "error"):
        if OutputSource.parse(getattr(spec, key)).kind in ("text", "joined"):
            yield (key,), "expected stdout, stderr, json:PATH, jsonl:PATH or file:PATH (text is for http)"


def _timeouts(spec: AgentKeys) -> Iterator[_Problem]:
    names = {timeout.name for timeout in spec.timeouts}
    for index, timeout in enumerate(spec.timeouts):
        if timeout.inside is not None and timeout.inside not in names - {timeout.name}:
            yield ("timeouts", index, "inside"), f"'{timeout.inside}' is not another timeout of this spec"
        for fix in timeout.fixes:
            if fix not in spec.fixes:
                yield ("timeouts", index, "fixes"), f"'{fix}' is not among the fixes: {', '.join(spec.fixes)}"


def _fixes(spec: AgentKeys) -> Iterator[_Problem]:
    if bool(spec.fixes) != bool(spec.fixed):
        yield ("fixed" if spec.fixed else "fixes",), "'fixes' (all switches) and 'fixed' (the default set) go together"
    for index, fix in enumerate(spec.fixed):
        if fix not in spec.fixes:
            yield ("fixed", index), f"'{fix}' is not among the fixes: {', '.join(spec.fixes)}"
    for fix in spec.fixes:
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", fix):
            yield ("fixes", fix), f"a fix is one word, found {fix!r}"
    if spec.fixes and "fixes" not in template_names(spec):
        yield ("fixes",), "no key contains {fixes}, so the switches have no effect"


_TOOL_TEMPLATES = {"http": "tool_url", "stdio": "tool_command"}
"""The template that carries the tool host's address, for each value of `tools`."""


def _tool_host(spec: AgentKeys) -> Iterator[_Problem]:
    """The template for `tools` must be used; the other one has no value."""
    used = {name: place for place, name in _templates(spec)}
    wrong = {template: way for way, template in _TOOL_TEMPLATES.items() if way != spec.tools and template in used}
    for template, way in wrong.items():
        yield used[template], f"{{{template}}} has a value only with `tools: {way}`"
    if spec.tools is None or spec.acp or wrong:  # an ACP agent gets it with its session
        return
    template = _TOOL_TEMPLATES[spec.tools]
    if template not in used:
        yield ("tools",), f"no key contains {{{template}}}, so the agent cannot find the tool host"


def _hosts(spec: AgentKeys) -> Iterator[_Problem]:
    """What does not work in a private network."""
    if not spec.hosts:
        return
    for host, link in spec.hosts.items():
        if link == "chat" and not spec.chat:
            yield ("hosts", host), "only agents with `chat: {start: …}` have a chat service"
    if listens(spec) or spec.http:
        port = "webhook" if spec.chat else _served_by(spec)
        yield ("hosts",), f"an agent with `hosts` runs in a private network, where its `{port}` port cannot be reached"
    if spec.tools == "stdio" or "pipe" in template_names(spec):
        key = "tools" if spec.tools == "stdio" else "hosts"
        yield (key,), "a pipe does not cross into the private network of an agent with `hosts`; tools: http does"


def _links(spec: AgentKeys) -> Iterator[_Problem]:
    """What cannot be told an agent that runs already, and links that it is not told."""
    for name, link in spec.links.items():
        if spec.http and spec.http.base:
            yield ("links",), "an agent that runs already (http: base) cannot be given another address; use `start`"
        if not link.env and template_of(name) not in template_names(spec):
            says = f"no variable has its address: write `env: VARIABLE`, or use {{{template_of(name)}}} in a key"
            yield ("links", name), says
        for variable in () if isinstance(link.env, str) else link.env:
            if variable in spec.env:
                yield ("links", name, "env", variable), f"{variable} is also in the spec's `env`"


def _port(spec: AgentKeys) -> Iterator[_Problem]:
    """A service that we start is asked at a port that only we know."""
    if listens(spec) and "port" not in template_names(spec):
        yield (
            (_served_by(spec), "start"),
            "no key contains {port}: write it where the service takes its port, here or in `env`",
        )


def _templates(spec: AgentKeys) -> Iterator[tuple[tuple[str | int, ...], str]]:
    asked = {"command", "resume", "wake_up", "callable", "http", "chat", "env", "files", "workdir", "answer"}
    asked |= {"session_files", "session_file", "lines", "acp", "tui", "links", "page"}
    yield from written_in(spec.model_dump(include=asked | {"error"}, exclude_none=True))
    for key in asked:
        getattr(spec, key)  # one that holds a mistake can have more of them


def listens(spec: AgentKeys) -> bool:
    """Whether we start it as a service on `{port}`."""
    return bool((spec.http and spec.http.start) or spec.page or (spec.chat and spec.chat.webhook))


def _served_by(spec: AgentKeys) -> AgentKind:
    """The key that says how an agent that listens is started."""
    return "http" if spec.http else "page" if spec.page else "chat"


def template_names(spec: AgentKeys) -> set[str]:
    """The names of the templates that it uses."""
    return {name for _, name in _templates(spec)}


def _models(spec: AgentKeys) -> Iterator[_Problem]:
    """The chosen model must be told with each message: a variable of its environment stays as it is."""
    places = {place[0] for place, name in _templates(spec) if name == "model"}
    with_a_message = {"command", "resume", "http", "lines"}
    if spec.models is not None and not places & with_a_message:
        yield ("models",), "no message names the chosen model: write {model} in command, resume, http or lines: send"
    if spec.models is None and places:
        says = "{model} has a value only with `models: [FIRST, SECOND]`; for one model write its name here"
        yield (min(map(str, places)),), says


def _bad_templates(spec: AgentKeys) -> Iterator[_Problem]:
    known = {name for timer in spec.timeouts for name in timer.templates} | set(map(template_of, spec.links))
    for place, name in _templates(spec):
        if name in known or (place[0] == "links" and name in OWN_TEMPLATES):
            continue
        if name not in NAMES:
            yield place, str(UnknownTemplateError(name))
        elif name == "message" and (place[0] not in _WITH_MESSAGE or place[:2] in _BEFORE_A_MESSAGE):
            yield place, "{message} has no value here, only in command, resume, wake_up, http requests and lines: send"
        elif name == "message_id" and place[:2] not in _WITH_MESSAGE_ID:
            yield place, "{message_id} has a value only in http: headers and http: body"
        elif name == "port" and not listens(spec):
            yield (
                place,
                "{port} is only for a service that we start (http: {start: …}), a page, or a bot with a webhook",
            )


def _workdir(spec: AgentKeys) -> Iterator[_Problem]:
    if spec.workdir is not None and set(names_in(spec.workdir)) - {"here"}:
        yield ("workdir",), "expected a path, absolute or with {here}"


def lost_message(spec: AgentKeys) -> Iterator[_Problem]:
    """Where the first message is sent without the user's words; some kinds of agents take them by their protocol."""
    place, sent = _first_message(spec)
    if place and all(name != "message" for _, name in written_in(sent)):
        yield place, "the user's message does not reach the agent: write {message} where it takes it"


def _first_message(spec: AgentKeys) -> tuple[tuple[str | int, ...], object]:
    if spec.command:
        return ("command",), spec.command
    if spec.http:
        return ("http",), (spec.http.url, spec.http.headers, spec.http.body)
    return (("lines", "send"), spec.lines.send) if spec.lines else ((), None)


_OF_ITS_KIND = (_misplaced, _simulated, _answers)
"""Checks that need to know which kind of agent it is."""
_CHECKS = (
    _timeouts,
    _fixes,
    _tool_host,
    _hosts,
    _links,
    _port,
    _models,
    _bad_templates,
    _workdir,
)
