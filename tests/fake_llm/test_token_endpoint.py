"""The OAuth token endpoint of the fake provider."""

import json
from base64 import b64encode
from typing import Any

import pytest

from wedgehog.fake_llm.reply import OAUTH_PATH, TokenHarm
from wedgehog.fake_llm.request import Request
from wedgehog.fake_llm.token_endpoint import TokenEndpoint
from wedgehog.harness.faults.base import parse_fault
from wedgehog.harness.faults.token_fault import TokenFault
from wedgehog.harness.scenario.fault_config import FaultConfig


def asked(endpoint: TokenEndpoint, form: str, **headers: str) -> tuple[int, dict[str, Any]]:
    """Status and JSON of the answer."""
    fact, image, _ = endpoint.respond(Request(1, "POST", OAUTH_PATH, headers, form.encode()), 0)
    assert b"cache-control: no-store" in image.head.lower()
    return fact.status, json.loads(image.body)


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ("", 400, "invalid_request"),
        ("grant_type=refresh_token", 400, "invalid_request"),
        ("grant_type=password&username=me", 400, "unsupported_grant_type"),
        ("grant_type=client_credentials", 401, "invalid_client"),
    ],
)
def test_a_wrong_request_is_refused_in_the_words_of_rfc_6749(form: str, status: int, error: str):
    found, document = asked(TokenEndpoint(), form)
    assert (found, document["error"]) == (status, error)


def test_a_client_may_name_itself_by_http_basic():
    basic = f"Basic {b64encode(b'me:mine').decode()}"
    status, document = asked(TokenEndpoint(expires_in=60), "grant_type=client_credentials", authorization=basic)
    assert (status, document["token_type"], document["expires_in"]) == (200, "Bearer", 60)
    assert "refresh_token" not in document


def test_only_a_refresh_brings_a_new_refresh_token():
    _, document = asked(TokenEndpoint(), "grant_type=refresh_token&refresh_token=old")
    assert document["refresh_token"] not in ("old", document["access_token"])


def test_a_harm_refuses_a_request_that_is_right():
    endpoint = TokenEndpoint(lambda: TokenHarm("temporarily_unavailable", late_s=2))
    fact, _, late_s = endpoint.respond(
        Request(1, "POST", OAUTH_PATH, {}, b"grant_type=refresh_token&refresh_token=old"), 0
    )
    assert (fact.status, fact.error, late_s, endpoint.issued) == (503, "temporarily_unavailable", 2, 0)


def test_a_request_that_is_never_answered_issues_no_token():
    """Such a harm outlasts a delay, in either order; the fact has no status."""
    never, late = parse_fault({"token_late": "forever"}).scaled(10), parse_fault({"token_late": 5})
    assert isinstance(never, TokenFault) and isinstance(late, TokenFault)
    assert (
        never.on_token(late.on_token(TokenHarm()))
        == late.on_token(never.on_token(TokenHarm()))
        == TokenHarm(None, None)
    )
    endpoint = TokenEndpoint(lambda: never.on_token(TokenHarm()))
    form = b"grant_type=client_credentials&client_id=me"
    fact, image, _ = endpoint.respond(Request(1, "POST", OAUTH_PATH, {}, form), 0)
    assert (fact.grant, fact.status, image, endpoint.issued) == ("client_credentials", 0, None, 0)


def test_all_tokens_belong_to_one_client():
    """What the provider stores for a session is still there after a refresh."""
    endpoint = TokenEndpoint()
    first, second = (asked(endpoint, "grant_type=client_credentials&client_id=me")[1] for _ in range(2))
    assert first["access_token"] != second["access_token"]
    owners = {endpoint.owner(document["access_token"]) for document in (first, second)}
    assert len(owners) == 1 and endpoint.owner("another key") not in owners


def test_a_fault_of_the_token_endpoint_names_no_place_in_a_reply():
    words = {"do": {"refresh_refused": "invalid_client"}, "at": {"turn": 2, "byte": 3}}
    with pytest.raises(ValueError, match="fires at token requests"):
        FaultConfig.model_validate(words)
    assert parse_fault("refresh_refused") == parse_fault({"refresh_refused": "invalid_grant"})
