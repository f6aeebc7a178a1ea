"""The items of a reply as they are written in script files and scenarios.

[{text: Let me look.}, {tool: shell, args: {command: ls}}, {usage: {input_tokens: 8000}}, {stop: max_tokens}]
"""

from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, NonNegativeFloat, NonNegativeInt, RootModel, Tag

from wedgehog.fake_llm.reply import Failure, Item, Reply, Stop, Text, Thinking, ToolCall, Usage


class ConfigModel(BaseModel):
    """A mapping in a file: unknown keys are errors, values do not change, and `true` is no number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class TextConfig(ConfigModel):
    """`{text: Hi, pace_ms: 200}`: text for the user; a streamed piece comes every `pace_ms`."""

    text: str
    pace_ms: NonNegativeFloat = 0


class ThinkingConfig(ConfigModel):
    """`{thinking: Hm.}`: reasoning."""

    thinking: str


class ToolConfig(ConfigModel):
    """`{tool: shell, args: {command: ls}}`, or `raw_args: '{"comm'` to send them verbatim; `pace_ms` as for text."""

    tool: str
    args: dict[str, Any] = Field(default_factory=dict)
    raw_args: str | None = None
    id: str = ""
    pace_ms: NonNegativeFloat = 0


class UsageCounts(ConfigModel):
    """Tokens that the provider reports; a missing count is estimated."""

    input_tokens: NonNegativeInt | None = None
    output_tokens: NonNegativeInt | None = None


class UsageConfig(ConfigModel):
    """`{usage: {input_tokens: 8000, output_tokens: 3}}`."""

    usage: UsageCounts


class StopConfig(ConfigModel):
    """`{stop: max_tokens}`: the stop reason; by default it follows from the items."""

    stop: Stop


class DelayConfig(ConfigModel):
    """`{delay_s: 2}`: time before the first byte."""

    delay_s: NonNegativeFloat


_KEYS: Final = ("text", "thinking", "tool", "usage", "stop", "delay_s")


def _key_of(value: object) -> str | None:
    if isinstance(value, ConfigModel):
        return next(key for key in _KEYS if key in type(value).model_fields)
    return next((key for key in _KEYS if key in value), None) if isinstance(value, dict) else None


ItemConfig: TypeAlias = Annotated[
    Annotated[TextConfig, Tag("text")]
    | Annotated[ThinkingConfig, Tag("thinking")]
    | Annotated[ToolConfig, Tag("tool")]
    | Annotated[UsageConfig, Tag("usage")]
    | Annotated[StopConfig, Tag("stop")]
    | Annotated[DelayConfig, Tag("delay_s")],
    Discriminator(
        _key_of,
        custom_error_type="item",
        custom_error_message=f"an item with one of the keys {', '.join(_KEYS)}",
    ),
]


class ReplyConfig(RootModel[ItemConfig | list[ItemConfig]]):
    """One reply: an item, or a list of items.

    >>> ReplyConfig.model_validate([{"text": "Hi"}, {"stop": "max_tokens"}]).reply().stop
    'max_tokens'
    """

    model_config = ConfigDict(frozen=True)

    def reply(self) -> Reply:
        """Return the reply; the last usage, stop and delay count."""
        items: list[Item] = []
        usage: Usage | None = None
        stop: Stop | None = None
        delay_s: float = 0
        for word in self.root if isinstance(self.root, list) else [self.root]:
            match word:
                case TextConfig():
                    items.append(Text(word.text, word.pace_ms))
                case ThinkingConfig():
                    items.append(Thinking(word.thinking))
                case ToolConfig():
                    items.append(ToolCall(word.tool, word.args, word.id, word.raw_args, word.pace_ms))
                case UsageConfig():
                    usage = Usage(word.usage.input_tokens, word.usage.output_tokens)
                case StopConfig():
                    stop = word.stop
                case DelayConfig():
                    delay_s = word.delay_s
        return Reply(tuple(items), usage, stop, delay_s)


class ErrorConfig(ConfigModel):
    """`{status: 429, retry_after: 2}`: an error in the provider's shape, or a gateway's page (`html: true`).

    The kind `balance` is a used-up prepaid balance, with the provider's own status and words.
    """

    status: Annotated[int, Field(ge=400, le=599)]
    message: str | None = None
    kind: str | None = None
    retry_after: NonNegativeFloat | str | None = None
    delay_s: NonNegativeFloat = 0
    html: Annotated[bool, Field(strict=False)] = False

    def failure(self) -> Failure:
        """Return the failure."""
        return Failure(self.status, self.message, self.kind, self.retry_after, self.delay_s, self.html)
