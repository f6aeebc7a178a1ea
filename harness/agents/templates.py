"""The `{names}` that a spec may use, beside those of its timers and links; each is replaced once, as text."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

NAMES: Mapping[str, str] = {
    "python": "the Python that runs Wedgehog",
    "here": "the folder of the spec's file",
    "home": "the agent's own HOME",
    "cwd": "the agent's own working folder",
    "session_dir": "an empty folder for its sessions",
    "session": "the session's name, another one in each live run",
    "message": "the user's message",
    "message_id": "the message's id, the same when a front end delivers it again",
    "model": "the model that its user chooses, one of `models`",
    "llm_url": "the model's address, without a path",
    "token_url": "the OAuth token endpoint, whose tokens the fake model accepts",
    "tool_url": "the tool host's address, for MCP over HTTP",
    "tool_command": "an executable that serves the tool host's tools, for MCP over stdio",
    "store_url": "our database's address",
    "chat_url": "the chat service's address, for an agent without a hard-coded one",
    "pipe": "the `wedgehog-pipe` executable",
    "web_url": "the page server's address",
    "key": "the API key that the fake model accepts",
    "port": "a free port for a service to listen on",
    "time_scale": "the factor by which its own timers shall run faster",
    "bin": "the folder of a known runtime's programs",
    "install": "the folder that a known runtime is installed in",
    "version": "the version of a known runtime",
    "fixes": "the chosen fixes of a specimen, joined by commas, or none",
}

_WRITTEN = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")
"""`{name}`, or `{{name}}` for the text `{name}`; all other braces are plain text, so that JSON needs no escapes."""


class UnknownTemplateError(ValueError):
    """A `{name}` that is not known."""

    def __init__(self, name: str) -> None:
        """The message has the closest known name, and how to write the braces as text."""
        near = get_close_matches(name, NAMES, n=1)
        hint = f" (did you mean '{{{near[0]}}}'?)" if near else f" (known: {', '.join(NAMES)})"
        super().__init__(f"unknown template '{{{name}}}'{hint}; as text it is written '{{{{{name}}}}}'")
        self.name = name


def expand(text: str, values: Mapping[str, str]) -> str:
    """`text` with each template replaced from `values`; a replaced value is not expanded again."""

    def fill(found: re.Match[str]) -> str:
        literal, name = found.groups()
        if literal:
            return f"{{{literal}}}"
        if name not in values:
            raise UnknownTemplateError(name)
        return values[name]

    return _WRITTEN.sub(fill, text)


def expand_all(data: Any, values: Mapping[str, str]) -> Any:
    """`data` (mappings, lists, scalars) with templates expanded in every value; keys stay as they are."""
    if isinstance(data, str):
        return expand(data, values)
    if isinstance(data, Mapping):
        return {key: expand_all(value, values) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [expand_all(value, values) for value in data]
    return data


def names_in(text: str) -> Iterator[str]:
    """The template names used in `text`."""
    for found in _WRITTEN.finditer(text):
        if found.group(2):
            yield found.group(2)


def written_in(data: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each template name in `data`, also in keys of mappings, with its position."""
    if isinstance(data, str):
        yield from ((place, name) for name in names_in(data))
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from (((*place, key), name) for name in names_in(key))
            yield from written_in(value, (*place, key))
    elif isinstance(data, list | tuple):
        for index, value in enumerate(data):
            yield from written_in(value, (*place, index))
