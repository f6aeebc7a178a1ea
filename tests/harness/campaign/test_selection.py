"""Selection: which scenarios meet which agents."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from wedgehog.harness.campaign import known_failures
from wedgehog.harness.campaign.selection import (
    UsageError,
    Wanted,
    check_invariant,
    path_of_name,
    select,
    stock_folder,
    stock_incidents,
    without_minutes,
)
from wedgehog.harness.scenario.document import BadFileError
from wedgehog.harness.scenario.scenario_file import find_scenarios, load_scenario

TURNS = [{"user": "Go on.", "model": [{"text": "Done {nonce}"}]}]
FIXES = {"fixes": {"one": "the first", "two": "the second"}, "fixed": ["one", "two"]}


@pytest.fixture
def incident(tmp_path: Path) -> Any:
    """Writes an incident folder: scenarios by name with what they expect, and one specimen with two fixes."""

    def write(**scenarios: Any) -> Path:
        for name, words in scenarios.items():
            path = tmp_path / "incident" / "scenarios" / f"{name}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump({"name": name, "why": "w", "turns": TURNS, **words}))
        spec = {"name": "spec", "wire": "anthropic", "command": ["x", "{fixes}", "{message}"], **FIXES}
        (tmp_path / "incident" / "agents").mkdir(exist_ok=True)
        (tmp_path / "incident" / "agents" / "spec.yaml").write_text(yaml.safe_dump(spec))
        return tmp_path / "incident"

    return write


def chosen(**wanted: Any) -> list[str]:
    """`scenario x agent` of each entry; `*` marks a cell of the matrix, a number a repeat."""
    return [
        f"{e.file.scenario.name} x {e.agent.name}{'*' if e.matrix_only else ''}{f' {e.repeat}' if e.repeat > 1 else ''}"
        for e in select(Wanted(**wanted))
    ]


def test_a_folder_plays_its_own_agents_that_are_expected_something(incident: Any):
    """Only those that the scenario names."""
    folder = incident(a={"expect": {"buggy": {"fail": ["turn_answered"]}, "fixed": "pass"}})
    assert chosen(scenarios=(str(folder),)) == ["a x buggy", "a x fixed"]


def test_everything_adds_the_rest_of_the_fix_matrix(incident: Any):
    """Cells of which nothing is expected are shown and never counted; the same fixes are not played again."""
    folder = incident(a={"expect": {"buggy": "pass", "only-one": "pass"}})
    rest = ["only-two*", "without-one*", "fixed*"]  # without-two is only-one
    found = chosen(scenarios=(str(folder),), everything=True)
    assert sorted(found) == sorted(f"a x {name}" for name in ["buggy", "only-one", *rest])


def test_agents_that_are_named_replace_the_incidents_own(incident: Any, tmp_path: Path):
    """Nothing need be expected of them."""
    folder = incident(a={"expect": {"buggy": "pass"}}, b={})
    mine = tmp_path / "mine.yaml"
    mine.write_text(yaml.safe_dump({"name": "mine", "wire": "anthropic", "command": ["x", "{message}"]}))
    assert chosen(scenarios=(str(folder),), agents=(str(mine),)) == ["a x mine", "b x mine"]


def test_what_an_incident_expects_is_said_of_its_own_agents_only(incident: Any, tmp_path: Path):
    """A user's agent may be called `buggy` too, and what it will do is unknown."""
    folder = incident(a={"expect": {"buggy": {"fail": ["turn_answered"]}}})
    mine = tmp_path / "buggy.yaml"
    mine.write_text(yaml.safe_dump({"name": "buggy", "wire": "anthropic", "command": ["x", "{message}"]}))
    (theirs,) = select(Wanted(scenarios=(str(folder),)))
    (ours,) = select(Wanted(scenarios=(str(folder),), agents=(str(mine),)))
    (named,) = [
        entry
        for entry in select(Wanted(scenarios=(str(folder),), agents=(str(folder / "agents" / "spec.yaml"),)))
        if entry.agent.name == "buggy"
    ]
    assert [entry.agent.name for entry in (theirs, ours, named)] == ["buggy"] * 3
    assert (theirs.own, ours.own, named.own) == (True, False, True)
    assert list(theirs.scenario.expect) == list(named.scenario.expect) == ["buggy"]
    assert ours.scenario.expect == {} and ours.scenario.turns == theirs.scenario.turns


