"""What the source of a Node program shows of messages and answers on its lines: at a prompt, or as JSON.

Nothing is run. As in `source_node`, patterns search the source; what they miss is guessed, and said to be a guess.
"""

import re
from collections.abc import Iterator
from typing import Final

from wedgehog.harness.commands.first_spec.source_reading import (
    ANSWERS,
    ERRORS,
    KINDS,
    QUESTIONS,
    likeliest,
    likeliest_or_only,
)

_USER: Final = ("user", "message", "prompt", "chat", "user_message", "input", "ask", "query")
"""What such a key says of a message, the likeliest first."""
_PROMPT: Final = re.compile(r"(?:\bprompt:|\bsetPrompt\(|\.question\()\s*(['\"`])((?:(?!\1)[^$\n])+)\1")
_COMMENT: Final = re.compile(r"^\s*//.*$|/\*[\s\S]*?\*/", re.MULTILINE)
_PARSED: Final = r"JSON\.parse\([^()]*(?:\([^()]*\))?[^()]*\)"
_AT_ONCE: Final = re.compile(rf"{_PARSED}(?:\s+as\s+\w+)?\)?\??\.(\w+)")
_TAKEN: Final = re.compile(rf"\{{([^{{}}]*)\}}(?:\s*:\s*\w+)?\s*=\s*\(?{_PARSED}")
_NAMED: Final = re.compile(rf"\b(\w+)(?:\s*:\s*\w+)?\s*=\s*\(?{_PARSED}(?!\)?\??[.\[])")
_HANDED: Final = re.compile(rf"\b(\w+)\((?:{_PARSED}|(\w+))\s*\)")
_OBJECT: Final = r"\{(?:[^{}]|\{[^{}]*\})*\}"
_WRITES: Final = r"(?:console\.log|process\.stdout\.write)\(\s*(?:`\$\{)?\s*JSON\.stringify\(\s*"
_FUNCTION: Final = (
    r"\b(?:function\s+(\w+)\s*\(\s*(\w+)[^)]*\)|(?:const|let|var)\s+(\w+)\s*=\s*(?:async\s*)?\(?\s*(\w+)[^)=]*\)?\s*=>)"
)


def node_lines_of(source: str) -> dict[str, object]:
    """The keys beside `start` of a program that takes lines; empty if the source shows none."""
    text = _COMMENT.sub("", source)
    if "JSON.parse(" not in text:
        prompt = _PROMPT.search(text)
        sign = f"^{re.escape(prompt[2].rsplit(chr(92) + 'n', 1)[-1]).replace(chr(92) + ' ', ' ')}$" if prompt else ""
        return {"ready": sign, "done": sign} if sign.strip("^ $") else _answers_of(text)
    names = set(_names(text))
    asked = likeliest_or_only(QUESTIONS, _keys_read(text, names))
    if not (asked and (answers := _answers_of(text))):
        return {}
    return {"send": {**_kind_of_a_message(text, names), asked: "{message}"}, **answers}


def _answers_of(text: str) -> dict[str, object]:
    """Where the answer and an error stand in what it prints as JSON, and the line that ends a turn; else empty."""
    written = {key: it for it in objects_written(text) for key in it}
    said = likeliest_or_only(ANSWERS, set(written))
    if not said:
        return {}
    inner = likeliest(ANSWERS, set(_keys(written[said][said])))
    place = f"{said}.{inner}" if inner else said
    if wrong := likeliest(ERRORS, set(written)):
        return {"done": f'"({inner or said}|{wrong})":.*}}$', "answer": f"jsonl:{place}", "error": f"jsonl:{wrong}"}
    return {"done": f'"{inner or said}":.*}}$', "answer": f"jsonl:{place}"}


def _names(text: str) -> Iterator[str]:
    """The names of a parsed line, also in a function to which it is handed."""
    names = set(_NAMED.findall(text))
    yield from names
    handed = {called for called, name in _HANDED.findall(text) if name in names or not name}
    yield from (
        first or other for name, first, arrow, other in re.findall(_FUNCTION, text) if (name or arrow) in handed
    )


def _keys_read(text: str, names: set[str]) -> set[str]:
    """The keys that are read from a parsed line."""
    keys = {key for taken in _TAKEN.findall(text) for key in _keys(f"{{{taken}}}")} | set(_AT_ONCE.findall(text))
    for name in names:
        keys |= set(re.findall(rf"(?<![.\w]){re.escape(name)}\??\.(\w+)\b(?!\()", text))
        keys |= {
            it for taken in re.findall(rf"(\{{[^{{}}]*\}})\s*=\s*{re.escape(name)}\b", text) for it in _keys(taken)
        }
    return keys


def _kind_of_a_message(text: str, names: set[str]) -> dict[str, str]:
    """`{type: user}` where the program compares a line's `type` with a word for a message."""
    owner = rf"(?:\b(?:{'|'.join(map(re.escape, sorted(names)))})\??\.|(?<![.\w]))" if names else r"(?<![.\w])"
    for kind in KINDS:
        compared = re.findall(rf"{owner}{kind}\s*[!=]==?\s*['\"`](\w+)['\"`]", text)
        if word := next((it for it in _USER if it in compared), ""):
            return {kind: word}
    return {}


def objects_written(text: str, writes: str = _WRITES) -> Iterator[dict[str, str]]:
    """The objects that the program prints, or writes so, as JSON: each key with the source of its value."""
    printers = set()
    for it in re.finditer(_FUNCTION, text):
        name, given = it[1] or it[3], it[2] or it[4]
        if re.match(rf"[^;]{{0,80}}?{writes}{re.escape(given)}\b", text[it.end() :]):
            printers.add(name)
    begins = "|".join([writes, *(rf"(?<!function )\b{re.escape(it)}\(\s*" for it in sorted(printers))])
    for found in re.finditer(rf"(?:{begins})({_OBJECT})", text):
        yield _keys(found[1])


def _keys(source: str) -> dict[str, str]:
    """The keys of an object or a pattern, each with the source of its value: `{ text, id: number }`."""
    inside = source.strip()[1:-1] if source.strip().startswith("{") else ""
    parts = re.findall(rf"\s*['\"]?(\w+)['\"]?\s*(?::\s*({_OBJECT}|[^,{{}}]*))?(?:=[^,]*)?[^,]*(?:,|$)", inside)
    return {key: value.strip() for key, value in parts}
