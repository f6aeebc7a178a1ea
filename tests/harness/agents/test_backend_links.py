"""`links:` of a spec: addresses are replaced in variables, and passwords stay out of what is stored."""

import re
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.agents.backend_links import BackendError, check_backends, link_env, passwords, redirected
from wedgehog.harness.agents.spec import AgentSpec, load_spec
from wedgehog.harness.record.events.run import Note
from wedgehog.harness.record.store import RunStore
from wedgehog.harness.scenario.document import BadFileError


@pytest.fixture
def spec(tmp_path: Path) -> Any:
    def write(links: Any, **more: Any) -> AgentSpec:
        path = tmp_path / "agent.yaml"
        path.write_text(yaml.safe_dump({"name": "a", "wire": "anthropic", "command": ["x"], "links": links, **more}))
        return load_spec(path)

    return write


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("postgresql://u:p@db.example:5432/app?sslmode=disable", "postgresql://u:p@127.0.0.1:4711/app?sslmode=disable"),
        ("postgresql://u:a%2Fb@db.example/app", "postgresql://u:a%2Fb@127.0.0.1:4711/app"),
        ("redis://localhost", "redis://127.0.0.1:4711"),
        ("http://[::1]:4318/v1/traces", "http://127.0.0.1:4711/v1/traces"),
        ("https://localhost:9200?x=a@b", None),
        ("http://localhost:9200/a:1", "http://127.0.0.1:4711/a:1"),
        ("localhost:6379", "127.0.0.1:4711"),
        ("localhost", None),
        ("mongodb://a:1,b:2/app", None),
        ("host=localhost port=5432", None),
        ("postgresql://u:pa/ss@db:5432/app", None),
    ],
)
def test_host_and_port_are_replaced_and_nothing_else(value: str, expected: str | None):
    """In a URL or alone; what is neither is not guessed at."""
    assert redirected(value, "127.0.0.1:4711") == expected


def test_a_variable_comes_from_the_spec_before_the_environment(spec: Any, monkeypatch: pytest.MonkeyPatch):
    """And a template needs no value; its other templates are filled too."""
    monkeypatch.setenv("A_URL", "redis://elsewhere:1/1")
    links = {
        "a": {"to": "h:1", "env": "A_URL"},
        "b": {"to": "h:2", "env": "B_URL"},
        "my-c": {"to": "h:3", "env": {"PGHOST": "{link_host}", "PGPORT": "{link_port}", "C": "x://{link}/{session}"}},
    }
    found = spec(links, env={"B_URL": "tcp://there:9"})
    places = {"a": "127.0.0.1:11", "b": "127.0.0.1:12", "my-c": "127.0.0.1:13"}
    assert link_env(found, places, {"session": "s1"}) == {
        "A_URL": "redis://127.0.0.1:11/1",
        "B_URL": "tcp://127.0.0.1:12",
        "PGHOST": "127.0.0.1",
        "PGPORT": "13",
        "C": "x://127.0.0.1:13/s1",
    }


@pytest.mark.parametrize(
    ("links", "says"),
    [
        ({"db": {"to": "postgresql://u:secret-word@h/db", "env": "A"}}, "'to': expected host:port"),
        ({"db": {"to": "localhost", "env": "A"}}, "'to': expected host:port"),
        ({"db": {"to": "h:70000", "env": "A"}}, "'to': expected host:port"),
        ({"db": {"to": "h:1"}}, "{db_link}"),
        ({"db": {"to": "h:1", "env": {"A": "{lnk}"}}}, "unknown template"),
        ({"DB": {"to": "h:1", "env": "A"}}, "links"),
    ],
)
def test_a_mistake_is_one_line_with_its_place_and_without_the_password(spec: Any, links: Any, says: str):
    """A user may have put a whole URL there."""
    with pytest.raises(BadFileError) as wrong:
        spec(links)
    assert says in str(wrong.value) and "secret-word" not in str(wrong.value)
    assert re.search(r"agent\.yaml:\d+: ", str(wrong.value)), str(wrong.value)


def test_its_own_template_has_a_value_in_every_key(spec: Any):
    """An agent may read the address from a file; other links' templates stay unknown."""
    assert spec({"my-db": {"to": "h:1"}}, files={"{home}/a": "db = {my_db_link}"}).links["my-db"].address == ("h", 1)
    with pytest.raises(BadFileError, match="unknown template"):
        spec({"db": {"to": "h:1", "env": "A"}}, files={"{home}/a": "{cache_link}"})


def test_an_unset_variable_and_an_absent_server_are_one_line_each(spec: Any, monkeypatch: pytest.MonkeyPatch):
    """Before anything is started; the value is not shown."""
    monkeypatch.delenv("DB_URL", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        found = spec({"db": {"to": place, "env": "DB_URL"}})
        with pytest.raises(BackendError, match=r"agent\.yaml: links: db: the variable DB_URL is not set"):
            check_backends([found])
        monkeypatch.setenv("DB_URL", "user=u password=secret-word")
        with pytest.raises(BackendError, match="neither a URL nor host:port") as wrong:
            check_backends([found])
        assert "secret-word" not in str(wrong.value)
        monkeypatch.setenv("DB_URL", "postgresql://u:secret-word@h/db")
        check_backends([found])
    with pytest.raises(BackendError, match=f"links: db: cannot connect to {place}: Connection refused"):
        check_backends([found])


def test_passwords_are_stored_nowhere(spec: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Neither as written nor as decoded; a short one is only hidden in an address, where it is known for what it is."""
    monkeypatch.setenv("A_URL", "x://u:se%40cret@h:1")
    found = spec({"a": {"to": "h:1", "env": "A_URL"}, "b": {"to": "h:2", "env": {"B_URL": "x://u:pw@{link}"}}})
    store = RunStore(tmp_path / "run", tmp_path / "bodies")
    store.hides |= passwords(found)
    store.write(Note(what="x://u:se%40cret@h:1 x://u:pw@h:2 se@cret pw"))
    body = store.keep_body(b'{"url": "x://u:se%40cret@h:1"}')
    (tmp_path / "run" / "agent.log").write_text("connecting to x://u:pw@h:2\n")
    store.hide_in("agent.log")
    store.close()
    kept = [(tmp_path / "run" / name).read_text() for name in ("history.jsonl", "agent.log")]
    kept.append((tmp_path / "bodies" / body).read_text())
    assert "x://u:***@h:1 x://u:***@h:2 *** pw" in kept[0]
    assert kept[1:] == ["connecting to x://u:***@h:2\n", '{"url": "x://u:***@h:1"}']


def test_an_agent_that_runs_already_cannot_have_links(spec: Any):
    """Its environment is not ours."""
    with pytest.raises(BadFileError, match="http: base"):
        spec({"db": {"to": "h:1", "env": "A"}}, command=None, http={"base": "http://127.0.0.1:1", "url": "/"})
