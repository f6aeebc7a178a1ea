"""An MCP call is known again by its name and arguments, in the order in which the model made them."""

from wedgehog.harness.services.mcp.offers import Offers

PARIS, ROME = {"city": "Paris"}, {"city": "Rome"}


def offered(*calls: tuple[str, str, dict[str, str] | None]) -> Offers:
    offers = Offers()
    for token, name, args in calls:
        offers.add(token, name, args)
    return offers


def test_calls_find_their_offers_whatever_order_they_come_in():
    """By their arguments."""
    offers = offered(("a", "weather", PARIS), ("b", "weather", ROME))
    assert (offers.match("weather", ROME), offers.match("weather", PARIS)) == ("b", "a")


def test_like_calls_are_told_apart_by_their_order():
    """The first is the first."""
    offers = offered(("a", "weather", PARIS), ("b", "weather", PARIS))
    assert (offers.match("weather", PARIS), offers.match("weather", PARIS)) == ("a", "b")


def test_a_call_that_comes_again_is_the_same_call():
    """So that a tool that runs twice is seen to run twice; and the latest, where there are several."""
    offers = offered(("a", "weather", PARIS), ("b", "weather", PARIS))
    assert [offers.match("weather", PARIS) for _ in range(3)] == ["a", "b", "b"]


def test_a_call_that_is_refused_counts_as_not_executed():
    """Its repeat is the same call."""
    offers = offered(("a", "weather", PARIS), ("b", "weather", PARIS))
    assert [offers.next_match("weather", PARIS) for _ in range(2)] == ["a", "a"]
    assert [offers.match("weather", PARIS), offers.next_match("weather", PARIS)] == ["a", "b"]
    assert offers.next_match("forecast", PARIS) == ""


def test_a_name_that_was_put_before_the_tools_does_not_matter():
    """As agents write them."""
    assert offered(("a", "mcp__host__weather", PARIS)).match("weather", PARIS) == "a"


def test_arguments_that_the_agent_changed_still_find_their_call():
    """But only where none fits exactly."""
    offers = offered(("a", "weather", PARIS), ("b", "weather", ROME))
    assert offers.match("weather", {"city": "Rome", "unit": "C"}) == "a"
    assert offers.match("weather", ROME) == "b"


def test_an_attempt_that_is_repeated_offers_nothing_new():
    """The same step asked twice makes the same call."""
    offers = offered(("a", "weather", PARIS), ("a", "weather", PARIS), ("b", "weather", PARIS))
    assert [offers.match("weather", PARIS) for _ in range(2)] == ["a", "b"]


def test_what_the_model_never_called_has_no_token():
    """An agent that looks for itself."""
    assert offered(("a", "weather", PARIS)).match("forecast", PARIS) == ""
    assert Offers().match("weather", PARIS) == ""
