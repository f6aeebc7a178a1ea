"""`links:` of a spec: the user's own servers behind links, and the variables that tell the agent where they are.

```yaml
links:
  db: {to: "127.0.0.1:5432", env: DATABASE_URL}
  cache: {to: "127.0.0.1:6379", env: {REDIS_URL: "redis://{link}/0"}}
```
"""

import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote

from pydantic import AfterValidator, Field

from wedgehog.harness.agents.spec_part import SpecPart
from wedgehog.harness.agents.templates import expand
from wedgehog.harness.network.base import Address
from wedgehog.harness.scenario.mistake import BadValueError

if TYPE_CHECKING:
    from wedgehog.harness.agents.spec import AgentSpec

CONNECT_S = 3.0
"""How long a server may take to accept our first connection."""
OWN_TEMPLATES = ("link", "link_host", "link_port")
"""Templates with a value in a link's own `env` only."""
LONG_SECRET = 6
"""A password of so many characters is hidden wherever it stands; a shorter one only in an address."""
_PLACE = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?")


class BackendError(ValueError):
    """A server cannot be reached through its link as the spec says; one line, without the value of a variable."""


def _host_and_port(text: str) -> str:
    found = _PLACE.fullmatch(text)
    if found is None or not found[2] or not 0 < int(found[2]) < 65536:
        # The text may be an address with a password in it, so it is not repeated.
        wanted = "host:port with a port from 1 to 65535, such as 127.0.0.1:5432"
        raise BadValueError(f"'to': expected {wanted}; user, password and database go into `env`")
    return text


VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class BackendLink(SpecPart):
    """A server of the user's own. `env`: the variable whose host and port are replaced, or variables as templates."""

    to: Annotated[str, AfterValidator(_host_and_port)]
    env: VariableName | dict[VariableName, str] = Field(default_factory=dict)

    @property
    def address(self) -> Address:
        """Where the server is."""
        host, _, port = self.to.rpartition(":")
        return host.strip("[]"), int(port)


Backends = dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")], BackendLink]


def template_of(name: str) -> str:
    """The template with the address of a link: `db_link` for `db`."""
    return f"{name.replace('-', '_')}_link"


def redirected(value: str, place: str) -> str | None:
    """`value`, a URL or host:port, with its host and port replaced by `place`; None if it is neither.

    >>> redirected("postgresql://u:p@db.example:5432/app?sslmode=disable", "127.0.0.1:4711")
    'postgresql://u:p@127.0.0.1:4711/app?sslmode=disable'
    >>> redirected("localhost:6379", "127.0.0.1:4711")
    '127.0.0.1:4711'
    """
    scheme, colons, rest = value.partition("://")
    if not colons:
        found = _PLACE.fullmatch(value)
        return place if found and found[2] else None
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in rest and "@" not in authority:  # a `/` in a password that is not escaped
        return None
    user, at, where = authority.rpartition("@")
    if not _PLACE.fullmatch(where):
        return None
    return f"{scheme}://{user}{at}{place}{rest[len(authority) :]}"


def link_env(spec: "AgentSpec", places: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """The variables of all links; `places` is host:port by the link's name. Errors: BackendError."""
    return {
        variable: value
        for name, link in spec.links.items()
        for variable, value in _variables(spec, name, link, places[name], values)
    }


def _variables(
    spec: "AgentSpec", name: str, link: BackendLink, place: str, values: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    if isinstance(link.env, str):
        yield link.env, _replaced(spec, name, link.env, place)
        return
    host, _, port = place.rpartition(":")
    own = dict(zip(OWN_TEMPLATES, (place, host, port), strict=True))
    yield from ((variable, expand(text, {**values, **own})) for variable, text in link.env.items())


def _replaced(spec: "AgentSpec", name: str, variable: str, place: str) -> str:
    where, template = f"{spec.path}: links: {name}", f'env: {{{variable}: "scheme://{{link}}/…"}}'
    value = spec.env.get(variable, os.environ.get(variable))
    if value is None:
        raise BackendError(f"{where}: the variable {variable} is not set; set it, or write {template}")
    if (found := redirected(value, place)) is None:
        raise BackendError(f"{where}: the value of {variable} is neither a URL nor host:port; write {template}")
    return found


def check_backends(specs: Iterable["AgentSpec"]) -> None:
    """Try every variable and server of `links` before anything is started. Errors: BackendError."""
    for spec in {spec.path: spec for spec in specs}.values():
        for name, link in spec.links.items():
            if isinstance(link.env, str):
                _replaced(spec, name, link.env, link.to)
            _reach(spec, name, link)


def _reach(spec: "AgentSpec", name: str, link: BackendLink) -> None:
    try:
        socket.create_connection(link.address, CONNECT_S).close()
    except OSError as wrong:
        why = wrong.strerror or str(wrong)
        raise BackendError(f"{spec.path}: links: {name}: cannot connect to {link.to}: {why}") from None


def passwords(spec: "AgentSpec") -> dict[str, str]:
    """What must not be stored, and what is stored instead: the passwords in the variables of `links`."""
    found: dict[str, str] = {}
    for password in filter(None, map(_password, _values(spec))):
        for written in {password, unquote(password)}:
            found |= {f":{written}@": ":***@"} | ({written: "***"} if len(written) >= LONG_SECRET else {})
    return found


def _values(spec: "AgentSpec") -> Iterator[str]:
    for link in spec.links.values():
        if isinstance(link.env, str):
            yield spec.env.get(link.env, os.environ.get(link.env, ""))
        else:
            yield from link.env.values()


def _password(value: str) -> str:
    """The password of a URL; empty without one."""
    user, at, _ = value.partition("://")[2].rpartition("@")
    return user.partition(":")[2] if at else ""
