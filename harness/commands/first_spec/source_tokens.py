"""The variables with which a project gets OAuth access tokens, and what the spec gives them. Nothing is executed."""

import re
from collections.abc import Iterable
from typing import Final

from wedgehog.harness.commands.first_spec.source_reading import VARIABLE_OF

_PLACE: Final = r"(?:[A-Z0-9]+_)*TOKEN_(?:URL|URI|ENDPOINT)"
_CLIENT: Final = r"(?:[A-Z0-9]+_)*(?:CLIENT_ID|CLIENT_SECRET|REFRESH_TOKEN)"
_READ: Final = re.compile(rf"{VARIABLE_OF}({_PLACE}|{_CLIENT})\b")
_TAKEN: Final = re.compile(r"\{([^{}]*)\}\s*=\s*process\.env\b")
_NAME: Final = re.compile(rf"\b({_PLACE}|{_CLIENT})\b")


def token_env(texts: Iterable[str]) -> dict[str, str]:
    """The `env` of a spec for a program that asks a token endpoint; empty for one that does not.

    Our endpoint accepts any client and any secret, but the program may not start without their variables.
    """
    env: dict[str, str] = {}
    for text in texts:
        taken = (name for words in _TAKEN.findall(text) for name in _NAME.findall(words))
        read = dict.fromkeys([*_READ.findall(text), *taken])
        if any(re.fullmatch(_PLACE, name) for name in read):
            env |= {name: "{token_url}" if re.fullmatch(_PLACE, name) else "wedgehog" for name in read}
    return env
