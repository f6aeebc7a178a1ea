"""The ports of this machine at which a project's compose file puts its servers. Nothing is started."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from wedgehog.fake_llm.request import mapped
from wedgehog.harness.scenario.plain_yaml import PlainLoader

COMPOSE: Final = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
"""The usual names of the file, the likeliest first."""
_DEFAULT: Final = re.compile(r"\$\{\w+:?-([^{}]*)\}")
"""A variable with its default: `${DB_PORT:-5433}`."""


def published(folder: Path) -> dict[int, int]:
    """By the port inside a container: the first port of this machine that leads there."""
    for name in COMPOSE:
        with suppress(OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError):
            text = _DEFAULT.sub(r"\1", (folder / name).read_text(encoding="utf-8"))
            services = mapped(mapped(yaml.load(text, PlainLoader)).get("services"))  # noqa: S506  a SafeLoader
            found: dict[int, int] = {}
            for inside, outside in (pair for it in services.values() for pair in _ports(mapped(it))):
                found.setdefault(inside, outside)
            return found
    return {}


def _ports(service: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """The pairs of `"127.0.0.1:5433:5432"`, and of `{target: 5432, published: 5433}`; not of a range."""
    given = service.get("ports")
    for it in given if isinstance(given, list) else []:
        parts = it.partition("/")[0].split(":") if isinstance(it, str) else []
        long = mapped(it)
        pair = (parts[-1], parts[-2]) if len(parts) > 1 else (long.get("target"), long.get("published"))
        with suppress(TypeError, ValueError):
            yield int(str(pair[0])), int(str(pair[1]))
