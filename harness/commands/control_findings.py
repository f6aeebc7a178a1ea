"""What the control run of an agent shows to the author of its spec, one line for each finding."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from wedgehog.fake_llm.script.file_tools import EDIT_FILE, WRITE_FILE
from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.fake_llm.script.roles import SHELL
from wedgehog.harness.agents.known_runtimes import known
from wedgehog.harness.agents.own_tool import OwnTool
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.templates import written_in
from wedgehog.harness.commands.check_hints import question, unended
from wedgehog.harness.commands.console import CheckFinding
from wedgehog.harness.commands.other_kind import other_kind
from wedgehog.harness.commands.unended_lines import lines_hint
from wedgehog.harness.record.error_words import plain
from wedgehog.harness.record.events.run import HostRefused
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.views import Call, ToolUse, Turn
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.control_failure import ASKS_FOR_ITS_URL
from wedgehog.harness.run.tool_turn import CONTROL_TOOL, RESULT_MARKS


def findings(agent: AgentSpec, facts: ControlFacts, history: History) -> Iterator[CheckFinding]:
    """Yield the findings of a control run, one line each, for the author of the spec."""
    if not facts.passed:
        yield CheckFinding(False, _failed(agent, facts, history))
        yield from _refused_hosts(history, facts.says)
        yield from _lost_words(agent, history)
        return
    call = _answering(history.turns[0])
    stream = "streamed" if call.arrived.stream else "not streamed"
    yield CheckFinding(True, f"a message was answered: {call.arrived.wire}, {stream}, model {call.arrived.model!r}")
    yield CheckFinding(True, f"its first request came {facts.start_up_s:.1f} s after the message", optional=True)
    yield from unended(agent, history)
    if len(history.turns) < 2:  # the first turn did not end
        return
    yield from list(_lost_words(agent, history)) or [*_finish(agent, facts, history), *_later(agent, facts, history)]
    yield from _calls_in_text(agent, history)
    background = [call for turn in history.turns for call in turn.calls if not call.main]
    if background or facts.background:
        yield CheckFinding(True, "it makes background calls; they are answered and counted separately")
    if facts.worker:
        yield CheckFinding(True, "it runs another program that asks the model: the scenarios of the tag worker apply")
    if facts.file_tools:
        yield CheckFinding(True, _of_files(facts.file_tools))
    yield from _refused_hosts(history)
    for refusal in sorted(facts.refusals):
        yield CheckFinding(False, f"the provider refused a request without any fault: {refusal}", optional=True)


def _of_files(roles: frozenset[str]) -> str:
    """What it can do with files; a tool of an unusual shape is not known for what it does."""
    missing = " or ".join(role for role in (WRITE_FILE, EDIT_FILE) if role not in roles)
    but = f", but not those that call {missing}: no tool was taken for that" if missing else ""
    does = ", ".join(sorted(roles))
    return f"it has tools of its own for files ({does}): the scenarios of the tag files apply{but}"


def _failed(agent: AgentSpec, facts: ControlFacts, history: History) -> str:
    """Return why the first message was not answered; for a known runtime, suggest to install it again."""
    if agent.installed_as not in known() or not agent.runtime or history.calls:
        if kind := other_kind(agent, history):
            return f"no request for the model arrived: {kind}"
        if not history.calls and ASKS_FOR_ITS_URL in facts.says and question(agent):
            return f"{facts.says} If it does: {question(agent)}"
        late = next((turn for turn in history.turns if turn.deadline is not None), None)
        hint = lines_hint(agent, late) if late else ""
        return f"{facts.says.rstrip('.')}: {hint}" if hint else facts.says
    says = facts.says.removeprefix(f"{agent.path}: ").rstrip(".")
    again = f"wedgehog agents install {agent.installed_as}@{agent.version} --again"
    return f"{says}. If its installation is broken: {again}"


def _answering(turn: Turn) -> Call:
    """Return the call whose reply became the answer, by the nonce at the end of each reply."""
    paid = [call for call in turn.calls if call.paid]
    answer = plain(turn.end.answer) if turn.end else ""
    return next((call for call in paid if (nonce := _last_word(call)) and nonce in answer), paid[0])


ENDS_A_TURN = re.compile(r"final|finish|submit|answer|respon[ds]|complete|done|attempt_completion", re.IGNORECASE)
"""Names of tools by which models end a turn."""


def _finish(agent: AgentSpec, facts: ControlFacts, history: History) -> Iterator[CheckFinding]:
    """Yield mistakes in how the model's answer is sent: as text, or by the tool in `finish`."""
    offered = ", ".join(sorted(facts.tools)) or "none"
    if agent.finish is not None:
        tool = agent.finish.tool
        if tool and not (facts.shell if tool == SHELL else any(name.endswith(tool) for name in facts.tools)):
            yield CheckFinding(False, f"finish: the agent advertises no tool {tool} (tools: {offered})")
        return
    texts = [call for call in history.turns[0].calls if call.final and _is_main(call, facts)]
    if len(texts) > 1:
        yield CheckFinding(False, _many_texts(len(texts), facts, offered), optional=_ends_a_turn(facts) is None)