def test_only_what_every_agent_owes_is_asked_of_a_strange_one(incident: Any, tmp_path: Path):
    """An answer in spite of a stall, and work that outlives its turn, are what some fixes promise; `off` stays off."""
    asked = {
        "turn_answered": None,
        "work_kept": {},
        "tool_round_bound": {"tool_rounds": 5},
        "retry_discipline": "off: x",
    }
    folder = incident(a={"expect": {"buggy": "pass"}, "invariants": asked})
    mine = tmp_path / "mine.yaml"
    mine.write_text(yaml.safe_dump({"name": "mine", "wire": "anthropic", "command": ["x", "{message}"]}))
    (theirs,) = select(Wanted(scenarios=(str(folder),)))
    (ours,) = select(Wanted(scenarios=(str(folder),), agents=(str(mine),)))
    assert set(theirs.scenario.invariants) == set(asked)
    assert ours.scenario.invariants == {"tool_round_bound": {"tool_rounds": 5}, "retry_discipline": None}


def test_a_scenario_of_no_incident_speaks_of_whom_it_names(incident: Any, tmp_path: Path):
    """Without an agents folder beside it, the name is all there is."""
    folder = incident(a={"expect": {"mine": "pass"}})
    alone = (folder / "scenarios" / "a.yaml").rename(tmp_path / "a.yaml")
    mine = tmp_path / "elsewhere" / "mine.yaml"
    mine.parent.mkdir()
    mine.write_text(yaml.safe_dump({"name": "mine", "wire": "anthropic", "command": ["x", "{message}"]}))
    (entry,) = select(Wanted(scenarios=(str(alone),), agents=(str(mine),)))
    assert entry.own and list(entry.scenario.expect) == ["mine"]


def test_words_choose_by_name_family_and_tags(incident: Any):
    """Any of them will do, whatever its case."""
    folder = incident(
        stall={"tags": ["slow"], "expect": {"buggy": "pass"}}, cut={"tags": ["Quick"], "expect": {"buggy": "pass"}}
    )
    assert chosen(scenarios=(str(folder),), words="quick nothing") == ["cut x buggy"]
    assert chosen(scenarios=(str(folder),), words="nothing,quick") == ["cut x buggy"]
    assert len(chosen(scenarios=(str(folder),), words="INCIDENT")) == 2
    with pytest.raises(UsageError, match="no scenario matches 'nothing'"):
        chosen(scenarios=(str(folder),), words="nothing")


def test_repeats_are_entries_of_their_own(incident: Any):
    """Each with its number."""
    folder = incident(a={"expect": {"buggy": "pass"}})
    assert chosen(scenarios=(str(folder),), repeat=3) == ["a x buggy", "a x buggy 2", "a x buggy 3"]


def test_without_a_name_the_core_of_the_stock_incidents_is_played():
    """Buggy and fixed only; `--all` plays more of both."""
    core = select(Wanted())
    assert core and all(entry.file.core for entry in core)
    assert all(entry.agent.name.startswith(("buggy", "fixed")) for entry in core)
    assert {entry.file.family for entry in core} == set(stock_incidents())
    assert len(select(Wanted(everything=True))) > 2 * len(core)


def test_every_stock_scenario_is_played_by_the_name_that_it_is_listed_by():
    """Its folder's name, a slash and its own."""
    files = [load_scenario(path) for path in find_scenarios(stock_folder())]
    assert len(files) > 50
    assert {file.path: path_of_name(f"{file.family}/{file.scenario.name}") for file in files} == {
        file.path: file.path for file in files
    }


@pytest.mark.parametrize("place", ["well.yaml", "scenarios/well.yaml"])
def test_a_scenario_that_is_named_from_its_own_folder_is_of_a_family(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
):
    """The report has a heading for each family."""
    monkeypatch.chdir(tmp_path)
    path = Path(place)
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump({"name": "well", "why": "w", "turns": TURNS}))
    assert load_scenario(path).family == tmp_path.name


def test_stock_names_stand_for_an_incident_or_a_scenario():
    """And a name that is nearly one is asked back."""
    assert path_of_name("silent-stall").is_dir()
    assert path_of_name("silent-stall/") == path_of_name("silent-stall")
    assert path_of_name("continuation-stalls-mid-body").is_file()
    with pytest.raises(UsageError, match=r"did you mean 'silent-stall'\?"):
        path_of_name("silent-stal")
    with pytest.raises(UsageError, match="stock incidents are "):
        path_of_name("zzz")


