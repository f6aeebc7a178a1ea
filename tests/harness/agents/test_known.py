"""Known runtimes: one file each, installed side by side, named with or without a version."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from wedgehog.harness.agents import known_runtimes as installing
from wedgehog.harness.agents import runtime_install as places
from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.known_runtimes import (
    InstallError,
    UnknownRuntimeError,
    install,
    known,
    named,
    programs,
    ready,
    remove,
)
from wedgehog.harness.agents.runtime_install import MARK, agents_cache, node_package, ripgrep_package
from wedgehog.harness.agents.spec import at_version, load_spec
from wedgehog.harness.agents.surroundings import prepare
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.scenario.document import BadFileError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; installations of this machine are not seen."""
    monkeypatch.setattr(places.platformdirs, "user_cache_dir", lambda name: str(tmp_path / "cache" / name))
    return agents_cache()


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that an installation would have run."""
    seen: list[list[str]] = []

    def run(argv: Sequence[str], place: Path) -> None:
        seen.append([str(part) for part in argv])

    monkeypatch.setattr(installing, "_run", run)
    monkeypatch.setattr(installing.venv, "create", lambda *_, **__: None)
    monkeypatch.setattr(installing.shutil, "which", lambda name: f"/bin/{name}")
    return seen


def put(name: str, version: str) -> Path:
    """Create what looks like an installation."""
    place = agents_cache() / name / version
    place.mkdir(parents=True, exist_ok=True)
    (place / MARK).write_text(json.dumps({"name": name, "version": version}))
    for file in programs(at_version(known()[name], version)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return place


def test_every_file_is_a_runtime_with_a_licence_and_the_name_of_its_file():
    """The content of `wedgehog agents`."""
    stock = {"codex", "pi", "opencode", "gemini-cli", "cn", "pydantic-ai", "openai-agents", "langgraph", "tunacode"}
    assert stock | {"agno", "openai-agents-js", "openclaw", "strands", "vercel-ai"} <= set(known())
    assert [*known()] == sorted(known())
    for name, spec in known().items():
        assert spec.name == name and spec.runtime is not None and spec.runtime.licence
        assert spec.runtime.version not in spec.runtime.tried
        drivers = [part for part in spec.command or () if "{here}" in part]
        assert all((spec.here / part.replace("{here}/", "")).is_file() for part in drivers)


def test_a_version_is_part_of_the_name(cache: Path):
    """Two releases are two rows of one table, each with its own folder."""
    old, new = named("tunacode@0.2.0"), named("tunacode@0.2.1")
    assert (old.name, old.family, old.version) == ("tunacode@0.2.0", "tunacode", "0.2.0")
    assert (old.install, new.install) == (cache / "tunacode" / "0.2.0", cache / "tunacode" / "0.2.1")


NO_VERSIONS = (
    "",
    ".",
    "..",
    "../..",
    "../../x",
    "1.0/../..",
    "/tmp/x",
    "1\\2",
    "-1.0",
    "--version",
    "1 0",
    "1.0\n",
    "latest",
)


@pytest.mark.parametrize("version", NO_VERSIONS)
def test_a_version_names_no_other_folder(cache: Path, version: str):
    """A version becomes a folder's name and is passed to the registry."""
    kept = put("codex", "0.1.0")
    with pytest.raises(UnknownRuntimeError) as caught:
        named(f"codex@{version}")
    said = f"codex@{version}: expected a version such as 1.2.3, found {version!r}"
    assert str(caught.value) == said
    with pytest.raises(UnknownRuntimeError):
        ready(f"codex@{version}")
    with pytest.raises(ValueError, match="expected a version"):
        remove("codex", version)
    assert (kept / MARK).is_file() and list(cache.parent.iterdir()) == [cache]


def test_no_version_is_the_file_as_it_is(cache: Path):
    """A stored run of a user's own copy of a spec uses it: the name stays as in the file."""
    again = at_version(known()["pi"], "")
    assert (again.name, again.version) == ("pi", known()["pi"].version)


