"""How a scenario describes the tools of our host, and its database."""

import re
from typing import Any, Self

from pydantic import NonNegativeFloat, field_validator, model_validator

from wedgehog.fake_llm.script.items import ConfigModel
from wedgehog.harness.scenario.mistake import BadValueError

KINDS = ("string", "number", "integer", "boolean", "array", "object")


class HostTool(ConfigModel):
    """`{says: "The weather in a city", input: {city: string}, answer: "21 °C"}`; seconds are the scenario's."""

    says: str = ""
    """What it says of itself to the model."""
    input: dict[str, Any] = {}
    """Its parameters: a JSON type (`string`, optional as `"string?"`), or a JSON Schema of the parameter."""
    input_schema: dict[str, Any] | None = None
    """The whole JSON Schema of its arguments, sent as it is, in the place of `input`."""
    answer: str = "done"
    """Its result."""
    image: bool = False
    """Its result has a small picture beside the text."""
    delay_s: NonNegativeFloat = 0
    """How long it works."""
    error: str | None = None
    """It always fails, with these words."""

    @field_validator("input")
    @classmethod
    def _known_kinds(cls, given: dict[str, Any]) -> dict[str, Any]:
        for name, kind in given.items():
            if isinstance(kind, dict):
                continue
            if not isinstance(kind, str) or kind.removesuffix("?") not in KINDS:
                expected = f"expected {', '.join(KINDS)} (with ? where it may be left out), or a JSON Schema"
                raise BadValueError(f"{name}: {expected}, found {kind!r}")
        return given

    @model_validator(mode="after")
    def _one_schema(self) -> Self:
        if self.input and self.input_schema is not None:
            raise BadValueError("`input` and `input_schema` are two words for one schema: expected one, found both")
        return self

    @property
    def schema_of_input(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        if self.input_schema is not None:
            return self.input_schema
        required = [name for name, kind in self.input.items() if not (isinstance(kind, str) and kind.endswith("?"))]
        return {
            "type": "object",
            "properties": {
                name: kind if isinstance(kind, dict) else {"type": kind.removesuffix("?")}
                for name, kind in self.input.items()
            },
            "required": required,
        }


class HostStore(ConfigModel):
    """`{latency_s: 0.05}`: our database, and how long each query takes; seconds are the scenario's."""

    latency_s: NonNegativeFloat = 0.05


def check_names(given: dict[str, HostTool]) -> dict[str, HostTool]:
    """The tools, if no name is a shell's or the end of another one. Errors: BadValueError."""
    for name in given:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,127}", name):  # MCP takes these; some providers refuse the dot
            raise BadValueError(f"a tool's name is a word of at most 128 letters, digits, _, - and ., found {name!r}")
        if name == "shell":
            raise BadValueError("`shell` means the agent's own shell: give the tool another name")
        longer = next((other for other in given if other != name and other.endswith(name)), None)
        if longer is not None:
            raise BadValueError(f"{longer!r} ends in {name!r}, and a tool is known by how its name ends: rename one")
    return given
