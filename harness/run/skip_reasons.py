"""Why a scenario does not apply to an agent."""

from wedgehog.fake_llm.script.calls_in_text import CallsInText
from wedgehog.fake_llm.script.file_tools import EDIT_FILE, FILE_ROLES, READ_FILE, VIEW_PICTURE, WRITE_FILE, is_picture
from wedgehog.fake_llm.script.message_tool import SEND_MESSAGE
from wedgehog.fake_llm.script.roles import (
    ASK_USER,
    FETCH,
    SHELL,
    SUBAGENT_MESSAGE,
    SUBAGENT_RESULT,
    SUBAGENT_STOP,
    SUBAGENT_TOOL,
    names_message,
    names_stop,
)
from wedgehog.harness.agents.sessions import one_session_reason
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.spec_checks import template_names
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.process_fault import ProcessFault
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.model_reasons import Reasons, of_forms, of_wire
from wedgehog.harness.run.own_tool_calls import any_tool_would_do
from wedgehog.harness.run.playable_part import goes_on
from wedgehog.harness.run.tool_turn import CONTROL_TOOL
from wedgehog.harness.sandbox.disk import disk_unavailable_reason
from wedgehog.harness.sandbox.hosts.private_hosts import hosts_unavailable_reason
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.trigger import BACKEND, HOST, PIPE

MINUTES = "minutes"
"""The tag of a scenario whose replies alone take minutes; in virtual time they cost nothing."""


HEALTHY = "healthy"
"""The tag of a scenario in which nothing fails, and that asks for no more than the control run."""


def _has(control: ControlFacts, name: str) -> bool:
    roles = {
        SHELL: control.shell,
        SUBAGENT_TOOL: control.delegates,
        SUBAGENT_RESULT: True,  # the model asks only where a tool for that is offered
        SUBAGENT_STOP: any(map(names_stop, control.tools)),
        SUBAGENT_MESSAGE: any(map(names_message, control.tools)),
        FETCH: control.fetches,
        ASK_USER: control.questions,
        SEND_MESSAGE: control.writes,
        **{role: role in control.file_tools for role in FILE_ROLES},
    }
    return roles[name] if name in roles else any(tool.endswith(name) for tool in control.tools)


def _calls_for(scenario: Scenario, control: ControlFacts, name: str) -> bool:
    """Whether the agent has a tool for what the scenario calls by this name."""
    return _has(control, name) or (name == READ_FILE and _reads(scenario, control))


def _reads(scenario: Scenario, control: ControlFacts) -> bool:
    """Whether an agent without a tool that reads files has one for these: for pictures, or its shell before an edit."""
    read = [it for it in scenario.file_actions if it.role == READ_FILE]
    changed = any(it.role in (WRITE_FILE, EDIT_FILE) for it in scenario.file_actions)
    viewed = VIEW_PICTURE in control.file_tools and all(is_picture(it.path) for it in read)
    return viewed or (changed and control.shell)


def _host_links(scenario: Scenario) -> set[str]:
    """The links whose hosts a fault needs."""
    return {words.link for words in scenario.faults if "hosts" in words.needs}


