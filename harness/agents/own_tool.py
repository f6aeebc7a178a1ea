"""A tool of the agent's own in the place of a shell: most agents have none, and a scenario often needs only a call."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from wedgehog.fake_llm.script.roles import filled, kinds_of
from wedgehog.harness.agents.spec_part import SpecPart

NUMBER = "{n}"


class OwnTool(SpecPart):
    """The tool's `name`, and `args` with which it works, is quick and changes nothing.

    In the arguments `{n}` is 1, 2, 3, … for the commands in whose place it is called, so that calls differ as these do.
    """

    name: Annotated[str, Field(min_length=1)]
    args: dict[str, Any] = Field(default={})

    @property
    def is_numbered(self) -> bool:
        """Whether two calls can differ."""
        return NUMBER in str(self.args)

    def call(self, number: int, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of one call; a required one that `args` lacks is filled by the schema."""
        properties = schema.get("properties") or {}
        return filled(schema, {key: _numbered(it, number, properties.get(key)) for key, it in self.args.items()})


def _numbered(given: Any, number: int, schema: Any) -> Any:
    if given == NUMBER and "string" not in (kinds := kinds_of(schema)) and kinds & {"integer", "number"}:
        return number
    if isinstance(given, str):
        return given.replace(NUMBER, str(number))
    if isinstance(given, Mapping):
        return {key: _numbered(inner, number, None) for key, inner in given.items()}
    return [_numbered(inner, number, None) for inner in given] if isinstance(given, list) else given
