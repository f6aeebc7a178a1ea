"""The links that `wedgehog init` proposes, for the servers whose variables a project reads."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from wedgehog.harness.agents.spec import load_spec
from wedgehog.harness.commands.cli import app
from wedgehog.harness.commands.first_spec.source_servers import links_of

POSTGRES = {"to": "127.0.0.1:5432", "env": {"DATABASE_URL": "postgresql://postgres@{link}/postgres"}}


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ('pool = Pool(os.environ["DATABASE_URL"], size=2)', {"db": POSTGRES}),
        ("os.getenv('DATABASE_URL')", {"db": POSTGRES}),
        ("process.env.DATABASE_URL!", {"db": POSTGRES}),
        ("const { PORT, DATABASE_URL } = process.env", {"db": POSTGRES}),
        ("class Settings(BaseSettings):\n    database_url: str\n", {"db": POSTGRES}),
        ("class Settings(BaseSettings):\n    env_prefix = 'X_'\n    database_url: str\n", {}),
        ("print('set DATABASE_URL')", {}),
        ('os.environ["DATABASE_URL"] = url; os.environ["MY_DATABASE_URL_TOO"]', {"db": POSTGRES}),
        (
            'new Redis(process.env.REDIS_URL || "redis://localhost:6380/2", { a: 1 })',
            {"cache": {"to": "127.0.0.1:6380", "env": {"REDIS_URL": "redis://{link}/2"}}},
        ),
        (
            "os.environ.get('PG_DSN', 'postgresql+asyncpg://me:pw@postgres/bot?a=1')",
            {"db": {"to": "127.0.0.1:5432", "env": {"PG_DSN": "postgresql+asyncpg://me:pw@{link}/bot?a=1"}}},
        ),
        (
            "os.environ.get('DATABASE_URL') or 'mysql+pymysql://root@10.0.0.5:3307/x'",
            {"mysql": {"to": "10.0.0.5:3307", "env": {"DATABASE_URL": "mysql+pymysql://root@{link}/x"}}},
        ),
        ("os.environ.get('DATABASE_URL', 'sqlite:///chat.db')", {}),
        ("os.environ.get('REDIS_URL', 'rediss://far.example:6379')", {}),
        ("os.environ.get('MONGO_URL', 'mongodb+srv://far.example/x')", {}),
        ("os.environ.get('QDRANT_URL', 'https://far.example')", {}),
        (
            'os.environ["MONGO_URL"]; os.environ["QDRANT_URL"]',
            {
                "mongo": {"to": "127.0.0.1:27017", "env": {"MONGO_URL": "mongodb://{link}"}},
                "qdrant": {"to": "127.0.0.1:6333", "env": {"QDRANT_URL": "http://{link}"}},
            },
        ),
        (
            "os.environ['DATABASE_URL']; os.getenv('POSTGRES_URL', 'postgres://me@localhost:5544/other')",
            {"db": POSTGRES},
        ),
        (
            'os.environ["REDIS_URL"]; os.environ["REDIS_URI"]',
            {"cache": {"to": "127.0.0.1:6379", "env": dict.fromkeys(["REDIS_URL", "REDIS_URI"], "redis://{link}/0")}},
        ),
    ],
)
def test_a_variable_of_a_server_is_a_link(tmp_path: Path, text: str, links: dict[str, object]):
    """With the address that the source has, or else the usual one; not to a file, nor to a name that TLS proves."""
    assert links_of(tmp_path, [text]) == links


COMPOSE = """
services:
  db: {image: "postgres:16", ports: ["127.0.0.1:5433:5432", "9000-9001:9000-9001"]}
  redis: {image: redis, ports: [{target: 6379, published: "6380"}]}
  mysql: {ports: ["${MYSQL_PORT:-3310}:3306/tcp"]}
  web: {build: .}
