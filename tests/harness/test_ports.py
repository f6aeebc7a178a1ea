"""Ports for servers that must be told theirs."""

import socket

import pytest

from wedgehog.harness import ports


def test_no_port_is_given_twice():
    """Two services that are started at the same time must not meet on one port."""
    given = [ports.free_port() for _ in range(300)]
    assert len(set(given)) == 300
    assert all(ports.FIRST <= port < ports.LAST for port in given)


def test_a_port_that_somebody_listens_on_is_not_given(monkeypatch: pytest.MonkeyPatch):
    """It is passed over, and where all are taken that is said."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports, "FIRST", port)
        monkeypatch.setattr(ports, "LAST", port + 1)
        with pytest.raises(OSError, match="no free port"):
            ports.free_port()