def test_a_folder_that_is_no_version_is_not_taken_for_one(cache: Path):
    """An older release of Wedgehog created such folders."""
    (cache / "codex" / "latest").mkdir(parents=True)
    (cache / "codex" / "latest" / MARK).write_text("{}")
    assert named("codex").version == known()["codex"].version


def test_without_a_version_an_installed_one_is_chosen(cache: Path):
    """The file's default if installed, else the newest installed version, compared as numbers."""
    usual = known()["tunacode"].version
    assert named("tunacode").version == usual
    put("tunacode", "0.1.9")
    put("tunacode", "0.1.32")
    assert named("tunacode").version == "0.1.32"
    put("tunacode", usual)
    assert named("tunacode").version == usual


def test_an_unknown_or_missing_runtime_is_one_line(cache: Path):
    """With a suggestion, or with the command that installs it."""
    with pytest.raises(UnknownRuntimeError, match="did you mean 'tunacode'"):
        named("tunacod@1.0")
    with pytest.raises(UnknownRuntimeError, match="known runtimes: agent-framework, agno, autogen, claude-acp"):
        named("nothing-like-it")
    with pytest.raises(UnknownRuntimeError, match=r"wedgehog agents install codex@0\.1\.0"):
        ready("codex@0.1.0")
    put("codex", "0.1.0")
    assert ready("codex@0.1.0").version == "0.1.0"


def test_a_runtime_in_another_setting_shares_its_installations(cache: Path, ran: list[list[str]]):
    """The variant with twelve keys is the same release, so one installation serves both names."""
    one, other = named("openclaw@2026.5.3"), named("openclaw-12-keys@2026.5.3")
    assert one.install == other.install == cache / "openclaw" / "2026.5.3"
    with pytest.raises(UnknownRuntimeError, match=r"openclaw-12-keys@2026\.5\.3 is not installed"):
        ready("openclaw-12-keys@2026.5.3")
    install(one, lambda line: None)
    put("openclaw", "2026.5.3")
    assert ready("openclaw-12-keys@2026.5.3").name == "openclaw-12-keys@2026.5.3"
    install(other, lambda line: None)
    assert len(ran) == 1, "it is installed"
    put("openclaw", "2026.9.6")
    assert named("openclaw-12-keys").version == known()["openclaw-12-keys"].version
    for spec in known().values():
        if spec.runtime is not None and spec.runtime.same_as is not None:
            of = known()[spec.runtime.same_as].runtime
            assert of is not None and (of.npm, of.pip, of.node, of.ripgrep) == (
                spec.runtime.npm,
                spec.runtime.pip,
                spec.runtime.node,
                spec.runtime.ripgrep,
            )


def test_an_unavailable_package_is_replaced_by_files_of_ours(cache: Path, ran: list[list[str]]):
    """An override for each; install scripts do not run if the file says so."""
    place = install(named("openclaw@2026.5.3"), lambda line: None)
    assert "--ignore-scripts" in ran[0] and f"{node_package()}@22" == ran[0][-1]
    overrides = json.loads((place / "package.json").read_text())["overrides"]
    assert set(overrides) == {"libsignal", "cssomnom"}
    stub = Path(overrides["libsignal"].removeprefix("file:"))
    assert json.loads((stub / "package.json").read_text())["name"] == "libsignal" and (stub / "src/curve.js").is_file()


def test_an_agent_that_searches_with_ripgrep_gets_it_from_npm(cache: Path, ran: list[list[str]], tmp_path: Path):
    """Else it downloads it when its model searches first, and without a network that search fails."""
    place = install(named("opencode@1.18.33"), lambda line: None)
    assert ran[0][-2:] == ["opencode-ai@1.18.33", f"{ripgrep_package()}@1.18.0"]
    put("opencode", "1.18.33")
    where = AgentContext(tmp_path / "run", "http://127.0.0.1:1", "k", "s", "r", tmp_path / "log", WallClock())
    path = prepare(ready("opencode"), where).env["PATH"].split(":")
    assert path[:2] == [f"{place}/node_modules/.bin", f"{place}/node_modules/{ripgrep_package()}/bin"]


