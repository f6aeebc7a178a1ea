"""The expected verdict of a run (`expect:`), by agent."""

from typing import Literal

from pydantic import Field

from wedgehog.fake_llm.script.items import ConfigModel
from wedgehog.harness.record.verdict import Status
from wedgehog.harness.scenario.mistake import BadValueError


class FailConfig(ConfigModel):
    """`{fail: [names]}`: red, with exactly these invariants violated."""

    fail: list[str] = Field(min_length=1)


Expect = Literal["pass", "inconclusive", "error"] | FailConfig


def agents_in(key: str) -> list[str]:
    """The agents of one key in `expect`."""
    return [name.strip() for name in key.split(",")]


def by_agent(expect: dict[str, Expect]) -> dict[str, Expect]:
    """`buggy, fixed: pass` holds for both."""
    each: dict[str, Expect] = {}
    for key, outcome in expect.items():
        for name in agents_in(key):
            if not name:
                raise BadValueError(f"expected names of agents, separated by commas, found {key!r}", key)
            if name in each:
                raise BadValueError(f"{name!r} stands here a second time", key)
            each[name] = outcome
    return each


def expected_words(expect: Expect | None) -> str:
    """`pass`, or `fail: a;b`, or empty."""
    if expect is None:
        return ""
    return expect if isinstance(expect, str) else f"fail: {';'.join(sorted(expect.fail))}"


def meets(expect: Expect, verdict: Status, violated: tuple[str, ...]) -> bool:
    """Whether the verdict and the exact set of violated invariants are the expected ones."""
    if isinstance(expect, FailConfig):
        return verdict == "fail" and set(violated) == set(expect.fail)
    return verdict == expect and not violated