def _is_main(call: Call, facts: ControlFacts) -> bool:
    """Whether a call of the control run looks like its main calls; a call beside them has other tools."""
    return facts.shape is not None and bool(facts.tools) and facts.shape.alike(MainShape(frozenset(call.arrived.tools)))


def _many_texts(count: int, facts: ControlFacts, offered: str) -> str:
    tool = _ends_a_turn(facts)
    given = facts.schemas.get(tool, {}).get("properties", {}) if tool else {"answer": {}}
    arg = "".join(f", arg: {name}" for name in [*given][:1])
    finish = f"finish: {{tool: {tool or 'final_answer'}{arg}}}"
    says = f"a text answer took {count} main calls, and each got the whole answer as text (tools: {offered})"
    return f"{says}: if the agent's model answers by a tool call, write `{finish}`"


def _ends_a_turn(facts: ControlFacts) -> str | None:
    return next((name for name in sorted(facts.tools) if ENDS_A_TURN.search(name)), None)


def _last_word(call: Call) -> str:
    return plain("".join((call.ended.text_delivered if call.ended else "").split()[-1:]))


def _how_to_continue(agent: AgentSpec) -> str:
    if agent.resume is not None:
        return "; is `resume:` right?"
    if agent.says_it_resumes and agent.kind in ("command", "http"):
        return "; the spec names a session ({session}), so its user expects that: leave it out if the agent keeps none"
    if agent.kind == "command":
        return "; if it can continue one, write `resume:`, its command line for later messages"
    return "; does each message name its session ({session})?" if agent.kind == "http" else ""


def _tools(agent: AgentSpec, facts: ControlFacts, history: History) -> Iterator[CheckFinding]:
    names = ", ".join(sorted(facts.tools)) or "none"
    if not facts.shell and facts.at_times:
        at_times = ", ".join(sorted(facts.at_times))
        says = f"its requests offer {at_times} only for some messages (tools for the first one: {names}): scenarios"
        yield CheckFinding(False, f"{says} with tools need them for every message, and are skipped", optional=True)
        return
    if not facts.shell:
        hosted = CONTROL_TOOL in facts.working_tools
        if hosted:
            yield CheckFinding(True, f"a tool of our host was called and its result sent back (tools: {names})")
        if agent.own_tool is not None:
            yield _own_tool(agent.own_tool, facts, history, names)
            return
        without = "a shell" if hosted else "tools"
        says = (
            f"no tool that takes a shell command is advertised (tools: {names}): scenarios with {without} are skipped"
        )
        known = f"{_A_SHELL}. {_own_tool_hint(facts)}" if facts.tools else CALLS_IN_TEXT
        yield CheckFinding(False, f"{says}. {known}", optional=True)
        return
    if agent.own_tool is not None:
        says = "own_tool has no effect, because the agent has a shell: leave the key out"
        yield CheckFinding(False, says, optional=True)
    uses = [use for use in history.tool_uses if use.turn > 1]
    well = any(use.done and use.results for use in uses)
    yield CheckFinding(well, _shell_words(uses, f"(tools: {names})"))


def _own_tool(own: OwnTool, facts: ControlFacts, history: History, names: str) -> CheckFinding:
    """Describe how far a call of the tool in `own_tool` got: only a request can show it."""
    if own.name not in facts.tools:
        return CheckFinding(False, f"own_tool: the agent advertises no tool {own.name} (tools: {names})")
    uses = [use for use in history.tool_uses if use.turn > 1 and use.offered.name == own.name]
    carried = [it for use in uses for it in use.carried]
    if not carried:
        says = f"own_tool: {own.name} was called, and no request carried its result by the id of the call"
        return CheckFinding(False, f"{says}: scenarios with tools are skipped")
    if all(it.is_error for it in carried):
        return CheckFinding(False, f"own_tool: the result of {own.name} is marked as an error: are its `args` right?")
    says = f"{own.name} was called and its result sent back: scenarios that need only a tool call use it"
    return CheckFinding(True, f"{says} (tools: {names})")


def _calls_in_text(agent: AgentSpec, history: History) -> Iterator[CheckFinding]:
    """Yield the mistake of a key for calls in text where the requests offer tools."""
    offered = sorted({name for call in history.calls if call.main for name in call.arrived.tools})
    if agent.calls_in_text and offered:
        says = (
            f"calls_in_text has no effect: the agent's requests offer tools ({', '.join(offered)}); leave the key out"
        )
        yield CheckFinding(False, says)


_A_SHELL = (
    "A shell is known by its name (shell, bash, sh, terminal, exec, run_command, …) and by a parameter `command`, "
    "`cmd`, `commands` or `script`"
)
_READS = re.compile(r"(^|__)(get|list|read|look|search|find|show|fetch|query|check|describe)", re.IGNORECASE)
"""Names of tools that seem to change nothing."""


