"""What the model says in drawn scenarios: kinds of tool rounds and of answers, by the name that a report shows."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wedgehog.fake_llm.script.file_tools import EDIT_FILE, FILE_ROLES, READ_FILE, WRITE_FILE
from wedgehog.fake_llm.script.roles import SHELL, SUBAGENT_TOOL
from wedgehog.harness.search.draw import Choices, SmallNumbers
from wedgehog.harness.search.values import value_for

Drawn = dict[str, Any]
ScriptKind = Literal[
    "plain",
    "several tools",
    "failing tool",
    "file edit",
    "long result",
    "long answer",
    "empty answer",
    "slow answer",
    "background job",
    "slow tool",
]
SCRIPTS: Mapping[ScriptKind, float] = {
    "plain": 0.0,
    "several tools": 0.5,
    "failing tool": 0.2,
    "file edit": 0.2,
    "long result": 0.5,
    "long answer": 0.0,
    "empty answer": 0.0,
    "slow answer": 1.0,
    "background job": 3.0,
    "slow tool": 5.0,
}
"""Each kind with the seconds that it adds, about; quick ones first."""
IN_A_ROUND = frozenset[ScriptKind](
    ("several tools", "failing tool", "file edit", "long result", "background job", "slow tool")
)
"""Kinds that are a round of tool calls; the others are an answer."""
OF_THE_SHELL = IN_A_ROUND - {"several tools", "file edit"}
"""Kinds whose call is a shell command."""

COMMANDS = ("echo one", "printf '%s' two", "exit 3", "sleep 0.3; echo late", "seq 1 2000", "echo three >&2")
LONG_RESULT, BACKGROUND_JOB = "seq 1 40000", "sleep 3 & echo started"
SLOW_TOOL = r"sleep [0-9.]+; echo late"
TEXTS = (
    "A small animal. {nonce}",
    "It rolls itself up when it is worried, and then it waits. {nonce}",
    "Igel 🦔. {nonce}",
)
SENTENCE = "A hedgehog is a small animal with spines. "
LONG, VERY_LONG = SENTENCE * 40 + "{nonce}", SENTENCE * 250 + "{nonce}"
PROMPTS = ("Read the first file, and say what is in it.", "Count the files, and say how many there are.")
"""What a subagent is asked for."""
HOSTED = "wedgehog_look_up"
"""The tool of our tool host; no agent has one of this name itself."""
MOST_CALLS = 4
NOTES = "hedgehog.txt"
"""The file that the model edits."""
FILES = {NOTES: "Buy bread.\nCall Anna.\nWater the plants.\n"}
REWRITTEN = "Bread is here, and so are flour and ten eggs.\nAnna is called at noon.\nThe plants are watered.\n"
EDITS = (("Buy bread.", "Bread is here."), ("Call Anna.", "Call Anna at noon."), ("plants", "roses"))


@dataclass(frozen=True, slots=True)
class Tools:
    """What a round may call."""

    shell: bool
    own: Mapping[str, Mapping[str, Any]]
    """JSON Schemas of arguments, by the tool's name."""
    host: bool
    slow_s: float
    """How long a slow command runs, in seconds of the machine."""
    one_call: bool = False
    """Whether a reply can have one call only."""

    @property
    def names(self) -> list[str]:
        """The tools by name."""
        return [SHELL] * self.shell + sorted(self.own) + [HOSTED] * self.host


def tool_round(draw: Choices, tools: Tools, script: ScriptKind) -> Any:
    """A reply that calls tools."""
    calls = _calls(draw, tools, script if tools.shell or script not in OF_THE_SHELL else "plain")
    if tools.one_call:
        calls = [command("exit 3")] if script == "failing tool" else calls[-1:]
    said = [{"text": "I look."}] if draw.choose((False, True)) else []
    return [*said, *calls] if len(calls) > 1 or said else calls[0]