"""


@pytest.mark.parametrize(
    ("text", "to"),
    [
        ("os.environ['DATABASE_URL']", "127.0.0.1:5433"),
        ("os.getenv('REDIS_URL', 'redis://redis:6379/1')", "127.0.0.1:6380"),
        ("os.getenv('MYSQL_URL')", "127.0.0.1:3310"),
        ("os.getenv('DATABASE_URL', 'postgresql://me@localhost:5432/x')", "127.0.0.1:5432"),
        ("os.getenv('DATABASE_URL', 'postgresql://me@db.example:5432/x')", "db.example:5432"),
        ("os.getenv('MONGO_URL')", "127.0.0.1:27017"),
    ],
)
def test_a_compose_file_says_at_which_port_a_server_is(tmp_path: Path, text: str, to: str):
    """Of a container and its name inside; not of an address that says where it is on this machine."""
    (tmp_path / "docker-compose.yml").write_text(COMPOSE)
    assert [it["to"] for it in links_of(tmp_path, [text]).values()] == [to]


@pytest.mark.parametrize(
    "broken", ["services: [", "services: {a: {ports: 1}}", "ports", "services: {a: {ports: [1, x]}}"]
)
def test_a_compose_file_that_says_no_port_changes_nothing(tmp_path: Path, broken: str):
    (tmp_path / "compose.yaml").write_text(broken)
    assert links_of(tmp_path, ["os.environ['DATABASE_URL']"]) == {"db": POSTGRES}


PAIR = {"PGHOST": "{link_host}", "PGPORT": "{link_port}"}


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("os.environ['PGHOST'], os.environ['PGPORT']", {"db": {"to": "127.0.0.1:5432", "env": PAIR}}),
        (
            "os.environ.get('PGHOST', 'localhost'), int(os.environ.get('PGPORT', '5434'))",
            {"db": {"to": "127.0.0.1:5434", "env": PAIR}},
        ),
        (
            "process.env.REDIS_HOST || '10.0.0.1', process.env.REDIS_PORT || 6381",
            {"cache": {"to": "10.0.0.1:6381", "env": {"REDIS_HOST": "{link_host}", "REDIS_PORT": "{link_port}"}}},
        ),
        ("os.environ['PGHOST']", {}),
        ("PGHOST, PGPORT = 1, 2", {}),
        ("os.environ['PGHOST'], os.environ['PGPORT'], os.environ['DATABASE_URL']", {"db": POSTGRES}),
    ],
)
def test_a_host_and_a_port_in_two_variables_are_a_link(tmp_path: Path, text: str, links: dict[str, object]):
    """Both must be read, because the link has a port of its own."""
    assert links_of(tmp_path, [text]) == links


@pytest.mark.parametrize("name", [".env.example", ".env.sample"])
def test_the_example_of_an_environment_says_where_the_server_is(tmp_path: Path, name: str):
    """Before a default in the source. The file with the secrets is not read."""
    (tmp_path / ".env").write_text("REDIS_URL=redis://:secret@localhost/1\n")
    (tmp_path / name).write_text("# the store\nexport DATABASE_URL='postgres://me@127.0.0.1:55432/bot' # local\nX=1\n")
    links = links_of(tmp_path, ["os.getenv('DATABASE_URL', 'postgres://you@db/bot')"])
    assert links == {"db": {"to": "127.0.0.1:55432", "env": {"DATABASE_URL": "postgres://me@{link}/bot"}}}


@pytest.mark.parametrize("value", ["postgres://me@${PG_HOST}:5432/bot", "postgres://<user>@<host>/bot", "..."])
def test_an_example_with_gaps_is_the_usual_address(tmp_path: Path, value: str):
    (tmp_path / ".env.example").write_text(f"DATABASE_URL={value}\n")
    assert links_of(tmp_path, []) == {"db": POSTGRES}


def test_the_spec_has_the_links_behind_a_sign_that_the_user_takes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A run needs the server, so the proposal alone changes nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(
        'import os, sys\nsys.argv, os.environ["DATABASE_URL"], os.environ["REDIS_URL"]\n'
    )
    assert CliRunner().invoke(app, ["init", "-y"]).exit_code == 0
    path = tmp_path / "agent.yaml"
    assert not load_spec(path).links
    path.write_text(path.read_text().replace("# links:", "links:"))
    assert {name: (it.to, it.env) for name, it in load_spec(path).links.items()} == {
        "db": ("127.0.0.1:5432", POSTGRES["env"]),
        "cache": ("127.0.0.1:6379", {"REDIS_URL": "redis://{link}/0"}),
    }
    assert set(yaml.safe_load(path.read_text())) == {"name", "wire", "command", "env", "links"}


def test_a_variable_that_the_command_line_sets_keeps_its_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The link replaces host and port in it: a spec may not say it twice."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("os.environ['REDIS_URL']; os.environ['MONGO_URL']")
    command = "REDIS_URL=redis://127.0.0.1:6379/7 python agent.py {message}"
    assert CliRunner().invoke(app, ["init", "-y", "--command", command]).exit_code == 0
    path = tmp_path / "agent.yaml"
    path.write_text(path.read_text().replace("# links:", "links:"))
    links = load_spec(path).links
    assert (links["cache"].env, links["mongo"].env) == ("REDIS_URL", {"MONGO_URL": "mongodb://{link}"})


def test_a_project_without_servers_has_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("import sys\nsys.argv")
    assert CliRunner().invoke(app, ["init", "-y"]).exit_code == 0
    assert "links" not in (tmp_path / "agent.yaml").read_text()