def test_two_scenarios_of_one_name_are_a_mistake(incident: Any, tmp_path: Path):
    """Their run folders would be one."""
    folder = incident(a={})
    other = tmp_path / "other.yaml"
    other.write_text((folder / "scenarios" / "a.yaml").read_text())
    with pytest.raises(BadFileError, match="the name 'a' is taken by"):
        chosen(scenarios=(str(folder), str(other)))


def spec_file(path: Path, name: str) -> str:
    """A spec in a file."""
    path.write_text(yaml.safe_dump({"name": name, "wire": "anthropic", "command": ["x", "{message}"]}))
    return str(path)


def test_what_is_named_twice_is_played_once(incident: Any, tmp_path: Path):
    """A folder and a file in it, a spec by two ways of writing its path; they would write into one folder."""
    folder = incident(a={}, b={})
    mine = spec_file(tmp_path / "mine.yaml", "mine")
    scenarios = (str(folder / "scenarios" / "a.yaml"), str(folder), str(folder / "scenarios" / ".." / "scenarios"))
    again = str(tmp_path / "incident" / ".." / "mine.yaml")
    assert chosen(scenarios=scenarios, agents=(mine, mine, again), repeat=2) == [
        f"{name} x mine{number}" for name in "ab" for number in ("", " 2")
    ]


def test_two_agents_of_one_name_are_a_mistake(incident: Any, tmp_path: Path):
    """They would write into one folder."""
    folder = incident(a={})
    mine, other = (spec_file(tmp_path / f"{name}.yaml", "mine") for name in ("mine", "other"))
    with pytest.raises(BadFileError, match=r"other\.yaml: the name 'mine' is taken by .*mine\.yaml"):
        select(Wanted((str(folder),), (mine, other)))


def test_an_expectation_of_an_agent_that_does_not_exist_is_a_mistake(incident: Any):
    """Else it would never be met or missed."""
    folder = incident(a={"expect": {"bugy": "pass"}})
    with pytest.raises(BadFileError, match=r"no agent of this incident is called 'bugy' \(did you mean 'buggy'\?\)"):
        chosen(scenarios=(str(folder),))


KNOWN = """name: mine
wire: anthropic
command: ["{{python}}", -c, pass, "{{message}}"]
known:
  {name}: a reason
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("stal-forever", "known: no scenario is called 'stal-forever' (did you mean 'stall-forever'?)"),
        ("elsewhere/mine", "known: no scenario is called 'elsewhere/mine'"),
        ("no_traceback", "known: 'no_traceback' is an invariant, and failures are known by their scenario"),
    ],
)
def test_a_known_failure_of_no_scenario_is_a_mistake(incident: Any, tmp_path: Path, name: str, said: str):
    """It would have no effect."""
    folder = incident(**{"stall-forever": {}})
    (tmp_path / "mine.yaml").write_text(KNOWN.format(name=name))
    with pytest.raises(BadFileError) as caught:
        chosen(scenarios=(str(folder),), agents=(str(tmp_path / "mine.yaml"),))
    assert str(caught.value) == f"{tmp_path / 'mine.yaml'}:5: {said}"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("wire: anthropic", "wire: antropic", "2: "),
        ("{python}", "no-such-program", "3: command: there is no program 'no-such-program'"),
        ("{message}", "{mesage}", "3: unknown template '{mesage}'"),
    ],
)
def test_a_known_failure_of_no_scenario_is_told_beside_other_mistakes(
    incident: Any, tmp_path: Path, old: str, new: str, said: str
):
    """Each with its line, from the top of the file."""
    folder = incident(**{"stall-forever": {}})
    spec = tmp_path / "mine.yaml"
    spec.write_text(KNOWN.format(name="stal-forever").replace(old, new))
    with pytest.raises(BadFileError) as caught:
        chosen(scenarios=(str(folder),), agents=(str(spec),))
    first, last = str(caught.value).splitlines()
    assert first.startswith(f"{spec}:{said}")
    assert last.startswith(f"{spec}:5: known: no scenario is called 'stal-forever'")


def test_a_folder_with_the_name_of_a_file_beside_the_played_scenario_is_no_mistake(incident: Any, tmp_path: Path):
    """What cannot be read has no name in it."""
    folder = incident(mine={})
    (folder / "scenarios/folder.yaml").mkdir()
    (tmp_path / "mine.yaml").write_text(KNOWN.format(name="mine"))
    assert chosen(scenarios=(str(folder / "scenarios/mine.yaml"),), agents=(str(tmp_path / "mine.yaml"),))


def test_a_known_failure_may_be_of_a_scenario_that_is_not_played_now(incident: Any, tmp_path: Path):
    """A stock one, one beside the played scenario, or one below the spec's folder, by its file's name or its own."""
    folder = incident(mine={}, other={})
    (tmp_path / "more/deep").mkdir(parents=True)
    (tmp_path / "more/deep/file.yaml").write_text("# of another team\nname: 'far'\n")
    (tmp_path / "mine.yaml").write_text(
        KNOWN.format(name="other") + "  key-refused: a reason\n  far: a reason\n  file: a reason\n"
    )
    assert chosen(scenarios=(str(folder / "scenarios/mine.yaml"),), agents=(str(tmp_path / "mine.yaml"),))


def test_in_a_folder_with_too_many_files_a_known_failure_may_be_of_any_scenario(
    incident: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Nothing is refused that was not looked for."""
    folder = incident(mine={})
    (tmp_path / "mine.yaml").write_text(KNOWN.format(name="elsewhere"))
    monkeypatch.setattr(known_failures, "MANY", 1)
    assert chosen(scenarios=(str(folder),), agents=(str(tmp_path / "mine.yaml"),))


