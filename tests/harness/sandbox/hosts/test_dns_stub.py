"""The name server of a private network resolves the declared hosts and reports every other name."""

import asyncio
import socket
import struct
from types import SimpleNamespace

import pytest

from wedgehog.harness.faults.process_fault import HostHarm
from wedgehog.harness.sandbox.hosts.dns_stub import NameServer, answer

HOSTS = {"api.example.com": "127.64.0.1"}
A, AAAA = 1, 28


def query(name: str, kind: int = A, number: int = 0xBEEF) -> bytes:
    """A query as a resolver library writes it."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def asked(name: str, kind: int = A) -> tuple[int, bytes, list[str]]:
    """The response code, the bytes after the question, and the reported names."""
    unknown: list[str] = []
    words = query(name, kind)
    said = answer(words, HOSTS, unknown.append)
    number, flags, questions = struct.unpack_from("!HHH", said)
    assert (number, questions, bool(flags & 0x8000)) == (0xBEEF, 1, True)
    return flags & 0xF, said[len(words) :], unknown


def test_a_declared_host_has_its_address_whatever_its_case():
    """No name is reported."""
    code, record, unknown = asked("API.example.com")
    assert (code, unknown) == (0, []) and record[-4:] == socket.inet_aton("127.64.0.1")


def test_a_declared_host_exists_without_an_address_of_another_kind():
    """A query for an IPv6 address gets an empty answer, not NXDOMAIN."""
    assert asked("api.example.com", AAAA) == (0, b"", [])


def test_an_undeclared_name_does_not_exist_and_is_reported():
    """A subdomain of a declared host is not declared."""
    assert asked("statistics.example.com") == (3, b"", ["statistics.example.com"])
    assert asked("eu.api.example.com")[0] == 3


@pytest.mark.parametrize(
    "words", [b"", b"\0" * 11, query("api.example.com")[:-3], b"\0" * 12 + b"\xc0\x0c" + b"\0" * 9]
)
def test_a_malformed_question_is_an_error_and_no_crash(words: bytes):
    """The sender gets no answer."""
    with pytest.raises(ValueError):
        answer(words, HOSTS, lambda name: None)


@pytest.mark.parametrize(
    ("harm", "codes", "said"),
    [
        (HostHarm(lookup="no_such_name"), [3], "there is no such name"),
        (HostHarm(lookup="server_failure"), [2], "it had failed"),
        (HostHarm(lookup="no_answer"), [], "no answer"),
        (HostHarm(lookup="late", late_s=0.01), [0], "after 0.01 s"),
    ],
)
async def test_a_harmed_name_is_answered_so_and_no_other_name_is(harm: HostHarm, codes: list[int], said: str):
    """Each question is a proof; when the harm is gone, the name is found again."""
    sent: list[bytes] = []
    proofs: list[str] = []
    server = NameServer(HOSTS, lambda name: None)
    server.connection_made(SimpleNamespace(sendto=lambda data, addr: sent.append(data), is_closing=lambda: False))  # type: ignore[arg-type]
    server.harms["api.example.com"] = (harm, proofs.append)
    server.datagram_received(query("api.example.com"), ("127.0.0.1", 5))
    assert not sent if harm.late_s else len(sent) == len(codes)
    await asyncio.sleep(2 * harm.late_s)
    assert [it[3] & 0x0F for it in sent] == codes
    assert len(proofs) == 1 and said in proofs[0]
    server.datagram_received(query("statistics.example.com"), ("127.0.0.1", 5))
    del server.harms["api.example.com"]
    server.datagram_received(query("api.example.com"), ("127.0.0.1", 5))
    assert [it[3] & 0x0F for it in sent] == [*codes, 3, 0] and len(proofs) == 1
