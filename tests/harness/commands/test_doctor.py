"""The doctor: says where everything is and what is missing."""

from pathlib import Path

import pytest

from wedgehog.harness.commands import doctor
from wedgehog.harness.network.toxiproxy.server import Located
from wedgehog.harness.sandbox import stacks
from wedgehog.harness.services.mcp import host


def test_what_is_there_is_said_with_its_place(monkeypatch: pytest.MonkeyPatch):
    """Python, ourselves, Toxiproxy, proof, then what single scenarios need, in this order."""
    monkeypatch.setattr(doctor, "locate", lambda: Located(Path("/opt/toxiproxy"), "PATH", "2.12.0", ()))
    found = list(doctor.findings())
    needed, asked = ["python", "wedgehog", "toxiproxy", "proof"], ["disk full", "private hosts", "tool host", "stacks"]
    assert [finding.what for finding in found] == [*needed, *asked, "processes"]
    assert (found[2].ok, found[2].says) == (True, "2.12.0 at /opt/toxiproxy (PATH)")
    assert all(finding.says for finding in found)


def test_a_missing_toxiproxy_is_no_illness(monkeypatch: pytest.MonkeyPatch):
    """What was tried is said, and what will happen."""
    monkeypatch.setattr(doctor, "locate", lambda: Located(None, "", None, ("PATH: nothing there",)))
    finding = next(it for it in doctor.findings() if it.what == "toxiproxy")
    assert not finding.ok and finding.optional
    assert "PATH: nothing there" in finding.says and "embedded relay" in finding.says


@pytest.mark.parametrize(
    ("what", "why", "says"),
    [
        ("disk full", "disk_unavailable_reason", "user namespaces do not work here: Operation not permitted"),
        ("private hosts", "hosts_unavailable_reason", "certificates need the trustme package"),
        ("tool host", "tools_unavailable_reason", "the tool host needs the mcp package"),
        ("stacks", "stacks_unavailable_reason", "py-spy was refused"),
    ],
)
def test_what_only_some_scenarios_need_is_no_illness(monkeypatch: pytest.MonkeyPatch, what: str, why: str, says: str):
    """Why it can't be had is said; without it they are skipped, or say less."""
    monkeypatch.setattr(doctor, why, lambda: says)
    assert [(it.ok, it.optional, it.says) for it in doctor.findings() if it.what == what] == [(False, True, says)]


def test_a_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch):
    """What to type, not what to search for."""
    monkeypatch.setattr(host, "find_spec", lambda name: None)
    monkeypatch.setattr(stacks, "py_spy", lambda: None)
    assert (
        "mcp" in host.tools_unavailable_reason() and "pip install 'wedgehog[tools]'" in host.tools_unavailable_reason()
    )
    assert (
        "py-spy" in stacks.stacks_unavailable_reason()
        and "pip install 'wedgehog[forensics]'" in stacks.stacks_unavailable_reason()
    )


def test_a_py_spy_that_may_not_look_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """In its own words; one that may is no trouble."""
    program = tmp_path / "py-spy"
    program.write_text("#!/bin/sh\necho 'Permission Denied: try again with sudo' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(stacks, "py_spy", lambda: str(program))
    assert stacks.stacks_unavailable_reason() == "py-spy was refused: Permission Denied: try again with sudo"
    program.write_text("#!/bin/sh\ntrue\n")
    assert stacks.stacks_unavailable_reason() is None
