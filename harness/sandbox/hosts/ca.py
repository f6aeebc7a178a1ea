"""The certificate authority of one run: an agent that trusts it accepts our certificate for `api.example.com`.

Its key stays in memory. A host's key is in the run's folder only while it is read.
"""

import ssl
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trustme import CA

VARIABLES = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The variables by which Node, OpenSSL (with it Python, Go, Ruby), requests and curl load one more authority."""


def ca_unavailable_reason() -> str | None:
    """Why no authority can be created; None if one can."""
    return None if find_spec("trustme") else "certificates need the trustme package: pip install 'wedgehog[hosts]'"


class CertificateAuthority:
    """Generated on first use."""

    def __init__(self, folder: Path) -> None:
        """Its certificate will be `ca.pem` in `folder`."""
        self._folder = folder
        self.certificate = folder.absolute() / "ca.pem"

    @property
    def env(self) -> dict[str, str]:
        """The environment that makes an agent trust it."""
        return dict.fromkeys(VARIABLES, str(self.certificate))

    def publish(self) -> None:
        """Write its certificate to `certificate`."""
        self._authority.cert_pem.write_to_path(self.certificate)

    def issue(self, host: str) -> ssl.SSLContext:
        """A server context with a certificate for `host`, for HTTP/1.1."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        with self._authority.issue_cert(host).private_key_and_cert_chain_pem.tempfile(str(self._folder)) as pem:
            context.load_cert_chain(pem)
        return context

    @cached_property
    def _authority(self) -> "CA":
        from trustme import CA  # imported here because it takes a tenth of a second and few agents need it

        return CA(organization_name="Wedgehog, for one run")
