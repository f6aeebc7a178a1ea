"""A process's connections are named by their links."""

import socket

import psutil

from wedgehog.harness.sandbox.process_info import peers_of


def test_connections_are_named_by_their_link_or_their_address_or_as_the_channel():
    """One to a link, one to another address, one accepted by us; a listening socket does not count."""
    with (
        socket.create_server(("127.0.0.1", 0)) as link,
        socket.create_server(("127.0.0.1", 0)) as other,
        socket.create_connection(link.getsockname()) as to_link,
        socket.create_connection(other.getsockname()) as to_other,
        link.accept()[0] as accepted,
    ):
        accepted.sendall(b"seven b")
        found = {peer.local: peer for peer in peers_of([psutil.Process()], {"llm": link.getsockname()})}
        mine, strange, came = (found["{}:{}".format(*it.getsockname())] for it in (to_link, to_other, accepted))
        assert (mine.link, mine.name, mine.state) == ("llm", "llm", "ESTABLISHED")
        assert (strange.link, strange.name) == ("", "{}:{}".format(*other.getsockname()))
        assert came.link == "channel"
        assert mine.unread in (7, None), "the kernel's own count, where it is available"


def test_an_ended_process_has_no_connections():
    """The process ends while it is read."""
    gone = psutil.Popen(["true"])
    gone.wait()
    assert peers_of([gone], {}) == []
