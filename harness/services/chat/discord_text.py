"""What the user of Discord reads of a message: its text, its embeds, and files that are text."""

from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp.web import FileField


def words_of(said: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    """All of it; a file that is no text is known by its name. `params` has the files."""
    embeds = said.get("embeds")
    parts = [str(said.get("content") or "")]
    for it in embeds if isinstance(embeds, list) else ():
        parts += _embed(it) if isinstance(it, Mapping) else ()
    parts += [_file(it) for it in params.values() if isinstance(it, FileField)]
    return "\n".join(part for part in parts if part.strip())


def _embed(embed: Mapping[str, Any]) -> Iterator[str]:
    yield str(embed.get("title") or "")
    yield str(embed.get("description") or "")
    fields = embed.get("fields")
    for it in fields if isinstance(fields, list) else ():
        if isinstance(it, Mapping):
            yield f"{it.get('name', '')}\n{it.get('value', '')}"


def _file(field: FileField) -> str:
    field.file.seek(0)
    try:
        return field.file.read().decode()
    except UnicodeDecodeError:
        return field.filename
