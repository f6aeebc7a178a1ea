"""The name server of an agent's own network: it knows the declared hosts, and names everybody else who is asked for."""

import socket
import struct

import pytest

from wedgehog.harness.sandbox.hosts.dns_stub import answer

HOSTS = {"api.example.com": "127.64.0.1"}
A, AAAA = 1, 28


def query(name: str, kind: int = A, number: int = 0xBEEF) -> bytes:
    """As a resolver library writes it."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def asked(name: str, kind: int = A) -> tuple[int, bytes, list[str]]:
    """The response's code, what stands behind the question, and who was named."""
    unknown: list[str] = []
    words = query(name, kind)
    said = answer(words, HOSTS, unknown.append)
    number, flags, questions = struct.unpack_from("!HHH", said)
    assert (number, questions, bool(flags & 0x8000)) == (0xBEEF, 1, True)
    return flags & 0xF, said[len(words) :], unknown


def test_a_declared_host_has_its_address_whatever_its_case():
    """And nobody is named."""
    code, record, unknown = asked("API.example.com")
    assert (code, unknown) == (0, []) and record[-4:] == socket.inet_aton("127.64.0.1")


def test_a_declared_host_exists_without_an_address_of_another_kind():
    """An IPv6 address is none, and no reason to give up."""
    assert asked("api.example.com", AAAA) == (0, b"", [])


def test_whoever_is_not_declared_does_not_exist_and_is_named():
    """Also what lies below a declared host."""
    assert asked("statistics.example.com") == (3, b"", ["statistics.example.com"])
    assert asked("eu.api.example.com")[0] == 3


@pytest.mark.parametrize(
    "words", [b"", b"\0" * 11, query("api.example.com")[:-3], b"\0" * 12 + b"\xc0\x0c" + b"\0" * 9]
)
def test_what_is_no_question_is_an_error_and_no_crash(words: bytes):
    """Whoever sends it gets no answer."""
    with pytest.raises(ValueError):
        answer(words, HOSTS, lambda name: None)
