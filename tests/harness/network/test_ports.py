"""Ports for servers that need a fixed port."""

import socket
import subprocess
import sys

import pytest

from wedgehog.harness.network import ports

TAKE = (
    "from wedgehog.harness.network.ports import free_port as f; print(*[f() for _ in range(300)], flush=True); input()"
)


def test_a_port_comes_back_only_after_all_the_others():
    """Two services that are started at the same time must not meet on one, and a long campaign must not run out."""
    given = [ports.free_port() for _ in range(3 * ports.BLOCK)]
    assert all(ports.FIRST <= port < ports.LAST for port in given)
    apart = ports.BLOCK - 100  # (some may be taken by others)
    assert all(len(set(given[at : at + apart])) == apart for at in range(len(given) - apart))


def test_processes_side_by_side_give_ports_of_their_own():
    """Three campaigns on one machine, none of whose services has come up yet."""
    command = (sys.executable, "-c", TAKE)
    takers = [subprocess.Popen(command, stdin=-1, stdout=-1, text=True) for _ in range(3)]
    given = [set(taker.stdout.readline().split()) for taker in takers if taker.stdout]
    for taker in takers:
        taker.communicate("\n")
    assert [len(each) for each in given] == [300] * 3
    assert len(set.union(*given)) == 900


def test_a_port_that_somebody_listens_on_is_not_given(monkeypatch: pytest.MonkeyPatch):
    """A taken port is skipped; if all are taken, an error says so."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports, "_ports", lambda pid: iter([port] * ports.BLOCK))
        with pytest.raises(OSError, match="no free port"):
            ports.free_port()
