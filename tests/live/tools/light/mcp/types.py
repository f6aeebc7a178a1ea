"""Messages."""

from dataclasses import dataclass
from typing import Any, Self


@dataclass
class Tool:
    name: str
    description: str
    inputSchema: dict[str, Any]  # noqa: N815 - as the protocol writes it

    @classmethod
    def model_validate(cls, given: dict[str, Any]) -> Self:
        return cls(**given)


@dataclass
class ListToolsResult:
    tools: list[Tool]


@dataclass
class CallToolRequestParams:
    name: str
    arguments: dict[str, Any]


@dataclass
class TextContent:
    type: str
    text: str


@dataclass
class CallToolResult:
    content: list[TextContent]
    is_error: bool
