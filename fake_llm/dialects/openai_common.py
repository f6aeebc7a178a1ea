"""What OpenAI's two APIs share: errors, refusals of any request, and headers."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from math import inf
from typing import Any, ClassVar, Final

from wedgehog.fake_llm.dialects.base import Dialect, Refusal, Response
from wedgehog.fake_llm.frame import encode
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.request import Request, counted

_QUOTA: Final = "insufficient_quota"
_NO_QUOTA: Final = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
    "read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."
)
_NO_KEY: Final = Refusal(
    401,
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth "
    "(i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the "
    "API from your browser and are prompted for a username and password.",
    "invalid_request_error",
)
_NO_JSON: Final = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
)
_ERRORS: Final[dict[int, tuple[str, str | None, str]]] = {
    400: ("invalid_request_error", None, "Invalid request."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("invalid_request_error", "unsupported_country_region_territory", "Country or region not supported."),
    404: ("invalid_request_error", None, "Not found."),
    413: ("invalid_request_error", None, "Request body too large."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again later."),
    500: ("server_error", None, "The server had an error while processing your request. Sorry about that!"),
    503: ("service_unavailable", None, "The engine is currently overloaded, please try again later."),
}


class OpenAIDialect(Dialect):
    """What OpenAI's two APIs have in common."""

    BROKE = Refusal(429, kind=_QUOTA)
    EXPIRED = Refusal(
        401, "Provided authentication token is expired. Please try signing in again.", code="token_expired"
    )
    NO_KEY = _NO_KEY
    UNUSABLE: ClassVar[Mapping[str, Refusal]] = {
        "image": Refusal(
            400,
            "The image data you provided does not represent a valid image. Please check your input and try again with "
            "one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
        ),
        **dict.fromkeys(("text", "tool_call", "tool_result"), Refusal(400, _NO_JSON)),
    }

    def error(self, refusal: Refusal, request: Request) -> Response:
        """Write `{"error": {"message", "type", "param", "code"}}`."""
        told = self.described(refusal)
        return Response(refusal.status, encode({"error": told}), told["type"], told["message"])

    def described(self, refusal: Refusal) -> dict[str, Any]:
        """Return the fields of OpenAI's `error` object."""
        kind, code, message = self.by_status(_ERRORS, refusal.status)
        if refusal.kind == _QUOTA:
            code, message = _QUOTA, _NO_QUOTA
        elif refusal.kind or refusal.param or refusal.code:
            code = refusal.code
        return {
            "message": refusal.message or message,
            "type": refusal.kind or kind,
            "param": refusal.param,
            "code": code,
        }

    def failure_headers(self, status: int, wait_s: float, now: datetime) -> list[tuple[str, str]]:
        """Return what a rate limit tells clients."""
        if status != 429:
            return []
        return [
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", f"{wait_s:g}s"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "6ms"),
        ]

    def headers(self, request: Request) -> list[tuple[str, str]]:
        """Return the reply's id and the API's version."""
        return [
            ("x-request-id", f"req_{made_up('request', request.call, length=32, small=True)}"),
            ("openai-version", "2020-10-01"),
            ("openai-processing-ms", "1"),
        ]


def unreadable(request: Request) -> Iterator[Refusal]:
    """Refuse a request without a key or without a JSON object."""
    if not request.key:
        yield _NO_KEY
    if request.document is None:
        yield bad(_NO_JSON)


def bad(message: str, param: str | None = None, code: str | None = None) -> Refusal:
    """Refuse a field's value."""
    return Refusal(400, message, "invalid_request_error", param, code)


def missing(param: str) -> Refusal:
    """Refuse a missing field."""
    return bad(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")


def not_among(value: object, supported: Collection[str], param: str) -> Refusal:
    """Refuse a field's value that is not among the supported values."""
    *names, last = (f"'{name}'" for name in supported)
    choices = f"{', '.join(names)}, and {last}" if len(names) > 1 else " and ".join((*names, last))
    return bad(f"Invalid value: '{value}'. Supported values are: {choices}.", param, "invalid_value")


def out_of_range(value: object, param: str, low: int, high: float = inf) -> Iterator[Refusal]:
    """Refuse an integer that is too low or too high; other values pass."""
    number = counted(value)
    if number is not None and number < low:
        text = f"integer below minimum value. Expected a value >= {low}, but got {number} instead."
        yield bad(f"Invalid '{param}': {text}", param, "integer_below_min_value")
    if number is not None and number > high:
        text = f"integer above maximum value. Expected a value <= {high}, but got {number} instead."
        yield bad(f"Invalid '{param}': {text}", param, "integer_above_max_value")


def empty(param: str) -> Refusal:
    """Refuse an empty array."""
    text = "empty array. Expected an array with minimum length 1, but got an empty array instead."
    return bad(f"Invalid '{param}': {text}", param, "empty_array")


def empty_string(param: str) -> Refusal:
    """Refuse an empty string."""
    text = "empty string. Expected a string with minimum length 1, but got an empty string instead."
    return bad(f"Invalid '{param}': {text}", param, "empty_string")


def unpaired(message: str, param: str, *, gateway_accepts: bool = False) -> Refusal:
    """Refuse a tool call without its result, or a result without its call."""
    return Refusal(400, message, "invalid_request_error", param, pairing=True, gateway_accepts=gateway_accepts)
