"""The own servers of a project, by the variables that say where they are, and links to them. Nothing is executed."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from wedgehog.harness.commands.first_spec.source_compose import published
from wedgehog.harness.commands.first_spec.source_reading import VARIABLE_OF


class _KnownServer(NamedTuple):
    """A kind of server: the name of its link, the variables and schemes that mean it, its usual port and address."""

    link: str
    variables: str
    schemes: tuple[str, ...]
    port: int
    address: str
    names: str = ""
    """With what the names of two variables begin that have its host and its port."""


_SERVERS: Final = (
    _KnownServer(
        "db",
        r"(?:DATABASE|DB|POSTGRES|POSTGRESQL|PG)_(?:URL|URI|DSN)",
        ("postgresql", "postgres"),
        5432,
        "postgresql://postgres@{link}/postgres",
        "PG|POSTGRES_|POSTGRESQL_|DB_|DATABASE_",
    ),
    _KnownServer("mysql", r"MYSQL_(?:URL|URI|DSN)", ("mysql", "mariadb"), 3306, "mysql://root@{link}/mysql", "MYSQL_"),
    _KnownServer(
        "cache", r"(?:REDIS|VALKEY)_(?:URL|URI|DSN)", ("redis", "valkey"), 6379, "redis://{link}/0", "REDIS_|VALKEY_"
    ),
    _KnownServer("mongo", r"MONGO(?:DB)?_(?:URL|URI|DSN)", ("mongodb",), 27017, "mongodb://{link}"),
    _KnownServer("qdrant", r"QDRANT_(?:URL|URI)", ("http",), 6333, "http://{link}"),
    _KnownServer("queue", r"(?:AMQP|RABBITMQ)_(?:URL|URI)", ("amqp",), 5672, "amqp://guest:guest@{link}/"),
)
_NAMES: Final = rf"({'|'.join(it.variables for it in _SERVERS)})\b"
_VALUE: Final = r"['\"`]([^'\"`\s]*)"
_READ: Final = re.compile(
    rf"{VARIABLE_OF}{_NAMES}"
    rf"(?:['\"\])]*\s*(?:,|\|\||\?\?|or\b)\s*{_VALUE})?"
)
_TAKEN: Final = re.compile(rf"\b{_NAMES}(?:\s*=\s*{_VALUE})?[^{{}}]*\}}\s*=\s*process\.env\b")
_FIELD: Final = re.compile(rf"^\s+{_NAMES}\s*:[^=\n]*(?:=\s*{_VALUE})?", re.MULTILINE | re.IGNORECASE)
_LINE: Final = re.compile(rf"^\s*(?:export\s+)?{_NAMES}\s*=\s*['\"]?([^\s'\"#]*)", re.MULTILINE)
_APART: Final = re.compile(
    rf"{VARIABLE_OF}({'|'.join(it.names for it in _SERVERS if it.names)})(HOST|PORT)\b"
    rf"(?:['\"\])]*\s*(?:,|\|\||\?\?|or\b)\s*(?:['\"`]([\w.-]*)|(\d+)))?"
)
"""A variable with the host or the port, and its default."""
EXAMPLES: Final = (".env.example", ".env.sample", ".env.template", "env.example")
"""Files that show the variables of a project without its secrets. `.env` is not read."""


def links_of(folder: Path, sources: Iterable[str]) -> dict[str, Any]:
    """The links of a spec to the servers whose variables a source reads, or an example of `.env` has."""
    texts = list(sources)
    found: dict[str, str] = {}
    for variable, value in (*_of_examples(folder), *(it for text in texts for it in _of_source(text))):
        found[variable] = found.get(variable) or value
    links: dict[str, Any] = {}
    ports = published(folder)
    for variable, value in found.items():
        if (made := _link(variable, value, ports)) is not None:
            name, to, address = made
            link = links.setdefault(name, {"to": to, "env": {}})
            link["env"] |= {variable: address} if link["to"] == to else {}
    return _links_of_two(texts, ports) | links


def _links_of_two(texts: list[str], ports: Mapping[int, int]) -> dict[str, Any]:
    """The links to servers whose host is in one variable and whose port is in another."""
    found: dict[str, dict[str, str]] = {}
    for begins, part, text, number in (it for source in texts for it in _APART.findall(source)):
        parts = found.setdefault(begins, {})
        parts[part] = parts.get(part) or text or number
    links: dict[str, Any] = {}
    for begins, parts in found.items():
        if {"HOST", "PORT"} <= parts.keys():
            server = next(it for it in _SERVERS if begins in it.names.split("|"))
            port = parts["PORT"] if parts["PORT"].isdigit() else ports.get(server.port, server.port)
            env = {f"{begins}HOST": "{link_host}", f"{begins}PORT": "{link_port}"}
            links.setdefault(server.link, {"to": f"{_here(parts['HOST'])}:{port}", "env": env})
    return links


def _here(host: str) -> str:
    """A name without a dot is this machine's, or that of a container whose port is published here."""
    return host if "." in host else "127.0.0.1"


def _of_examples(folder: Path) -> Iterator[tuple[str, str]]:
    """The variables of the examples of `.env`, each with its value."""
    for name in EXAMPLES:
        try:
            yield from _LINE.findall((folder / name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue


def _of_source(text: str) -> Iterator[tuple[str, str]]:
    """The variables that a source reads, each with its default; empty without one."""
    yield from _READ.findall(text)
    yield from _TAKEN.findall(text)
    if "BaseSettings" in text and "env_prefix" not in text:
        yield from ((name.upper(), value) for name, value in _FIELD.findall(text))


def _link(variable: str, value: str, ports: Mapping[int, int]) -> tuple[str, str, str] | None:
    """The link's name, `to`, and what the variable becomes; None for another server, or one that needs its own name."""
    named = next(it for it in _SERVERS if re.fullmatch(it.variables, variable))
    scheme, is_address, rest = value.partition("://")
    if not is_address or re.search(r"[{}<>$]", value):
        return named.link, f"127.0.0.1:{ports.get(named.port, named.port)}", named.address
    family = scheme.partition("+")[0]
    server = next((it for it in (named, *_SERVERS) if family in it.schemes), None)
    if server is None or scheme.endswith("+srv"):
        return None
    try:
        place = urlsplit(f"//{rest}")
        host, port = place.hostname or "localhost", place.port or server.port
    except ValueError:
        return None
    user, at, _ = place.netloc.rpartition("@")
    if "." not in host and host != "localhost":
        port = ports.get(port, port)
    return server.link, f"{_here(host)}:{port}", value.replace(place.netloc, f"{user}{at}{{link}}", 1)
