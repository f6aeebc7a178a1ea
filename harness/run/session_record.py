"""What a session file holds, read without knowing whose it is: the tool results whose output stands in it.

>>> results_in(b'{"role": "tool", "content": "21 C\\\\nwbcdf1x2x1"}\\n', "wbcdf")
('1.2.1',)
"""

import contextlib
import json
import re


def results_in(data: bytes, salt: str, *, torn: bool = False) -> tuple[str, ...]:
    """turn.step.call of the commands whose output stands in a file; not of those that are only asked for there.

    A command ends by printing its token, and its call's id begins with it. What nobody can read again does not count:
    a last line that was cut, or all of one JSON text of which we tore (`torn`) the end away.
    """
    text = data.decode("utf-8", "replace")
    if not _is_json(text):
        text = "" if torn and _is_one_json_text(text) else _whole_lines(text)
    found = re.findall(rf"{re.escape(salt)}(\d+)x(\d+)x(\d+)(?!\d|a\d|; \(exit)", text)
    return tuple(dict.fromkeys(".".join(numbers) for numbers in found))


def _whole_lines(text: str) -> str:
    """Without a last line that has no end, unless it is JSON as it stands. A database has no lines, and is whole."""
    begin = text.rfind("\n") + 1
    if "\0" in text or _is_json(text[begin:]):
        return text
    return text[:begin]


def _is_one_json_text(text: str) -> bool:
    """Whether it began as JSON that goes over several lines."""
    first = text.lstrip().partition("\n")[0]
    return first[:1] in ("{", "[") and not _is_json(first)


def _is_json(text: str) -> bool:
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(text)
        return True
    return False