def test_scenarios_that_expect_nothing_need_an_agent(incident: Any):
    """One line that says how to name one."""
    with pytest.raises(UsageError, match="--agent SPEC"):
        chosen(scenarios=(str(incident(a={})),))


def test_an_agent_that_is_no_file_is_a_mistake(incident: Any):
    """A missing YAML file and a bare name are told apart."""
    folder = str(incident(a={}))
    with pytest.raises(UsageError, match="no agent spec 'nobody'"):
        chosen(scenarios=(folder,), agents=("nobody",))
    with pytest.raises(BadFileError, match="no such file"):
        chosen(scenarios=(folder,), agents=("nobody.yaml",))


def test_a_folder_with_the_name_of_a_runtime_does_not_hide_it(
    incident: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Projects have such folders. It is not installed here, so it is only named."""
    folder = str(incident(a={}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("codex", "my-agent"):
        (tmp_path / name).mkdir()
    with pytest.raises(UsageError, match="wedgehog agents install codex"):
        chosen(scenarios=(folder,), agents=("codex",))
    with pytest.raises(UsageError, match="no agent spec 'my-agent': expected a YAML file or a known runtime"):
        chosen(scenarios=(folder,), agents=("my-agent",))


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("paid_call_bound", {"per_step": 3}, ""),
        ("paid_call_bound", None, ""),
        ("paid_call_bound", {"per_step": -1}, "per_step: expected a whole number"),
        ("paid_call_bund", None, "unknown invariant 'paid_call_bund'"),
    ],
)
def test_an_invariants_name_and_parameters_are_checked_where_they_are_written(name: str, given: Any, said: str):
    """What is wrong, or nothing."""
    assert said in check_invariant(name, given) and bool(said) == bool(check_invariant(name, given))


def test_a_variant_of_a_specimen_is_named_after_its_file(incident: Any):
    """With or without the suffix of the spec; a wrong name is one line that says what is near."""
    scenarios = (str(incident(a={}) / "scenarios"),)
    spec = incident() / "agents" / "spec.yaml"
    spec.write_text(spec.read_text() + "suffix: -s\n")
    assert chosen(scenarios=scenarios, agents=(f"{spec}@fixed",)) == ["a x fixed-s"]
    assert chosen(scenarios=scenarios, agents=(f"{spec}@only-two-s",)) == ["a x only-two-s"]
    with pytest.raises(UsageError, match=r"spec.yaml: no variant 'fixd' \(did you mean 'fixed'\?\)"):
        chosen(scenarios=scenarios, agents=(f"{spec}@fixd",))


LONG, QUICK = "reply-takes-minutes", "stall-once"
ALL_LONG = ["compaction-is-slow", LONG]
SPEC = str(stock_folder() / "incidents" / "dangling-call" / "agents" / "both.yaml")


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({"scenarios": ("catalogue",)}, ALL_LONG),
        ({"scenarios": (LONG, QUICK)}, []),
        ({"scenarios": ("catalogue",), "words": "minutes"}, []),
        ({"scenarios": (QUICK,)}, []),
    ],
)
def test_a_reply_of_minutes_is_played_live_only_where_it_is_asked_for(asked: dict[str, Any], left: list[str]):
    """By its name, or by the word."""
    wanted = Wanted(agents=(SPEC,), **asked)
    entries = select(wanted)
    kept, without = without_minutes(entries, wanted)
    assert without == left
    assert [it for it in entries if it not in kept] == [it for it in entries if it.scenario.name in left]
