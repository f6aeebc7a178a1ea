"""Every registered fault of bytes does on every network what it says of itself."""

import os

import pytest

from wedgehog.harness.faults.base import registered
from wedgehog.harness.network.toxiproxy.server import NoServerError
from wedgehog.harness.testing.faults import Case, conformance_cases

CASES = conformance_cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_fault_does_what_it_says(case: Case):
    """To agents that wait, hang up and ask again, with a history that tells what was on their sockets."""
    try:
        case.run()
    except NoServerError as error:
        if os.environ.get("WEDGEHOG_REQUIRE_TOXIPROXY") == "1":
            raise
        pytest.skip(str(error))


def test_no_fault_is_left_out():
    """The cases come from the registry."""
    assert {case.fault.name for case in CASES} == set(registered("wire"))
    assert {case.fault.name for case in conformance_cases("drip", "cut")} == {"drip", "cut"}
