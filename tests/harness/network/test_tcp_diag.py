"""What the kernel says about sockets, and what follows from it."""

import contextlib
import os
import socket

import pytest

from wedgehog.harness.faults.base import Toxic
from wedgehog.harness.network.base import Proof
from wedgehog.harness.network.tcp_diag import CLOSE_WAIT, ESTABLISHED, FIN_WAIT_2, SocketCount, TcpDiag
from wedgehog.harness.network.toxiproxy.api import BadToxicError, checked
from wedgehog.harness.network.toxiproxy.delivery_proof import DownstreamWatch, SocketGone, Sockets

FAKE = ("127.0.0.1", 9000)
CONN, LISTEN = ("127.0.0.1", 4001), ("127.0.0.1", 8000)


def test_the_kernel_counts_both_ends_of_a_connection():
    """Bytes sent at one end are bytes received, and unread, at the other."""
    counts = TcpDiag.open()
    if counts is None:
        pytest.skip("this system has no netlink SOCK_DIAG")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client, listener.accept()[0] as server:
            server.sendall(b"x" * 1234)
            (theirs,) = counts.sockets([port])
            (ours,) = counts.sockets(remote_ports=[port])
            assert (theirs.sent, theirs.received, theirs.open) == (1234, 0, True)
            assert (ours.sent, ours.received, ours.unread) == (0, 1234, 1234)
            assert (theirs.remote, theirs.local) == (client.getsockname(), client.getpeername())
    counts.close()


def test_one_look_finds_the_sockets_of_several_ports_and_no_others():
    """By the local or by the remote port; without ports all are found."""
    counts = TcpDiag.open()
    if counts is None:
        pytest.skip("this system has no netlink SOCK_DIAG")
    with contextlib.ExitStack() as opened:
        listeners = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        one, two, three = ports = [it.getsockname()[1] for it in listeners]
        clients = [opened.enter_context(socket.create_connection(("127.0.0.1", port))) for port in ports]
        for it in listeners:
            opened.enter_context(it.accept()[0])

        def found(*asked: list[int]) -> set[tuple[int, int]]:
            return {(it.local[1], it.remote[1]) for it in counts.sockets(*asked)}

        own = [it.getsockname()[1] for it in clients]
        assert found([one, two], [two]) == {(one, own[0]), (two, own[1]), (own[1], two)}
        assert found([], [one, three]) == {(own[0], one), (own[2], three)}
        assert found([three]) == {(three, own[2])}
        assert found() >= {*zip(own, ports, strict=True), *zip(ports, own, strict=True)}
    counts.close()


@pytest.mark.parametrize(
    ("family", "address", "shown"),
    [
        (socket.AF_INET, ("198.51.100.7", 9), "198.51.100.7:9"),
        (socket.AF_INET6, ("2001:db8::7", 9), "[2001:db8::7]:9"),
        (socket.AF_INET6, ("::ffff:198.51.100.8", 9), "198.51.100.8:9"),
        (socket.AF_INET, ("127.0.0.1", 0), ""),
    ],
)
def test_a_socket_that_leads_away_is_listed_by_its_inode(family: int, address: tuple[str, int], shown: str):
    """Also while it is only connecting. The addresses are those of documentation, where nothing answers."""
    kernel = TcpDiag.open()
    if kernel is None:
        pytest.skip("this system has no netlink SOCK_DIAG")
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(family) as client:
        client.setblocking(False)
        try:
            client.connect(address if shown else listener.getsockname())
        except BlockingIOError:
            pass
        except OSError:
            pytest.skip("this machine has no route there")
        assert kernel.elsewhere().get(os.fstat(client.fileno()).st_ino, "") == shown
    kernel.close()


def agent(cookie: int, sent: int, state: int = ESTABLISHED, unacked: int = 0) -> SocketCount:
    return SocketCount(LISTEN, ("127.0.0.1", cookie), state, cookie, sent, 0, 0, unacked, 0)


def proxied(received: int, unread: int = 0) -> SocketCount:
    return SocketCount(CONN, FAKE, ESTABLISHED, 99, 0, received, 0, 0, unread)


def look(*agents: SocketCount, received: int = 700, unread: int = 0) -> Sockets:
    return Sockets({it.cookie: it for it in agents}, {CONN: proxied(received, unread)}, {})


def test_the_socket_that_moves_to_the_byte_is_the_proof():
    """Not before it is there, not before it is acknowledged, and not by a stranger."""
    watch = DownstreamWatch(CONN, 900, stalls=True, before=look(agent(1, 700), agent(2, 5)))
    assert watch.see(look(agent(1, 899), agent(2, 900))) is None
    assert watch.see(look(agent(1, 900, unacked=1))) is None
    assert watch.see(look(agent(1, 900))).bytes == 900
    assert watch.overran(look(agent(1, 901)))


def test_a_cut_is_proved_by_the_goodbye_or_by_what_the_server_counted():
    """FIN at the right count; a socket that vanished needs the server's count, those of others added."""
    watch = DownstreamWatch(CONN, 900, stalls=False, before=look(agent(1, 700), agent(2, 50)))
    assert watch.see(look(agent(1, 900))) is None
    assert watch.see(look(agent(1, 900, FIN_WAIT_2))) == Proof(900, "kernel counts: 900 bytes were sent on, then FIN")
    assert watch.see(look(agent(2, 50))) == SocketGone(900)
    assert watch.see(look()) == SocketGone(950)


def test_a_stall_that_lets_nothing_pass_is_proved_by_what_the_proxy_took():
    """No count moves, so the proxy must have read bytes that went nowhere."""
    watch = DownstreamWatch(CONN, 700, stalls=True, before=look(agent(1, 700)))
    assert watch.passes_nothing
    assert watch.see(look(agent(1, 700))) is None
    assert watch.see(look(agent(1, 700), received=800, unread=100)) is None
    assert watch.see(look(agent(1, 700), received=800)).bytes == 700


def test_a_link_is_quiet_when_all_that_was_written_has_been_sent_on():
    """A client that has said goodbye still counts; one that waits for bytes does not let it be quiet."""
    assert look(agent(1, 700, CLOSE_WAIT)).quiet([CONN], [])
    assert not look(agent(1, 699)).quiet([CONN], [])
    assert not look(agent(1, 700)).quiet([CONN], stalled=[1])


def test_a_toxic_with_a_wrong_attribute_is_refused():
    """Misspelt, missing or too many: all are our own mistakes."""
    good = Toxic("limit_data", {"bytes": 3})
    assert checked(good) is good
    for attributes in ({"byte": 3}, {}, {"bytes": 3, "rate": 1}):
        with pytest.raises(BadToxicError, match="limit_data takes bytes, not"):
            checked(Toxic("limit_data", attributes))
