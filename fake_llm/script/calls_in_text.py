"""Tool calls that a model writes in its text, for agents that do not use the provider's own tool calls."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from wedgehog.fake_llm.conversation import ToolSpec
from wedgehog.fake_llm.reply import Reply, Text, ToolCall, UnscriptedError
from wedgehog.fake_llm.script.roles import FETCH, SHELL, SUBAGENT_TOOL

WORDS = "words"
"""The placeholder of what the model says before it calls the tool."""
ALL_ARGUMENTS = "args"
"""The placeholder of all arguments, as a JSON object."""
_PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")
_ROLES = {SHELL: "command", FETCH: "url", SUBAGENT_TOOL: "prompt"}
"""The argument of each of these tools in `{args}`."""
_LONGEST_ESCAPE = 6


@dataclass(frozen=True)
class CallsInText:
    r"""How the model writes a call of each tool; `{command}` stands for the argument of this name.

    In quotes a value is written as in JSON.

    >>> react = CallsInText({"shell": "Thought: {words}\nAction: shell\nAction Input: {command}"})
    >>> react.written(Reply((Text("I look."), ToolCall("shell", {"command": "ls"})))).items[0].text
    'Thought: I look.\nAction: shell\nAction Input: ls'
    """

    templates: Mapping[str, str]

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools as a request would offer them: each argument is a text."""
        return tuple(ToolSpec(name, schema=_schema(name, template)) for name, template in self.templates.items())

    def shown_in(self, text: str) -> bool:
        r"""Whether a text has what a call begins with, so that the agent takes an example of a call for a call.

        >>> CallsInText({"shell": "<call>\n{args}\n</call>"}).shown_in('Write <call>{"x": 1}</call>.')
        True
        """
        return any((mark := _first_words(it)) and mark in text for it in self.templates.values())

    def written(self, reply: Reply) -> Reply:
        """The reply with its tool call as text; of a call that was cut, what there is of it. Errors: UnscriptedError.

        Its words come first, or where the template has `{words}`.
        """
        calls = [item for item in reply.items if isinstance(item, ToolCall)]
        if not calls:
            return reply
        call, texts = calls[0], [item for item in reply.items if isinstance(item, Text)]
        if len(calls) > 1 or call.name not in self.templates:
            names = ", ".join(it.name for it in calls)
            raise UnscriptedError(f"calls_in_text has no text for a reply that calls {names}")
        text = _text(self.templates[call.name], "".join(item.words for item in texts), call)
        paced = replace(text, pace_ms=max([call.pace_ms, *(item.pace_ms for item in texts)]))
        others = [item for item in reply.items if not isinstance(item, Text | ToolCall)]
        return replace(reply, items=(*others, paced), stop=None if reply.stop == "tool" else reply.stop)


def _first_words(template: str) -> str:
    """The first line of a call that is the same for each call, behind what the model says before."""
    own = template.rpartition(f"{{{WORDS}}}")[2]
    return next((line.strip() for line in _PLACE.split(own)[0].splitlines() if line.strip()), "")


def placeholders(template: str) -> tuple[str, ...]:
    """The names of the arguments that a template holds."""
    return tuple(name for name in dict.fromkeys(_PLACE.findall(template)) if name != WORDS)


def _schema(tool: str, template: str) -> dict[str, Any]:
    names = [_ROLES.get(tool, "") if name == ALL_ARGUMENTS else name for name in placeholders(template)]
    names = [name for name in dict.fromkeys(names) if name]
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}


def _text(template: str, words: str, call: ToolCall) -> Text:
    """The text of a call, which knows where the words stand in it. A call that was cut ends in its last argument."""
    if f"{{{WORDS}}}" not in template and words:
        template = f"{{{WORDS}}}\n{template}"
    args, whole = (dict(call.args), True) if call.raw_args is None else (_beginning(call.raw_args), False)
    last = None if whole else next(reversed(args), "")
    said, at, span = "", 0, (0, 0)
    for found in _PLACE.finditer(template):
        name, said = found[1], said + template[at : found.start()]
        if name != WORDS and last == "":
            return Text(said, span=span)
        at, begins, value = found.end(), len(said), {WORDS: words, ALL_ARGUMENTS: args}.get(name, args.get(name, ""))
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        said += in_quotes(text, said, template[at:])
        span = (begins, len(said)) if name == WORDS else span
        if last is not None and name in (last, ALL_ARGUMENTS):
            return Text(said, span=span)
    return Text(said + template[at:], span=span)


def in_quotes(text: str, before: str, behind: str) -> str:
    """The text as it stands between two others: as in JSON if these put it into double quotes."""
    quoted = before.endswith('"') and behind.startswith('"')
    return json.dumps(text, ensure_ascii=False)[1:-1] if quoted else text


def _beginning(raw: str) -> dict[str, Any]:
    """The arguments in a text of JSON that was cut; the last one may be a part of its value."""
    for end in range(len(raw), max(-1, len(raw) - _LONGEST_ESCAPE), -1):
        for closing in ('"}', "}", ""):
            try:
                found = json.loads(raw[:end] + closing)
            except ValueError:
                continue
            return found if isinstance(found, dict) else {}
    return {}