def test_an_installation_that_did_not_end_counts_as_none(cache: Path):
    """The mark is written last."""
    (cache / "codex" / "0.1.0" / "node_modules").mkdir(parents=True)
    with pytest.raises(UnknownRuntimeError, match="not installed"):
        ready("codex@0.1.0")


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("pi", "node_modules/.bin/pi"),
        ("pi", f"node_modules/{node_package()}/bin/node"),
        ("openclaw", "node_modules/openclaw/openclaw.mjs"),
        ("opencode", f"node_modules/{ripgrep_package()}/bin/rg"),
        ("tunacode", "venv/bin/python"),
    ],
)
def test_an_installation_that_lost_its_program_says_how_to_renew_it(cache: Path, name: str, lost: str):
    """The spec is not blamed."""
    version = known()[name].version
    place = put(name, version)
    assert ready(name).version == version
    (place / lost).unlink()
    with pytest.raises(UnknownRuntimeError) as caught:
        ready(name)
    again = f"wedgehog agents install {name}@{version} --again"
    assert str(caught.value) == f"{name}@{version} is incomplete, {place / lost} is missing: {again}"


def test_npm_packages_go_into_a_folder_of_their_own_with_the_node_they_need(cache: Path, ran: list[list[str]]):
    """A package that is unavailable and not needed is replaced by an empty one."""
    said: list[str] = []
    place = install(named("pi@0.87.1"), said.append)
    (argv,) = ran
    assert argv[:4] == ["/bin/npm", "install", "--prefix", str(place)]
    assert argv[-2:] == ["@earendil-works/pi-coding-agent@0.87.1", f"{node_package()}@24"]
    assert json.loads((place / MARK).read_text())["version"] == "0.87.1"
    assert said[-1] == f"installed pi@0.87.1: {place}"
    assert install(named("pi@0.87.1"), said.append) == place and len(ran) == 1, "it is installed"
    install(named("pi@0.87.1"), said.append, again=True)
    assert len(ran) == 2


def test_python_packages_go_into_an_environment_of_their_own(cache: Path, ran: list[list[str]]):
    """With the pip of that environment."""
    place = install(named("tunacode@0.2.0"), lambda line: None)
    (argv,) = ran
    assert argv[0].startswith(str(place / "venv")) and argv[1:4] == ["-m", "pip", "install"]
    assert argv[-1] == "tunacode-cli==0.2.0"
    assert remove("tunacode", "0.2.0") and not remove("tunacode", "0.2.0")


def test_an_installation_that_fails_says_why_and_leaves_no_mark(cache: Path, monkeypatch: pytest.MonkeyPatch):
    """The last lines of npm's output, and the path of the log."""
    broken = cache / "npm"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\necho one\necho no such package >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(installing.shutil, "which", lambda name: str(broken))
    with pytest.raises(InstallError, match=r"npm failed: one \| no such package \(full output: .*install.log\)"):
        install(named("cn@1.5.47"), lambda line: None)
    assert not (cache / "cn" / "1.5.47" / MARK).exists()
    monkeypatch.setattr(installing.shutil, "which", lambda name: None)
    with pytest.raises(InstallError, match="npm is not on PATH"):
        install(named("cn@1.5.47"), lambda line: None)


