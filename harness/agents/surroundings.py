"""Prepare an agent's environment: its own folders, the files of its spec, and clean environment variables."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from wedgehog.fake_llm.reply import OAUTH_PATH
from wedgehog.harness.agents.backend_links import BackendError, link_env, template_of
from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.runtime_install import bin_of, path_of
from wedgehog.harness.agents.spec import AgentSpec, folder_of
from wedgehog.harness.agents.spec_checks import listens
from wedgehog.harness.agents.templates import expand
from wedgehog.harness.network.ports import free_port
from wedgehog.harness.sim.loop import free_sim_port
from wedgehog.harness.stdio_proxy import ADDRESS_FILE, ADDRESS_VARIABLE
from wedgehog.harness.stdio_proxy.launch import write_launcher

GIVEN = ("PATH", "LANG", "TERM")
"""What the agent inherits of our environment; not keys, not proxies, nothing else."""


def prepare(spec: AgentSpec, context: AgentContext) -> Surroundings:
    """Create the folders, copy the workdir, write the files. Errors: AgentError."""
    for folder in (context.home, context.cwd, context.tmp, context.session_dir):
        folder.mkdir(parents=True, exist_ok=True)
    values = _values(spec, context)
    surroundings = Surroundings(values, _environment(spec, context, values), f"{context.run_id}/agent")
    _prepare_pipes(context, surroundings.mark)
    _copy_workdir(spec, context)
    for name, content in spec.files.items():
        _write(context, surroundings.fill(name), surroundings.fill(content))
    return surroundings


def prepare_session(spec: AgentSpec, context: AgentContext, first: Surroundings) -> Surroundings:
    """The surroundings of a further session: its own name and folder, and else what the first one has."""
    context.session_dir.mkdir(parents=True, exist_ok=True)
    values = {**first.values, "session": context.session, "session_dir": str(context.session_dir)}
    return Surroundings(values, _environment(spec, context, values), first.mark)


def plant(spec: AgentSpec, context: AgentContext, lines: bytes) -> Path:
    """Append `lines` to the session's file, creating it if needed; return the file. Errors: AgentError."""
    file = _inside(context, expand(spec.session_file or "", _values(spec, context)), "session_file")
    real = context.outside(file)
    real.parent.mkdir(parents=True, exist_ok=True)
    before = real.read_bytes() if real.exists() else b""
    with real.open("ab") as session:
        session.write(b"\n" * (before[-1:] not in (b"", b"\n")) + lines)
    return file


def session_files(spec: AgentSpec, context: AgentContext) -> list[Path]:
    """The existing files that match the spec's `session_files`."""
    return files_like(session_patterns(spec, context), context)


def session_patterns(spec: AgentSpec, context: AgentContext) -> list[Path]:
    """The spec's `session_files` as paths with wildcards."""
    values = _values(spec, context)
    return [context.cwd / expand(pattern, values) for pattern in spec.session_files]


def files_like(patterns: Iterable[Path], context: AgentContext) -> list[Path]:
    """The files that match, as paths for this process."""
    found = [file for pattern in patterns for file in _glob(context.outside(pattern))]
    return list(dict.fromkeys(file for file in found if file.is_file()))


def _glob(pattern: Path) -> list[Path]:
    return sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))


def _values(spec: AgentSpec, context: AgentContext) -> dict[str, str]:
    values = {
        "python": sys.executable,
        "here": str(spec.here),
        "home": str(context.home),
        "cwd": str(context.cwd),
        "session_dir": str(context.session_dir),
        "session": context.session,
        "llm_url": context.llm_url,
        "token_url": f"{context.llm_url}{OAUTH_PATH}",
        "tool_url": context.tool_url or "",
        "tool_command": context.tool_command or "",
        "store_url": context.store_url or "",
        "pipe": str(context.folder.absolute() / "wedgehog-pipe"),
        "web_url": context.web_url or "",
        "chat_url": context.chat_url or "",
        "key": context.key,
        "time_scale": f"{context.time_scale:g}",
        "fixes": ",".join(spec.chosen) or "none",
    }
    values |= {name: value for timer in spec.timeouts for name, value in timer.templates.items()}
    values |= {template_of(name): where for name, where in _backends(spec, context).items()}
    if spec.models:
        values["model"] = spec.models[0]
    if listens(spec):
        values["port"] = str(free_sim_port() if context.simulated else context.port or free_port())
    if spec.runtime and spec.install:
        values |= {"bin": str(bin_of(spec.install, spec.runtime)), "install": str(spec.install)}
        values["version"] = spec.version
    return values


def _environment(spec: AgentSpec, context: AgentContext, values: Mapping[str, str]) -> dict[str, str]:
    own = {"LANG": "C.UTF-8", "TERM": "dumb", **_ours(GIVEN), "HOME": str(context.home), "TMPDIR": str(context.tmp)}
    named = {name: expand(value, values) for name, value in spec.env.items()}
    try:
        named |= link_env(spec, _backends(spec, context), values)
    except BackendError as wrong:
        raise AgentError(str(wrong)) from None
    if spec.runtime and spec.install:
        own["PATH"] = os.pathsep.join([*map(str, path_of(spec.install, spec.runtime)), own.get("PATH", os.defpath)])
    if context.pipe:
        own[ADDRESS_VARIABLE] = context.pipe
    if context.hosts is not None:
        own |= context.hosts.env
    return {**own, **_ours(spec.inherit_env), **named}


def _backends(spec: AgentSpec, context: AgentContext) -> dict[str, str]:
    """host:port of each of its links; without a network in between, the server's own."""
    return {name: context.backends.get(name, link.to) for name, link in spec.links.items()}


def _ours(names: Iterable[str]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}


def _prepare_pipes(context: AgentContext, mark: str) -> None:
    """Write the `{pipe}` executable, and the address file in HOME, which MCP clients pass on to their servers."""
    write_launcher(context.folder.absolute())
    if context.pipe:
        file = context.home / ADDRESS_FILE
        file.touch(0o600)
        file.write_text(f"{context.pipe}\n{mark}\n", encoding="utf-8")


def _copy_workdir(spec: AgentSpec, context: AgentContext) -> None:
    """Copy the spec's folder into the agent's; the files that a scenario has put there stay as they are."""
    template = folder_of(spec)
    if template is None:
        return
    if not template.is_dir():
        raise AgentError(f"{spec.path}: workdir: no such folder: {template}")

    def already_there(folder: str, names: list[str]) -> list[str]:
        targets = {name: context.cwd / Path(folder, name).relative_to(template) for name in names}
        return [name for name, target in targets.items() if os.path.lexists(target) and not target.is_dir()]

    shutil.copytree(template, context.cwd, symlinks=True, dirs_exist_ok=True, ignore=already_there)


def _inside(context: AgentContext, name: str, key: str) -> Path:
    file = Path(os.path.normpath(context.cwd / name))
    if not file.is_relative_to(context.folder.absolute()):
        raise AgentError(f"{key}: {name!r} is outside the run's own folder; use {{home}}, {{cwd}} or {{session_dir}}")
    return file


def _write(context: AgentContext, name: str, content: str) -> None:
    file = _inside(context, name, "files")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
