"""An agent runs in a prepared environment: clean variables, its own folders, the files of its spec."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.agents.surroundings import plant, prepare, session_files

SHOW = """
    import json, os, sys
    print(json.dumps({"env": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv[1:], "stdin": sys.stdin.read()}))
"""


async def shown(spec, context) -> dict:
    async with open_agent(spec, context) as session:
        return json.loads((await session.say("hi", first=True)).answer)


async def test_no_key_and_no_proxy_of_the_user_reaches_the_agent(spec_of, context, monkeypatch):
    """PATH, LANG, TERM, its own HOME and TMPDIR, our mark and what the spec names; nothing else."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    env = (await shown(spec_of(SHOW, env={"MY_URL": "{llm_url}/v1", "MY_KEY": "{key}"}), context))["env"]
    env.pop("LC_CTYPE", None)  # Python sets it by itself
    assert env.keys() == {"PATH", "LANG", "TERM", "HOME", "TMPDIR", "WEDGEHOG_RUN", "MY_URL", "MY_KEY"}
    assert (env["HOME"], env["TMPDIR"]) == (str(context.home), str(context.tmp))
    assert (env["MY_URL"], env["MY_KEY"], env["LANG"]) == ("http://127.0.0.1:9/v1", "canary", "de_DE.UTF-8")
    assert env["WEDGEHOG_RUN"].startswith(context.run_id + "/")


async def test_variables_that_a_spec_inherits_by_name_reach_the_agent(spec_of, context, monkeypatch):
    """A variable that is not set here is left out."""
    monkeypatch.setenv("CUDA_HOME", "/cuda")
    monkeypatch.delenv("NOT_THERE", raising=False)
    env = (await shown(spec_of(SHOW, inherit_env=["CUDA_HOME", "NOT_THERE"]), context))["env"]
    assert env["CUDA_HOME"] == "/cuda"
    assert "NOT_THERE" not in env


async def test_a_spec_cannot_take_our_mark_away(spec_of, context):
    """Without it, a tool that leaves the process tree would not be found."""
    env = (await shown(spec_of(SHOW, env={"WEDGEHOG_RUN": "mine"}), context))["env"]
    assert env["WEDGEHOG_RUN"].startswith(context.run_id)


async def test_it_works_in_its_own_folder_and_its_stdin_is_closed(spec_of, context, tmp_path: Path):
    """The template folder is copied; the original is unchanged."""
    (tmp_path / "template" / "deep").mkdir(parents=True)
    (tmp_path / "template" / "deep" / "file.txt").write_text("from the template")
    seen = await shown(spec_of(SHOW, workdir="{here}/template"), context)
    assert (seen["cwd"], seen["stdin"], seen["argv"]) == (str(context.cwd), "", ["hi"])
    assert (context.cwd / "deep" / "file.txt").read_text() == "from the template"


def test_what_a_scenario_has_put_into_the_working_folder_is_not_replaced(spec_of, context, tmp_path: Path):
    """A scenario's notes.txt is the one that its agent finds, whatever the template has under that name."""
    template = tmp_path / "template"
    (template / "docs").mkdir(parents=True)
    for name in ("notes.txt", "docs/plan.txt", "docs/other.txt"):
        (template / name).write_text("from the template")
    (template / "pipe").symlink_to("notes.txt")
    (context.cwd / "docs").mkdir(parents=True)
    for name in ("notes.txt", "docs/plan.txt"):
        (context.cwd / name).write_text("from the scenario")
    os.mkfifo(context.cwd / "pipe")
    prepare(spec_of(workdir="{here}/template"), context)
    assert (
        (context.cwd / "notes.txt").read_text()
        == (context.cwd / "docs" / "plan.txt").read_text()
        == "from the scenario"
    )
    assert (context.cwd / "docs" / "other.txt").read_text() == "from the template"
    assert (context.cwd / "pipe").is_fifo()


def test_files_are_written_with_their_templates_filled_in(spec_of, context):
    """In its HOME and its working folder; JSON braces are no templates."""
    prepare(spec_of(files={"{home}/.a/config.json": '{"url": "{llm_url}"}', "notes.txt": "{time_scale}"}), context)
    assert json.loads((context.home / ".a" / "config.json").read_text()) == {"url": "http://127.0.0.1:9"}
    assert (context.cwd / "notes.txt").read_text() == "50"


@pytest.mark.parametrize("name", ["{here}/x", "/etc/wedgehog-test", "../../x"])
def test_a_file_outside_the_run_is_refused(spec_of, context, name: str):
    """A spec from another author cannot write into the user's folders."""
    with pytest.raises(AgentError, match="outside the run's own folder"):
        prepare(spec_of(files={name: "x"}), context)


def test_a_missing_template_folder_is_reported_with_its_path(spec_of, context, tmp_path: Path):
    """One line, with the full path."""
    with pytest.raises(AgentError, match=f"no such folder: {tmp_path}/template"):
        prepare(spec_of(workdir="{here}/template"), context)


def test_session_files_are_those_that_match_now(spec_of, context):
    """Each once, files only, sorted within a pattern."""
    spec = spec_of(session_files=["{session_dir}/*.jsonl", "{session_dir}/**/*.jsonl", "{session_dir}/none.txt"])
    prepare(spec, context)
    for name in ("b.jsonl", "a.jsonl", "c.txt"):
        (context.session_dir / name).write_text("x")
    (context.session_dir / "d.jsonl").mkdir()
    assert [file.name for file in session_files(spec, context)] == ["a.jsonl", "b.jsonl"]


async def test_a_run_folder_given_by_a_relative_path_works(spec_of, context, tmp_path: Path, monkeypatch):
    """The agent's HOME is absolute, because the agent may change its folder."""
    monkeypatch.chdir(tmp_path)
    env = (await shown(spec_of(SHOW), replace(context, folder=Path("run"))))["env"]
    assert env["HOME"] == str(tmp_path / "run" / "home")


def test_a_session_is_planted_where_the_spec_says_and_what_is_appended_begins_a_line(spec_of, context):
    """Also after a line that a crash has cut."""
    spec = spec_of(SHOW, session_file="{session_dir}/deep/{session}.jsonl")
    file = plant(spec, context, b"one\nhalf a li")
    assert file == context.session_dir / "deep" / f"{context.session}.jsonl"
    assert plant(spec, context, b"two\n") == file
    assert file.read_text() == "one\nhalf a li\ntwo\n"


def test_a_session_is_not_planted_outside_the_runs_own_folder(spec_of, context):
    """The user's own sessions are not changed."""
    with pytest.raises(AgentError, match="session_file: '/somewhere/else' is outside the run's own folder"):
        plant(spec_of(SHOW, session_file="/somewhere/else"), context, b"")


async def test_a_claimed_timer_is_what_the_agent_is_set_to(spec_of, context):
    """The spec has the number once, and a template passes it to the agent."""
    timers = [{"name": "idle", "s": 1.5}]
    env = (await shown(spec_of(SHOW, env={"A": "{idle_s}", "B": "{idle_ms}"}, timeouts=timers), context))["env"]
    assert (env["A"], env["B"]) == ("1.5", "1500")
