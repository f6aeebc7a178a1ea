"""Agents that know their https hosts by heart, unmodified: they reach the fake, and no other server."""

import csv
import shutil
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import BadCertificateShown, HostRefused
from wedgehog.harness.record.history import History, read
from wedgehog.harness.sandbox.disk import disk_unavailable_reason
from wedgehog.harness.sandbox.namespaces import network_unavailable_reason

HERE = Path(__file__).parent
HOSTS = {"api.anthropic.com": "llm", "api.openai.com": "llm"}
SPEAKS = {"anthropic": "anthropic", "openai": "openai-chat"}
PYTHON, NODE = ("urllib", "httpx"), ("https", "fetch")
BARE = {"urllib": ("-S", "-E"), "httpx": ()}
"""What a program of the standard library need not import."""

Runs = dict[tuple[str, str], tuple[dict[str, str], History]]
Play = Callable[..., Runs]


@pytest.fixture(autouse=True)
def _needs_namespaces() -> None:
    if network_unavailable_reason():
        pytest.skip(network_unavailable_reason())


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """The commands need not import this each."""
    return environment | {"WEDGEHOG_TEST_IMPORTS": "trustme"}


@pytest.fixture
def play(wedgehog: Any, told: Any, tmp_path: Path) -> Play:
    """Plays stories against programs with a host by heart, all in one campaign."""

    def spec(way: str, wire: str, more: dict[str, Any]) -> str:
        if way in NODE and shutil.which("node") is None:
            pytest.skip("no node on this machine")
        program = (
            ["node", str(HERE / "believer.js")] if way in NODE else ["{python}", *BARE[way], str(HERE / "believers.py")]
        )
        words = {"name": f"{way}-{wire}", "wire": SPEAKS[wire], "command": [*program, way, wire, "{message}"]}
        words |= {"env": {"KEY": "{key}"}, "hosts": HOSTS, "recover_s": 0, **more}
        (tmp_path / f"{way}-{wire}.yaml").write_text(yaml.safe_dump(words))
        return f"{way}-{wire}.yaml"

    def played(
        agents: list[tuple[str, str]], *options: str, more: dict[str, Any] | None = None, **stories: Any
    ) -> Runs:
        names = [told(name, **words) for name, words in stories.items()]
        chosen = [word for way, wire in agents for word in ("--agent", spec(way, wire, more or {}))]
        ran = wedgehog("run", *names, *chosen, "--jobs=4", *options)
        assert ran.returncode in (0, 1, 3) and "Traceback" not in ran.stderr, ran.stderr
        folder = (tmp_path / "runs" / "latest").resolve()
        with (folder / "summary.csv").open(newline="") as file:
            rows = {(row["scenario"], row["agent"]): row for row in csv.DictReader(file)}
        for row in rows.values():
            row["run_dir"] = str(folder / row["run_dir"])
        return {key: (row, read(Path(row["run_dir"]) / "history.jsonl")) for key, row in rows.items()}

    return played


@pytest.mark.parametrize("ways", [PYTHON, NODE], ids=["python", "node"])
def test_a_program_with_hard_coded_hosts_reaches_the_fake_and_no_other_host(play: Play, ways: tuple[str, str]):
    """Both providers, by their own names, over TLS; what is not declared does not exist, and is named once."""
    agents = [(way, wire) for way in ways for wire in SPEAKS]
    runs = play(agents, "--network=embedded", plain={})
    assert len(runs) == len(agents)
    for row, history in runs.values():
        assert row["verdict"] == "pass" and row["answered"] == "True", row
        assert [event.host for event in history.of(HostRefused)] == ["statistics.example.com"]


@pytest.mark.parametrize("network", ["embedded", "toxiproxy"], indirect=True)
@pytest.mark.parametrize("way", ["urllib", "https"])
def test_faults_strike_the_plain_bytes_behind_tls(play: Play, network: str, way: str):
    """A stall, a FIN and an RST at byte 57 of the body let 57 decrypted bytes through, and only the stall is silent."""
    fault = {"link": "llm", "at": {"byte": 57}}
    stories = {
        name: {"faults": [{**fault, "do": do}]}
        for name, do in {
            "stalls": {"stall": "forever"},
            "ends": {"cut": "fin"},
            "resets": {"cut": "rst"},
        }.items()
    }
    runs = play([(way, "anthropic")], network, **stories)
    said = {name: runs[name, f"{way}-anthropic"][1].turns[0].end.error for name in stories}
    assert all("after 57 bytes" in words for words in said.values()), said
    assert [name for name, words in said.items() if "Timeout" in words] == ["stalls"], said
    for row, history in runs.values():
        assert row["verdict"] == "pass" and len(list(history.of(FaultFired))) == 1, row


def test_an_agent_that_does_not_take_our_certificate_is_an_error_that_says_so(play: Play):
    """Nobody must guess why no request arrived."""
    runs = play(
        [("urllib", "anthropic")],
        "--network=embedded",
        more={"env": {"KEY": "{key}", "SSL_CERT_FILE": "/dev/null"}},
        plain={},
    )
    ((row, _),) = runs.values()
    assert row["verdict"] == "error"
    said = (Path(row["run_dir"]) / "verdicts.json").read_text()
    assert "api.anthropic.com (the agent does not accept our certificate" in said and "unknown ca" in said