NPM_OFFLINE = """\
npm error code ENOTFOUND
npm error syscall getaddrinfo
npm error errno ENOTFOUND
npm error FetchError: request to http://no.invalid/cn failed, reason: getaddrinfo ENOTFOUND no.invalid
npm error     at ClientRequest.<anonymous> (/usr/lib/node_modules/npm/index.js:130:14)
npm error     at ClientRequest.emit (node:events:524:28) {
npm error   code: 'ENOTFOUND',
npm error   type: 'system'
npm error }
npm error
npm error If you are behind a proxy, please make sure that the 'proxy' config is set properly.  See: 'npm help config'
npm error A complete log of this run can be found in: /root/.npm/_logs/debug-0.log
"""
NPM_SAYS = (
    "npm failed: code ENOTFOUND | syscall getaddrinfo | errno ENOTFOUND"
    " | FetchError: request to http://no.invalid/cn failed, reason: getaddrinfo ENOTFOUND no.invalid (full output: "
)
PIP_OFFLINE = """\
WARNING: Retrying (Retry(total=1)) after connection broken by 'Connection refused': /simple/cn/
WARNING: Retrying (Retry(total=0)) after connection broken by 'Connection refused': /simple/cn/
ERROR: Could not find a version that satisfies the requirement cn==1 (from versions: none)
ERROR: No matching distribution found for cn==1
"""
PIP_SAYS = (
    "npm failed: WARNING: Retrying (Retry(total=0)) after connection broken by 'Connection refused': /simple/cn/"
    " | ERROR: Could not find a version that satisfies the requirement cn==1 (from versions: none)"
    " | ERROR: No matching distribution found for cn==1 (full output: "
)
CRASHED = "ERROR: Exception:\nTraceback (most recent call last):\n  File x\nOSError: no space left\n"
CRASH_SAYS = "npm failed: ERROR: Exception: | OSError: no space left (full output: "


@pytest.mark.parametrize(("printed", "said"), [(NPM_OFFLINE, NPM_SAYS), (PIP_OFFLINE, PIP_SAYS), (CRASHED, CRASH_SAYS)])
def test_the_reason_is_taken_from_the_output_of_npm_and_pip(
    cache: Path, monkeypatch: pytest.MonkeyPatch, printed: str, said: str
):
    """Without traces and advice."""
    broken = cache / "npm"
    broken.parent.mkdir(parents=True)
    broken.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}END\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(installing.shutil, "which", lambda name: str(broken))
    with pytest.raises(InstallError) as caught:
        install(named("cn@1.5.47"), lambda line: None)
    assert str(caught.value).startswith(said)


def test_its_own_programs_come_first_in_its_path(cache: Path, tmp_path: Path):
    """Its own Node comes before the machine's."""
    place = put("pi", "0.87.1")
    where = AgentContext(tmp_path / "run", "http://127.0.0.1:1", "k", "s", "r", tmp_path / "log", WallClock())
    around = prepare(ready("pi"), where)
    node, programs, *rest = around.env["PATH"].split(":")
    assert (node, programs) == (f"{place}/node_modules/{node_package()}/bin", f"{place}/node_modules/.bin") and rest
    assert around.fill("{bin} {install} {version}") == f"{programs} {place} 0.87.1"


@pytest.mark.parametrize(
    ("runtime", "said"),
    [
        ("{version: '1', licence: MIT}", "expected either `npm` or `pip`"),
        ("{npm: [a], pip: [b], version: '1', licence: MIT}", "expected either `npm` or `pip`"),
        ("{npm: [a], version: latest, licence: MIT}", "expected a version such as 1.2.3, found 'latest'"),
        ("{npm: [a], version: 0.30, licence: MIT}", 'a version stands in quotes: "0.3"'),
    ],
)
def test_a_runtime_names_one_registry_and_one_version(tmp_path: Path, runtime: str, said: str):
    """One registry, one version."""
    path = tmp_path / "a.yaml"
    path.write_text(f"name: a\nwire: anthropic\ncommand: [x, '{{message}}']\nruntime: {runtime}\n")
    with pytest.raises(BadFileError, match=r"a.yaml:4: .*") as caught:
        load_spec(path)
    assert said in str(caught.value)


def test_a_runtime_without_a_source_cannot_be_installed(tmp_path: Path):
    """A user's own spec has no `runtime`."""
    path = tmp_path / "a.yaml"
    path.write_text("name: a\nwire: anthropic\ncommand: [x, '{message}']\n")
    with pytest.raises(InstallError, match="does not say how to install a"):
        install(load_spec(path), lambda line: None)


def test_the_machines_node_package_has_a_known_shape(monkeypatch: pytest.MonkeyPatch):
    """As the registry names them."""
    machine: Any = places.platform
    for name, expected in [("x86_64", "x64"), ("aarch64", "arm64")]:
        monkeypatch.setattr(machine, "machine", lambda name=name: name)
        assert node_package().endswith(f"-{expected}")
