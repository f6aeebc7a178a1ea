"""The model writes arguments that no tool can take."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from wedgehog.fake_llm.reply import Answer, Item, Reply, ToolCall
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("garbage_arguments", family="reply")
@dataclass(frozen=True, slots=True)
class GarbageArguments(ReplyFault):
    """Every tool call of the reply has arguments that are no JSON (`prose`, `fenced`, `unclosed`), or the wrong JSON.

    `list`: an array around them. `wrong_types`: numbers where texts belong. `none`: not a character.
    """

    kind: Literal["prose", "fenced", "unclosed", "list", "wrong_types", "none"] = "prose"

    @property
    def breaks_arguments(self) -> bool:
        """Only numbers in place of texts leave an object."""
        return self.kind != "wrong_types"

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same calls, with arguments that are sent verbatim."""
        if not isinstance(answer, Reply):
            return answer
        return replace(answer, items=tuple(self._spoiled(item) for item in answer.items))

    def _spoiled(self, item: Item) -> Item:
        return replace(item, raw_args=_garbage(self.kind, item.args)) if isinstance(item, ToolCall) else item


def _garbage(kind: str, args: Mapping[str, Any]) -> str:
    said = json.dumps(args, ensure_ascii=False)
    match kind:
        case "fenced":
            return f"```json\n{said}\n```"
        case "unclosed":
            return said[:-1]
        case "list":
            return f"[{said}]"
        case "wrong_types":
            return json.dumps({name: 7 if isinstance(value, str) else str(value) for name, value in args.items()})
        case "none":
            return ""
    return f"I will call it with {', '.join(args) or 'nothing'} as you asked."
