"""A certificate authority of one run: whoever is told of it believes that we are `api.example.com`.

Its key never leaves our memory; a host's key is in the run's folder for as long as it takes to read it.
"""

import ssl
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trustme import CA

VARIABLES = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""By which Node, OpenSSL (and with it Python, Go, Ruby), requests and curl are told of one more authority."""


def why_no_authority() -> str:
    """Why there can be none; empty where there can."""
    return "" if find_spec("trustme") else "certificates need the trustme package: pip install 'wedgehog[hosts]'"


class CertificateAuthority:
    """Made when it is first asked for anything."""

    def __init__(self, folder: Path) -> None:
        """Its own certificate, `ca.pem`, goes into `folder`."""
        self._folder = folder
        self.certificate = folder.absolute() / "ca.pem"

    @property
    def env(self) -> dict[str, str]:
        """What makes an agent believe it."""
        return dict.fromkeys(VARIABLES, str(self.certificate))

    def publish(self) -> None:
        """Write its certificate."""
        self._authority.cert_pem.write_to_path(self.certificate)

    def vouch(self, host: str) -> ssl.SSLContext:
        """What it takes to be `host`, over HTTP/1.1."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        with self._authority.issue_cert(host).private_key_and_cert_chain_pem.tempfile(str(self._folder)) as pem:
            context.load_cert_chain(pem)
        return context

    @cached_property
    def _authority(self) -> "CA":
        from trustme import CA  # for those few agents that need it: loading it takes a tenth of a second

        return CA(organization_name="Wedgehog, for one run")
