"""A mistake in a file is one line with file, line and what was expected; what is right is read as plain data."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from wedgehog.harness.scenario.document import BadFileError, load, read
from wedgehog.harness.scenario.mistake import BadValueError, BadValuesError


class Turn(BaseModel):
    model_config = ConfigDict(extra="forbid")
    user: str
    wait_s: float = 0


class Story(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    turns: list[Turn] = []
    level: int | None = None
    quick: bool = False
    then: str | list[Turn] = ""
    deep: dict[str, Turn] = {}


HERE = Path("story.yaml")


def complaint(text: str, kind: type = Story) -> str:
    with pytest.raises(BadFileError) as caught:
        read(text, HERE).into(kind)
    return str(caught.value)


def test_a_right_file_becomes_the_model():
    """Nested models, lists and scalars arrive as written."""
    story = read("name: a\nturns:\n  - user: hi\n    wait_s: 1.5\n", HERE).into(Story)
    assert story == Story(name="a", turns=[Turn(user="hi", wait_s=1.5)])


def test_an_unknown_key_names_its_line_and_what_was_meant():
    """The nearest known key is offered."""
    assert complaint("name: a\n# note\nturms: []\n") == "story.yaml:3: unknown key 'turms' (did you mean 'turns'?)"


def test_merge_keys_are_told_apart_from_values():
    """An alias is read, and a merge of one into another mapping is not."""
    said = complaint("name: a\nthen: &it [{user: hi}]\nturns: *it\ndeep:\n  <<: *it\n")
    assert said == "story.yaml:5: merge keys (`<<`) are not read: write the keys here"


def test_an_unknown_key_is_told_before_the_key_that_is_missing_for_it():
    """`nam` explains why `name` is missing; the other way round explains nothing."""
    assert complaint("turns: []\nnam: a\n") == "story.yaml:2: unknown key 'nam' (did you mean 'name'?)"


class Pair(BaseModel):
    model_config = ConfigDict(extra="forbid")
    first: int
    last: int = 0
    turns: list[Turn] = []

    @model_validator(mode="after")
    def _ordered(self) -> "Pair":
        if self.first > self.last:
            raise BadValuesError([(("first",), "first is after last"), (("turns", 0), "odd")])
        return self


def test_an_unknown_key_does_not_hide_what_is_wrong_beside_it():
    """Also where it is a known key with a mistake; its own line stays."""
    text = "frist: 3\nlast: 1\nqqq: 2\nturns:\n- {user: x, wiat_s: 1}\n"
    assert complaint(text, Pair).splitlines() == [
        "story.yaml:1: unknown key 'frist' (did you mean 'first'?)",
        "story.yaml:1: first is after last",
        "story.yaml:3: unknown key 'qqq' (known: first, last, turns)",
        "story.yaml:5: unknown key 'wiat_s' (did you mean 'wait_s'?)",
        "story.yaml:5: odd",
    ]
    assert "missing" not in complaint("fristt: 3\nqqq: 2\n", Pair)


def test_an_unknown_key_in_a_list_entry_or_mapping_knows_the_keys_of_that_place():
    """Suggestions come from the model at that place, not from the top."""
    assert complaint("name: a\nturns:\n- {user: x}\n- user: y\n  wait: 3\n") == (
        "story.yaml:5: unknown key 'wait' (did you mean 'wait_s'?)"
    )
    assert complaint("name: a\ndeep:\n  one: {user: x, qqq: 1}\n") == (
        "story.yaml:3: unknown key 'qqq' (known: user, wait_s)"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("turns: []", "story.yaml:1: the key 'name' is missing"),
        ("name: a\nturns:\n- user: b\n-\n  wait_s: 1\n", "story.yaml:5: the key 'user' is missing in 'turns[1]'"),
        ("name: a\nlevel: high", "story.yaml:2: 'level': expected a whole number, found 'high'"),
        ("name: a\nlevel: 1.5", "story.yaml:2: 'level': expected a whole number, found 1.5"),
        ("name: [a]", "story.yaml:1: 'name': expected text, found a list"),
        ("name: a\nturns: 3", "story.yaml:2: 'turns': expected a list, found 3"),
        ("name: a\nquick: perhaps", "story.yaml:2: 'quick': expected true or false, found 'perhaps'"),
        ("name: a\nthen: 5", "story.yaml:2: 'then': expected text or a list, found 5"),
        ("name: a\nthen:\n- uzer: a", "story.yaml:3: unknown key 'uzer' (did you mean 'user'?)"),
        ("- a", "story.yaml:1: expected a mapping (key: value), found a list"),
    ],
)
def test_a_wrong_value_says_in_plain_words_what_was_expected(text: str, expected: str):
    """No word of pydantic's reaches a person."""
    assert complaint(text) == expected


