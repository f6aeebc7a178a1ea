"""An OAuth token endpoint (RFC 6749): a POST to a path that ends in `/token` gets a bearer token for the model.

POST /oauth/token   grant_type=client_credentials&client_id=…      200  {"access_token", "token_type", "expires_in"}
                    grant_type=refresh_token&refresh_token=…       200  … and a new "refresh_token"
"""

from base64 import b64decode
from binascii import Error as NoBase64Error
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl

from wedgehog.fake_llm.api_key import fingerprint
from wedgehog.fake_llm.clock import http_date
from wedgehog.fake_llm.frame import encode
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.observer import TokenRequestAnswered
from wedgehog.fake_llm.reply import HOUR_S, OAUTH_PATH, TokenError, TokenHarm
from wedgehog.fake_llm.request import Request, json_object
from wedgehog.fake_llm.wire_reply import WireReply, whole

_STATUS: Final = {"invalid_client": 401, "server_error": 500, "temporarily_unavailable": 503}
_SAYS: Final = {
    "invalid_grant": "The refresh token is invalid, expired or revoked.",
    "invalid_client": "Client authentication failed.",
    "invalid_request": "A parameter of the grant is missing.",
    "unsupported_grant_type": "The grants are client_credentials and refresh_token.",
    "server_error": "The authorization server had an error.",
    "temporarily_unavailable": "The authorization server is overloaded.",
}


class TokenEndpoint:
    """Issues tokens and knows them again; `harm` is asked for each request that is right in itself.

    >>> endpoint = TokenEndpoint()
    >>> form = b"grant_type=client_credentials&client_id=me"
    >>> endpoint.respond(Request(1, "POST", OAUTH_PATH, {}, form), 0)[0].status, endpoint.issued
    (200, 1)
    """

    def __init__(self, harm: Callable[[], TokenHarm] = TokenHarm, expires_in: int = HOUR_S) -> None:
        """`expires_in` is what the answer says; a token is refused when the script says so, and not by a clock."""
        self._harm, self._expires_in = harm, expires_in
        self._numbers: dict[str, int] = {}
        self._carried: dict[int, int] = {}

    @property
    def issued(self) -> int:
        """How many tokens have been issued."""
        return len(self._numbers)

    def owner(self, key: str) -> str:
        """The fingerprint under which a key's requests belong together: all tokens are of one client."""
        return fingerprint(OAUTH_PATH if key in self._numbers else key)

    def carries(self, call: int, key: str) -> None:
        """A model request came with this key."""
        if key in self._numbers:
            self._carried[call] = self._numbers[key]

    def number_of(self, call: int) -> int:
        """The number of the token that a call carried, from 1; 0: another key."""
        return self._carried.get(call, 0)

    @staticmethod
    def is_asked(request: Request) -> bool:
        """Whether a request is for a token."""
        return request.method == "POST" and request.path.endswith("/token")

    def respond(
        self, request: Request, now_s: int, *, closes: bool = False
    ) -> tuple[TokenRequestAnswered, WireReply | None, float]:
        """The fact of the answer, which holds no token, its bytes (None: it never comes), and the seconds before it."""
        form = _form(request)
        harm = TokenHarm(_mistake(form, request))
        if harm.error is None:
            harm = self._harm()
        if harm.late_s is None:
            return TokenRequestAnswered(request.call, form.get("grant_type", "")[:40], 0, "", ""), None, 0
        status = 200 if harm.error is None else _STATUS.get(harm.error, 400)
        grant = form.get("grant_type", "")
        document = self._token(grant) if harm.error is None else _refused(harm.error)
        headers = [("Date", http_date(now_s)), ("Cache-Control", "no-store"), ("Pragma", "no-cache")]
        if status == 401:
            headers.append(("WWW-Authenticate", 'Basic realm="token"'))
        fact = TokenRequestAnswered(
            request.call, grant[:40], status, harm.error or "", fingerprint(str(document.get("access_token", "")))
        )
        return fact, whole(status, encode(document), headers, closes=closes), harm.late_s

    def _token(self, grant: str) -> dict[str, object]:
        number = self.issued + 1
        token = f"wht-{made_up('access token', number, length=40)}"
        self._numbers[token] = number
        refresh = {"refresh_token": f"whr-{made_up('refresh token', number, length=40)}"}
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": self._expires_in}
        return answer | (refresh if grant == "refresh_token" else {})


def _form(request: Request) -> dict[str, str]:
    """The parameters of a form; JSON is read too, since some services accept it."""
    document = json_object(request.body)
    if document is not None:
        return {name: given for name, given in document.items() if isinstance(given, str)}
    return dict(parse_qsl(request.body.decode(errors="replace")))


def _mistake(form: dict[str, str], request: Request) -> TokenError | None:
    grant = form.get("grant_type")
    if grant is None:
        return "invalid_request"
    if grant == "refresh_token":
        return None if form.get("refresh_token") else "invalid_request"
    if grant != "client_credentials":
        return "unsupported_grant_type"
    return None if form.get("client_id") or _has_basic(request) else "invalid_client"


def _has_basic(request: Request) -> bool:
    """Whether the client named itself by HTTP Basic."""
    scheme, _, words = request.headers.get("authorization", "").partition(" ")
    try:
        return scheme.lower() == "basic" and b":" in b64decode(words, validate=True)
    except NoBase64Error:
        return False


def _refused(error: str) -> dict[str, object]:
    return {"error": error, "error_description": _SAYS[error]}