def _calls(draw: Choices, tools: Tools, script: ScriptKind) -> list[Drawn]:
    def some(least: int, most: int) -> list[Drawn]:
        return [_call(draw, tools, draw.choose(tools.names)) for _ in range(draw.between(least, most))]

    match script:
        case "several tools":
            calls = some(3, MOST_CALLS)
        case "failing tool":
            calls = [command("echo one"), command("exit 3"), command("echo two")][draw.between(0, 1) :]
        case "file edit":
            calls = _file_edit(draw, one_call=tools.one_call)
        case "long result":
            calls = [command(LONG_RESULT)]
        case "background job":
            calls = [command(BACKGROUND_JOB)]
        case "slow tool":
            calls = [command("echo one")] * draw.between(0, 1) + [command(f"sleep {tools.slow_s:g}; echo late")]
        case _:
            calls = some(1, 2)
    return calls


def _file_edit(draw: Choices, *, one_call: bool) -> list[Drawn]:
    """The file is written anew, or read, as some agents ask for, and edited in several places."""
    edits = [_file_call(EDIT_FILE, old=old, new=new) for old, new in EDITS]
    reads = [_file_call(READ_FILE), *edits]
    return draw.choose((reads, reads, [_file_call(WRITE_FILE, content=REWRITTEN)])) if not one_call else edits[:1]


def _file_call(role: str, **args: str) -> Drawn:
    return {"tool": role, "args": {"path": NOTES, **args}}


def subagent_round(draw: Choices, *, one_call: bool = False) -> Any:
    """A reply that gives work to one subagent, or to two at once."""
    most = 1 if one_call else draw.between(1, 2)
    calls = [{"tool": SUBAGENT_TOOL, "args": {"prompt": prompt}} for prompt in PROMPTS[:most]]
    return calls if len(calls) > 1 else calls[0]


def command(text: str) -> Drawn:
    """A call of the shell."""
    return {"tool": SHELL, "args": {"command": text}}


def _call(draw: Choices, tools: Tools, name: str) -> Drawn:
    if name == SHELL:
        return command(draw.choose(COMMANDS))
    return {"tool": name, "args": {} if name == HOSTED else value_for(SmallNumbers(draw), tools.own[name])}


def answer(draw: Choices, script: ScriptKind) -> Any:
    """The reply that ends a turn."""
    if script == "empty answer":
        return []
    if script == "long answer":
        return {"text": draw.choose((LONG, VERY_LONG))}
    if script == "slow answer":
        return draw.choose(([{"delay_s": 2}, {"text": TEXTS[0]}], [{"text": LONG, "pace_ms": 10}]))
    text: Drawn = {"text": draw.choose((*TEXTS, LONG))}
    extra = draw.choose((None, {"thinking": "I think."}, {"delay_s": 0.3}))
    return text if extra is None else [extra, text]


def fitting(shell: bool, calls_tools: bool, *, one_call: bool = False, files: bool = False) -> Sequence[ScriptKind]:
    """The kinds for an agent with these tools; `one_call`: a reply can have one call only."""
    return [
        script
        for script in SCRIPTS
        if (shell or script not in OF_THE_SHELL)
        and (calls_tools or script not in IN_A_ROUND)
        and not (one_call and script == "several tools")
        and (files or script != "file edit")
    ]


def kinds_in(turns: Sequence[Drawn]) -> Iterator[ScriptKind]:
    """The kinds of scripts that can break an agent without a fault."""
    replies = [reply for turn in turns for reply in turn["model"]]
    called = {item.get("tool") for reply in replies for item in as_items(reply)}
    commands = [item.get("args", {}).get("command", "") for reply in replies for item in as_items(reply)]
    marks: Mapping[ScriptKind, bool] = {
        "empty answer": [] in replies,
        "file edit": not called.isdisjoint(FILE_ROLES),
        "long result": LONG_RESULT in commands,
        "background job": BACKGROUND_JOB in commands,
        "slow tool": any(re.fullmatch(SLOW_TOOL, str(it)) and it not in COMMANDS for it in commands),
        "slow answer": any(it.get("delay_s", 0) > 1 or "pace_ms" in it for reply in replies for it in as_items(reply)),
    }
    return (kind for kind, applies in marks.items() if applies)


def as_items(reply: Any) -> list[Drawn]:
    """The items of one reply."""
    return reply if isinstance(reply, list) else [reply]