def test_every_mistake_is_a_line_of_its_own_the_topmost_first():
    """A user corrects a file in one go."""
    assert complaint("turns: 3\nname: [a]\nlevle: 1\ndeep: {one: {wait_s: x}}\n").splitlines() == [
        "story.yaml:1: 'turns': expected a list, found 3",
        "story.yaml:2: 'name': expected text, found a list",
        "story.yaml:3: unknown key 'levle' (did you mean 'level'?)",
        "story.yaml:4: the key 'user' is missing in 'deep.one'",
        "story.yaml:4: 'deep.one.wait_s': expected a number, found 'x'",
    ]


def test_a_missing_key_is_told_beside_other_mistakes():
    """Unless an unknown key of that mapping was meant."""
    assert complaint("level: high\n").splitlines() == [
        "story.yaml:1: the key 'name' is missing",
        "story.yaml:1: 'level': expected a whole number, found 'high'",
    ]


def test_a_value_that_fits_no_branch_of_a_union_is_one_mistake():
    """It is the same mistake in every branch."""
    assert complaint("name: [a]\nthen:\n- uzer: 5\n").splitlines() == [
        "story.yaml:1: 'name': expected text, found a list",
        "story.yaml:3: unknown key 'uzer' (did you mean 'user'?)",
    ]


def test_a_validator_can_point_at_several_keys():
    """Each is a line of its own."""

    class Checked(Story):
        @model_validator(mode="after")
        def check(self) -> "Checked":
            raise BadValuesError([(("turns", 0), "too long"), (("name",), "too short")])

    assert complaint("name: a\nturns:\n- user: b\n", Checked).splitlines() == [
        "story.yaml:1: too short",
        "story.yaml:3: too long",
    ]


def test_a_validator_can_point_at_the_key_that_is_wrong():
    """A check over several keys still names the line of the one to change."""

    class Checked(Story):
        @model_validator(mode="after")
        def check(self) -> "Checked":
            raise BadValueError("too long", "turns", 0, "wait_s")

    assert complaint("name: a\nturns:\n- user: b\n  wait_s: 9\n", Checked) == "story.yaml:4: too long"


def test_a_part_of_a_document_can_be_read_and_keeps_its_lines():
    """`at` chooses the part; lines stay the file's."""
    document = read("x: 1\ninner:\n  name: a\n  levle: 1\n", HERE)
    with pytest.raises(BadFileError, match=r"story.yaml:4: unknown key 'levle'"):
        document.into(Story, at=["inner"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "story.yaml: the file is empty"),
        ("# only words\n", "story.yaml: the file is empty"),
        ("name: a\nother: b\nname: c\n", "story.yaml:3: the key 'name' stands here a second time (first in line 1)"),
        ("a: 1\nb: [1, 2\nc: 3\n", "story.yaml:3: not valid YAML: "),
        ("a:\n\t- b\n", "story.yaml:2: not valid YAML: "),
        ("a: 1\n---\nb: 2\n", "story.yaml:2: not valid YAML: expected a single document, found a second one"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]\n", "story.yaml:2: the tag tag:yaml.org,2002:python/"),
        ("a: !mine 3\n", "story.yaml:1: the tag !mine is not read, only plain data is"),
        ("a: !!map b\n", "story.yaml:1: the tag tag:yaml.org,2002:map is not read, only plain data is"),
        ("a: !!str {b: c}\n", "story.yaml:1: the tag tag:yaml.org,2002:str is not read, only plain data is"),
        ("a: !!int b\n", "story.yaml:1: 'b' is not a int"),
        ("? [a, b]\n: 1\n", "story.yaml:1: a key must be a plain word"),
        ("a: &x [*x]\n", "story.yaml:1: holds itself"),
        ("a: \x07\n", "story.yaml: not valid YAML: "),
    ],
)
def test_what_is_not_plain_yaml_is_one_clear_line(text: str, expected: str):
    """Syntax errors, duplicate keys, tags and cycles never become tracebacks, and nothing is executed."""
    with pytest.raises(BadFileError) as caught:
        read(text, HERE)
    assert str(caught.value).startswith(expected)
    assert "\n" not in str(caught.value)


