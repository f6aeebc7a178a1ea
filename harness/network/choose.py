"""Select the network of a run: Toxiproxy where it is available, else the embedded relay and one line about it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from wedgehog.harness.network.base import Network
from wedgehog.harness.network.relay import EmbeddedNetwork

if TYPE_CHECKING:
    from wedgehog.harness.network.toxiproxy.server import Located

Mode = Literal["auto", "toxiproxy", "embedded"]

WHAT_TO_DO = "put `toxiproxy-server` 2.12.0 on PATH, name it in $WEDGEHOG_TOXIPROXY, or choose `--network embedded`"


@contextlib.asynccontextmanager
async def choose_network(
    mode: Mode,
    say: Callable[[str], None],
    *,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> AsyncIterator[Network]:
    """Open the network of `mode`, and its server if it needs one; `env` is the server's environment (WEDGEHOG_RUN).

    `auto` falls back to the embedded relay and passes the reason to `say`; `toxiproxy` raises NoServerError instead.
    """
    async with contextlib.AsyncExitStack() as stack:
        network: Network | None = None
        if mode != "embedded":
            from wedgehog.harness.network.toxiproxy.server import NoServerError  # its HTTP client takes long to import

            try:
                network = await stack.enter_async_context(_toxiproxy(say, env, log))
            except NoServerError as error:
                if mode == "toxiproxy":
                    raise NoServerError(f"{error}; {WHAT_TO_DO}") from error
                say(f"network: embedded relay, because there is no Toxiproxy ({error})")
        if network is None:
            network = await stack.enter_async_context(EmbeddedNetwork())
        yield network


@contextlib.asynccontextmanager
async def _toxiproxy(
    say: Callable[[str], None], env: Mapping[str, str] | None, log: Path | None
) -> AsyncIterator[Network]:
    from wedgehog.harness.network.toxiproxy.link import ToxiproxyNetwork
    from wedgehog.harness.network.toxiproxy.server import NoServerError, start

    found = await asyncio.to_thread(_locate_or_fetch, say)
    if found.path is None:
        raise NoServerError("; ".join(found.tried))
    async with start(found.path, env=env, log=log) as server, ToxiproxyNetwork(server.address) as network:
        yield network


def _locate_or_fetch(say: Callable[[str], None]) -> "Located":
    from wedgehog.harness.network.toxiproxy.server import fetch, locate

    found = locate()
    for problem in found.tried:
        if not problem.endswith("nothing there"):
            say(f"warning: {problem}")
    return found if found.path else fetch(say)