def test_a_declared_host_is_reached_from_a_small_disk_too(play: Play):
    """Both need namespaces, one inside the other: the reply comes, and so does the full disk."""
    if disk_unavailable_reason():
        pytest.skip(disk_unavailable_reason())
    full = {"link": "agent", "at": {"phase": "headers"}, "do": "disk_full"}
    runs = play([("urllib", "anthropic")], "--network=embedded", full={"faults": [full]})
    ((row, history),) = runs.values()
    assert row["verdict"] == "pass", row
    assert "ENOSPC" in next(history.of(FaultFired)).proof


HARMS: dict[str, Any] = {
    "no-name": {"dns_error": "no_such_name"},
    "failure": {"dns_error": "server_failure"},
    "silence": {"dns_error": "no_answer"},
    "expired": {"bad_certificate": "expired"},
    "other": {"bad_certificate": "wrong_name"},
    "unknown": {"bad_certificate": "unknown_ca"},
}
AT_CONNECT = {"link": "llm", "at": {"phase": "connect"}}


@pytest.mark.parametrize("way", ["urllib", "https"])
def test_a_name_that_is_not_found_and_a_bad_certificate_end_in_an_error_and_are_gone_afterwards(play: Play, way: str):
    """Each leaves its proof; a late answer does no harm. The next message is answered."""
    stories = {name: {"faults": [{**AT_CONNECT, "do": do}]} for name, do in HARMS.items()}
    late = {"faults": [{**AT_CONNECT, "do": {"dns_late": 0.5}}]}
    runs = play([(way, "anthropic")], "--network=embedded", late=late, **stories)
    proofs = {}
    for (story, _), (row, history) in runs.items():
        assert row["verdict"] == "pass", (story, row)
        assert bool(history.turns[0].end.error) == (story != "late"), story
        (fired,) = history.of(FaultFired)
        proofs[story] = fired.proof
        shown = {(event.flaw, event.accepted) for event in history.of(BadCertificateShown)}
        flaw = HARMS.get(story, {}).get("bad_certificate")
        assert shown == ({(flaw, False)} if flaw else set()), story
    assert "there is no such name" in proofs["no-name"] and "no answer" in proofs["silence"], proofs
    assert "after 0.5 s" in proofs["late"] and "refused it" in proofs["expired"], proofs


def test_an_agent_that_accepts_any_certificate_is_red(play: Play):
    """Any server that answers in the provider's place gets its key."""
    careless = {"env": {"KEY": "{key}", "NODE_TLS_REJECT_UNAUTHORIZED": "0"}}
    stories = {name: {"faults": [{**AT_CONNECT, "do": HARMS[name]}]} for name in ("expired", "other", "unknown")}
    runs = play([("https", "anthropic")], "--network=embedded", more=careless, **stories)
    violated = {story: row["violated"] for (story, _), (row, _) in runs.items()}
    assert violated == dict.fromkeys(stories, "certificate_checked")


ECHO_FIRST = """
import os, runpy, socket, sys

host, port = os.environ["ECHO"].rsplit(":", 1)
with socket.create_connection((host, int(port)), timeout=5) as server:
    server.sendall(b"ping")
    got = b"".join(iter(lambda: server.recv(99), b""))
if got != b"PING":
    sys.exit(f"Error: the server said {got}")
sys.argv = [sys.argv[1], "urllib", "anthropic", sys.argv[2]]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Echo(socketserver.StreamRequestHandler):
    """Says four bytes again, in capitals, and closes."""

    def handle(self) -> None:
        self.wfile.write(self.rfile.read(4).upper())


@pytest.mark.parametrize("network", ["embedded", "toxiproxy"], indirect=True)
def test_an_agent_with_hosts_reaches_its_own_server_through_a_link(play: Play, tmp_path: Path, network: str):
    """The link's address is the same inside the private network, and its faults fire there too."""
    (tmp_path / "echo_first.py").write_text(ECHO_FIRST)
    fault = {"link": "tcp:echo", "at": {"byte": 2}, "do": "cut"}
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        more = {
            "command": ["{python}", *BARE["urllib"], "{here}/echo_first.py", str(HERE / "believers.py"), "{message}"],
            "links": {"echo": {"to": f"127.0.0.1:{server.server_address[1]}", "env": {"ECHO": "{link}"}}},
        }
        runs = play([("urllib", "anthropic")], network, more=more, plain={}, cuts={"faults": [fault]})
        server.shutdown()
    (plain, _), (cut, history) = runs["plain", "urllib-anthropic"], runs["cuts", "urllib-anthropic"]
    assert (plain["verdict"], plain["answered"], cut["verdict"]) == ("pass", "True", "pass")
    assert "b'PI'" in history.turns[0].end.error and len(list(history.of(FaultFired))) == 1