def _own_tool_hint(facts: ControlFacts) -> str:
    """How to name a tool that scenarios may call, with one that seems to change nothing as the example."""
    name = next((it for it in sorted(facts.tools) if _READS.search(it)), "…")
    needed = facts.schemas.get(name, {}).get("required", ())
    args = ", ".join(f"{it}: …" for it in needed) or "…"
    example = f"own_tool: {{name: {name}, args: {{{args}}}}}"
    return f"If a tool is quick and changes nothing, write `{example}`: scenarios that need only a tool call use it"


CALLS_IN_TEXT = "If its model writes tool calls in its text, say how in `calls_in_text: {shell: '… {command} …'}`"


def _shell_words(uses: Sequence[ToolUse], tools: str) -> str:
    """Describe how far a shell command got: its beacon shows the execution, the requests show its result."""
    best = max(uses, key=lambda use: (bool(use.results) + bool(use.done), bool(use.started)), default=None)
    if best is None or not (best.results or best.started):
        return (
            f"a shell tool is advertised {tools}, but its command was not run, and no request carried a result: "
            "scenarios with tools are skipped"
        )
    if not best.results:
        return (
            f"the shell command was run {tools}, but no request carried its result ({RESULT_MARKS}): "
            "scenarios with tools are skipped"
        )
    if best.done:
        return f"a shell command was run and its result sent back {tools}"
    if best.started:
        return f"a result came back before the shell command had ended {tools}"
    if any(result.printed for asked in best.results for result in asked.results if result.token == best.token):
        return (
            f"a shell command was run {tools} and its result came back, but it left no trace in the run's folder: "
            "is it run in a sandbox or on another machine? Invariants about executed commands cannot see it"
        )
    return (
        f"a result came back without the shell command having been run {tools}: does the agent ask for permission? "
        "Give it the option or the setting with which it runs commands without asking"
    )


def _lost_words(agent: AgentSpec, history: History) -> Iterator[CheckFinding]:
    """Yield the messages whose text is in no later request, grouped by the hint for the spec."""
    seen = {number for call in history.calls for number in call.arrived.turns_seen}
    lost: dict[str, list[str]] = {}
    for turn in history.turns:
        asked = any(turn.stimulus and call.arrived.id > turn.stimulus.id for call in history.calls)
        if asked and turn.number not in seen:
            lost.setdefault(_where_words_go(agent, first=turn.number == 1), []).append(str(turn.number))
    for where, turns in lost.items():
        what = f"message {turns[0]}" if len(turns) == 1 else f"messages {', '.join(turns)}"
        holds = "its words" if len(turns) == 1 else "their words"
        yield CheckFinding(False, f"{what} did not reach the model: no request holds {holds}; {where}")


def _where_words_go(agent: AgentSpec, *, first: bool) -> str:
    if agent.kind == "callable":
        return "does the function pass its first argument on to the model?"
    if agent.kind == "chat":
        return "does the agent pass what it polls on to the model?"
    if agent.kind in ("acp", "tui", "page"):
        return "does the agent pass what it is given on to the model?"
    line = "command" if first or agent.resume is None else "resume"
    sent: Any = getattr(agent, line)
    key, place = line, f"`{line}`"
    if agent.http:
        sent, key, place = (agent.http.url, agent.http.headers, agent.http.body), "http", "the `body` of `http`"
    elif agent.lines:
        sent, key, place = agent.lines.send, "lines", "the `send` of `lines`"
    if any(name == "message" for _, name in written_in(sent)):
        return f"`{key}` has {{message}}: does the agent pass it on to the model as it is?"
    return f"write {{message}} in {place} where the user's words go"


def _later(agent: AgentSpec, facts: ControlFacts, history: History) -> Iterator[CheckFinding]:
    """Yield the findings about the second message."""
    yield from _tools(agent, facts, history)
    lost = "the session was not continued: the second message's request does not hold the first"
    says = "the next message continued the session" if facts.resumes else f"{lost}{_how_to_continue(agent)}"
    yield CheckFinding(facts.resumes, says, optional=True)
    yield from _recovery(history)


def _refused_hosts(history: History, reported: str = "") -> Iterator[CheckFinding]:
    """Yield the refused hosts, except those that `reported` mentions."""
    refused = [f"{event.host} ({event.why})" for event in history.of(HostRefused) if event.host not in reported]
    if refused:
        says = f"it requested hosts that were refused: {', '.join(refused)}; declare them under `hosts:` if needed"
        yield CheckFinding(False, says, optional=True)


def _recovery(history: History) -> Iterator[CheckFinding]:
    for turn in history.turns[1:]:
        outcome = outcome_of(turn, history)
        if outcome.kind != "answered":
            yield CheckFinding(False, f"message {turn.number} was not answered ({outcome.kind}: {outcome.how})")
