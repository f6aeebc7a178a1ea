"""The name server of a private network resolves the declared hosts and reports every other name."""

import socket
import struct

import pytest

from wedgehog.harness.sandbox.hosts.dns_stub import answer

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
