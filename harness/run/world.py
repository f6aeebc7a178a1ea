"""The world of one run: its clock and network, the fake provider, the pages, and a link to each."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from wedgehog.fake_llm.observer import Observer
from wedgehog.fake_llm.script.protocol import Script
from wedgehog.fake_llm.server import FakeLLM
from wedgehog.harness.network.base import Address, Link, Network
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.scenario.plan import FaultPlan
from wedgehog.harness.services.pages import Page, PageServer


@dataclass(frozen=True)
class World:
    """What stands ready for the agent."""

    llm: FakeLLM
    links: Mapping[str, Link]

    def url(self, link: str) -> str:
        """The agent-facing address of a link; empty where there is none."""
        if link not in self.links:
            return ""
        host, port = self.links[link].address
        return f"http://{host}:{port}"


@contextlib.asynccontextmanager
async def open_world(
    network: Network,
    plan: FaultPlan,
    script: Script,
    observer: Observer,
    pages: Mapping[str, Page],
    time_scale: float,
    clock: Clock,
    page_asked: Callable[[str, int], None],
    upstreams: Mapping[str, Address] | None = None,
) -> AsyncIterator[World]:
    """Every link gets a proxy of its own, those to `upstreams` that stand already too; all is closed on the way out.

    Raises:
        NetworkError: a link could not be opened.
    """
    async with contextlib.AsyncExitStack() as stack:
        llm = await stack.enter_async_context(FakeLLM(script, observer))
        llm.waits_for_close = True
        links = {"llm": await network.open_link("llm", (llm.host, llm.port), *_what_may_strike(plan, "llm"))}
        stack.push_async_callback(links["llm"].close)
        if pages:
            server = await stack.enter_async_context(PageServer(pages, time_scale, clock, page_asked))
            links["tool:web"] = await network.open_link("tool:web", server.address, False)
            stack.push_async_callback(links["tool:web"].close)
        for name, upstream in (upstreams or {}).items():
            links[name] = await network.open_link(name, upstream, *_what_may_strike(plan, name))
            stack.push_async_callback(links[name].close)
        yield World(llm, links)


def _what_may_strike(plan: FaultPlan, link: str) -> tuple[bool, bool]:
    """Whether an RST may be struck on this link, and whether a request may."""
    return plan.resets(link), plan.hits_requests(link)
