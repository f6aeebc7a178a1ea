"""The doctor: says where everything is and what is missing."""

from pathlib import Path

import pytest

from wedgehog.harness import doctor
from wedgehog.harness.network.server import Located


def test_what_is_there_is_said_with_its_place(monkeypatch: pytest.MonkeyPatch):
    """Python, ourselves, Toxiproxy, proof, a small disk, private hosts and processes, in this order."""
    monkeypatch.setattr(doctor, "locate", lambda: Located(Path("/opt/toxiproxy"), "PATH", "2.12.0", ()))
    found = list(doctor.findings())
    names = ["python", "wedgehog", "toxiproxy", "proof", "disk full", "private hosts", "processes"]
    assert [finding.what for finding in found] == names
    assert (found[2].ok, found[2].says) == (True, "2.12.0 at /opt/toxiproxy (PATH)")
    assert all(finding.says for finding in found)


def test_a_missing_toxiproxy_is_no_illness(monkeypatch: pytest.MonkeyPatch):
    """What was tried is said, and what will happen."""
    monkeypatch.setattr(doctor, "locate", lambda: Located(None, "", None, ("PATH: nothing there",)))
    finding = next(it for it in doctor.findings() if it.what == "toxiproxy")
    assert not finding.ok and finding.optional
    assert "PATH: nothing there" in finding.says and "embedded relay" in finding.says


def test_a_system_without_private_hosts_is_told_why_and_is_not_ill(monkeypatch: pytest.MonkeyPatch):
    """Only agents with `hosts` are skipped there."""
    monkeypatch.setattr(doctor, "why_no_hosts", lambda: "user namespaces do not work here: Operation not permitted")
    finding = next(it for it in doctor.findings() if it.what == "private hosts")
    assert (finding.ok, finding.optional) == (False, True) and "not permitted" in finding.says