def test_a_file_of_nested_aliases_is_refused_before_it_fills_the_memory():
    """Nine lines can stand for a billion values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(BadFileError, match="more values than any file needs"):
        read("\n".join(lines), HERE)


def test_a_file_nested_too_deeply_is_refused():
    """The parser's own limit is a line for a person too."""
    with pytest.raises(BadFileError, match="nested too deeply"):
        read("[" * 5000 + "]" * 5000, HERE)


def test_words_stay_words_and_keys_stay_text():
    """`on` is a key, `no` is a country, dates and clock times are text; only true, false, null and numbers are not."""
    text = "{on: background, no: off, yes: y, 1: one, date: 2024-01-02, time: 12:30, z: 0755, t: true, n: null, e: 1e3}"
    assert read(text, HERE).data == {
        "on": "background",
        "no": "off",
        "yes": "y",
        "1": "one",
        "date": "2024-01-02",
        "time": "12:30",
        "z": 755,
        "t": True,
        "n": None,
        "e": 1000.0,
    }


@pytest.mark.parametrize(("word", "value"), [("yes", True), ("on", True), ("no", False), ("off", False)])
def test_yes_and_no_are_bools_where_a_bool_is_expected(word: str, value: bool):
    """And text where text is."""
    story = read(f"name: {word}\nquick: {word}\n", HERE).into(Story)
    assert (story.name, story.quick) == (word, value)


@pytest.mark.parametrize("number", ["12", "-3", "0.5", ".5", "-1.5e-3", "1e15", "0x1f"])
def test_numbers_are_numbers(number: str):
    """YAML 1.2's, which includes 1e15 without a point."""
    assert read(f"a: {number}", HERE).data["a"] == (int(number, 16) if "x" in number else float(number))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda file: None, "no such file"),
        (lambda file: file.mkdir(), "is a folder, expected a file"),
        (lambda file: file.write_bytes(b"a: 1\nb: \xff\n"), "not UTF-8 text; expected YAML"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path: Path, make, expected: str):
    """Missing, a folder, or another encoding."""
    file = tmp_path / "a.yaml"
    make(file)
    with pytest.raises(BadFileError) as caught:
        load(file)
    assert caught.value.message == expected


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path):
    """Some editors write one."""
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfname: a\n")
    assert load(tmp_path / "a.yaml").data == {"name": "a"}


def test_the_line_of_a_missing_place_is_that_of_what_holds_it():
    """So that an error about something absent still points somewhere sensible."""
    document = read("a:\n  b:\n    - x\n    - y\n", HERE)
    assert [document.line(place) for place in (["a"], ["a", "b", 1], ["a", "b", 7, "c"], ["z"])] == [1, 4, 2, 1]


class Bounded(BaseModel):
    n: int = Field(gt=0)


def test_a_bound_is_told_as_a_number():
    """`greater_than` becomes words."""
    assert complaint("n: 0", Bounded) == "story.yaml:1: 'n': expected a number above 0, found 0"