def _of_tool_host(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> Reasons:
    """Our own tools, and servers behind a link."""
    faulty = {words.link for words in scenario.faults if isinstance(words.fault, WireFault)}
    absent = sorted(it for it in faulty if it.startswith(BACKEND) and it.removeprefix(BACKEND) not in spec.links)
    over_http = HOST in faulty or "http_tools" in scenario.needs
    return {
        "the spec does not say how the agent finds our tool host (tools)": bool(scenario.tools) and spec.tools is None,
        _did_not_offer(control): bool(scenario.tools) and not _has(control, CONTROL_TOOL),
        "the fault fires on MCP over HTTP, and the agent uses stdio": over_http and spec.tools != "http",
        "the fault fires on MCP over stdio, and the agent uses HTTP": PIPE in faulty and spec.tools != "stdio",
        f"the spec has no link {', '.join(absent)} (links)": bool(absent),
        "the spec does not say how the agent finds our database ({store_url})": (
            scenario.store is not None and not spec.uses_store
        ),
    }


def _did_not_offer(control: ControlFacts) -> str:
    """An agent gives a tool server some seconds, and goes on without it."""
    says = f"the agent did not offer our tool host's tools to the model in its control run{_only_at_times(control)}"
    return f"{says}, {control.waited}" if control.waited else says


def _only_at_times(control: ControlFacts) -> str:
    """Tells of tools that come only with some messages: a scenario's messages may not bring them."""
    return f" for its first message, and {', '.join(sorted(control.at_times))} only later" if control.at_times else ""


def _as_objects(spec: AgentSpec, control: ControlFacts) -> str:
    """The agent's wire if it can't carry broken arguments, else empty (Gemini has a finish reason for them)."""
    if spec.wire == "anthropic":
        return "" if control.streams else "anthropic without streaming"
    return spec.wire if spec.wire == "ollama" else ""


def _can_answer(scenario: Scenario, control: ControlFacts) -> bool:
    """Whether the agent's requests for permission offer each answer that the scenario's user gives."""
    wanted = {turn.permission for turn in scenario.turns}
    denies = not wanted & {"deny", "deny_once"} or bool(control.asks & {"reject_once", "reject_always"})
    return denies and ("allow_always" not in wanted or "allow_always" in control.asks)


def _ends_before(scenario: Scenario, spec: AgentSpec) -> bool:
    """Whether a scenario whose replies take minutes allows a turn more time than the agent promises to need."""
    allowed = (scenario.invariants.get("turn_deadline") or {}).get("turn_s")
    promised = spec.limits.turn_s
    return MINUTES in scenario.tags and None not in (allowed, promised) and float(promised or 0) < float(allowed or 0)


def _runs_alone(spec: AgentSpec) -> bool:
    """Whether nothing can come from a user while a turn runs."""
    return spec.kind == "command" and spec.stdin == "none"


def why_not_here(spec: AgentSpec) -> str:
    """Why this agent cannot be run on this system; empty if it can."""
    return (hosts_unavailable_reason() if spec.hosts else None) or ""


def why_skipped(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> str:
    """Why a scenario does not apply to this agent; empty if it does. The first reason counts."""
    if "disk" in scenario.needs and (why := disk_unavailable_reason()):
        return why
    for subject in _SUBJECTS:
        for reason, applies in subject(scenario, spec, control).items():
            if applies:
                return reason
    return ""


def _of_tools(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> Reasons:
    """Tools that the agent does not offer, or whose calls its model writes in its text."""
    needs, in_text = scenario.needs, bool(spec.calls_in_text)
    called = scenario.tools_called - scenario.tools.keys()
    missing = sorted(name for name in called if not _calls_for(scenario, control, name))
    would_do = missing == [SHELL] and spec.own_tool is None and bool(control.tools) and any_tool_would_do(scenario)
    hint = "; one of its own would do (own_tool)" if would_do else ""
    return {
        f"the agent advertises no tool {', '.join(missing)}{hint}{_only_at_times(control)}": bool(missing),
        "the model writes its tool calls in text, and the fault changes tool calls of the wire (calls_in_text)": (
            in_text and ("calls" in needs or scenario.breaks_arguments)
        ),
        "the model writes its tool calls in text, one in a reply (calls_in_text)": (
            in_text and scenario.calls_at_once > 1
        ),
        "the model writes its tool calls in text, and a reply shows an example of one (calls_in_text)": any(
            map(CallsInText(spec.calls_in_text).shown_in, scenario.texts)
        ),
        "the model writes its tool calls in text, and a command has many lines (calls_in_text)": (
            in_text and any("\n" in command for command in scenario.commands)
        ),
        "the agent's tool for a subagent has no argument that puts it into the background": (
            "background_subagent" in needs and not control.delegates_in_background
        ),
    }


def _of_streams(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> Reasons:
    """How replies come to this agent."""
    objects = _as_objects(spec, control)
    return {
        "the agent does not stream, and the fault counts events": "stream" in scenario.needs and not control.streams,
        f"the tool call's arguments are no JSON object, and {objects} carries only objects": (
            scenario.breaks_arguments and bool(objects)
        ),
    }


def _of_front_end(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> Reasons:
    """What its user can do, and how the agent is started."""
    needs, runs_already = scenario.needs, spec.http is not None and spec.http.start is None
    by_webhook = spec.chat is not None and spec.chat.webhook is not None
    again = spec.chat is not None and spec.chat.delivers_again
    return {
        "the spec does not say how its own timer fires (wake_up)": "wake_up" in needs and not spec.wakes_up,
        "the agent has no front end that could give up (http, page)": (
            "front_end" in needs and spec.kind not in ("http", "page")
        ),
        "its user does not sit in front of a page (page)": "page" in needs and spec.kind != "page",
        "the spec does not say how its user begins another conversation on the page (page: new_chat)": (
            "new_chat" in needs and spec.page is not None and not spec.page.new_chat
        ),
        "the agent did not ask for permission in its control run": "permission" in needs and not control.asks,
        "the agent offers its user no such answer to a request for permission": not _can_answer(scenario, control),
        "the spec does not say how its user chooses another model (models)": "models" in needs and spec.models is None,
        "the spec names no message that stops a turn (chat: abort)": (
            "abort" in needs and spec.chat is not None and spec.chat.abort is None
        ),
        "a user may be there to answer the question of the model: only a command without a stdin runs without a user": (
            ASK_USER in scenario.tools_called and not _runs_alone(spec)
        ),
        "the spec does not say where a session lies (session_file)": bool(scenario.planted) and not spec.session_file,
        "the agent takes one call at a time (callable)": "second_message" in needs and spec.kind == "callable",
        "a stop in a chat may be meant for what waits too (chat: abort)": (
            {"abort", "second_message"} <= needs and spec.kind == "chat"
        ),
        "a message has a process of its own, and waits for the end of the one before (command)": (
            "message_at_once" in needs and spec.kind == "command"
        ),
        "the agent polls its chat, which delivers a message again only to a webhook": (
            "redelivery" in needs and spec.chat is not None and not again
        ),
        "the user of a page waits for the answer before the next message (page)": (
            "second_message" in needs and spec.kind == "page"
        ),
        "the spec sends no {message_id}, by which a service recognizes a message that is delivered again": (
            "redelivery" in needs and "message_id" not in template_names(spec) and not again
        ),
        "the agent does not get its messages from a chat service (chat)": (
            (bool({"chat", "two_events"} & needs) or SEND_MESSAGE in scenario.tools_called) and spec.kind != "chat"
        ),
        "only Slack brings a mention as two events, to an app that has subscribed to both (chat: event: both)": (
            "two_events" in needs and (spec.chat is None or spec.chat.event != "both")
        ),
        "the agent has a webhook, so it does not poll its chat": "chat_poll" in needs and by_webhook,
        "the agent has a WebSocket: a chat refuses no second one, as it does a second poll": (
            "one_poller" in needs and spec.chat is not None and spec.chat.has_socket
        ),
        "Wedgehog did not start the service, so it does not end it (http: base)": "processes" in needs and runs_already,
        "Wedgehog did not start the service, so it does not know its files (http: base)": (
            runs_already and bool(scenario.files_named)
        ),
        "the agent has no worker: no program below its own process that it reads from asks the model twice": (
            "worker" in needs and not control.worker
        ),
        "the agent has a worker, so that no process below it is known to be a subagent's": control.worker
        and any(isinstance(it.fault, ProcessFault) and it.fault.at_subagent for it in scenario.faults),
    }


def _of_control_run(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> Reasons:
    """What the agent did not do in its control run, or does in another way."""
    needs, as_words = scenario.needs, control.results_in_text
    structured = control.shape is not None and control.shape.structured
    in_json = spec.finish is not None and spec.finish.writes_json
    tools = SHELL in scenario.tools_called if control.shell else bool(scenario.tools_called)
    return {
        "no main call of the agent asked for JSON by a schema in its control run": (
            "schema" in needs and not structured and not in_json
        ),
        "the agent made no background call that asks for JSON by a schema in its control run": (
            "schema_beside" in needs and not control.plans
        ),
        "the agent has no hard-coded hosts behind that link (hosts)": bool(
            _host_links(scenario) - {*spec.hosts.values()}
        ),
        "the agent did not ask the token endpoint for an access token in its control run ({token_url})": (
            "tokens" in needs and not control.tokens
        ),
        "the agent's model calls come over HTTP, not over a WebSocket": "websocket" in needs and not control.websocket,
        "the agent makes no background calls": "background" in needs and not control.background,
        "the agent makes its background calls later in a conversation": _later_than_asked(scenario, control),
        "a command prints nothing, and the agent sends results as words, without the id of their call": (
            scenario.silent and as_words
        ),
        "a tool's result is empty, and the agent sends results as words, without the id of their call": (
            "result_ids" in needs and as_words
        ),
        control.no_tool_turn: bool(control.no_tool_turn) and tools and not _shows_it(scenario, control),
    }


def _of_sessions(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> Reasons:
    """How long a turn takes, and which turns belong together."""
    needs, one_session = scenario.needs, one_session_reason(spec)
    several_turns = len(scenario.turns) > len(scenario.sessions)
    return {
        "the spec says that a turn ends sooner than this reply does (limits: turn_s)": _ends_before(scenario, spec),
        "the agent does not continue a session": several_turns and not goes_on(scenario, spec, control),
        "all sessions of a service are one process, which a fault on processes would hit (http, page, chat)": (
            {"sessions", "processes"} <= needs and spec.kind in ("http", "page", "chat")
        ),
        f"one session: {one_session}": "sessions" in needs and one_session is not None,
    }


def _shows_it(scenario: Scenario, control: ControlFacts) -> bool:
    """Whether the scenario is the one that shows a turn with a tool that fails though nothing has gone wrong."""
    return bool(control.tool_turn_fails) and HEALTHY in scenario.tags


_SUBJECTS = (_of_tool_host, _of_tools, of_forms, _of_streams, _of_front_end, of_wire, _of_control_run, _of_sessions)


def _later_than_asked(scenario: Scenario, control: ControlFacts) -> bool:
    """Whether a fault waits for a background call in the first turn, and that turn has too few main calls for one.

    The control run shows how many main calls come before the first background call. If that call came in a later turn,
    more main calls come before it than the first turn has.
    """
    asked = any("background" in it.needs and it.at.turn == 1 for it in scenario.faults)
    after = control.background_after + (not control.background_first)
    return asked and after > len(scenario.turns[0].model)
