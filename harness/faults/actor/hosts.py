"""What happens to a hard-coded host before bytes reach its link: its name is not found, or its certificate is bad.

```
agent ──▶ where is api.anthropic.com? ──▶ our name server      `dns_error`, `dns_late`
      ──▶ TLS handshake ──▶ our certificate                    `bad_certificate`
      ──▶ request ──▶ link ──▶ fake                            wire faults
```
"""

from typing import Literal

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.parameters import Positive
from wedgehog.harness.faults.process_fault import BadCertificateKind, Hands, HostFault, HostHarm


@fault("dns_error", family="actor")
class DnsError(HostFault):
    """The names of the link's hosts are not found: `no_such_name`, `server_failure`, or `no_answer` at all.

    It lasts until it is healed. Connections that are open are not affected.
    """

    kind: Literal["no_such_name", "server_failure", "no_answer"] = "no_such_name"

    async def act(self, hands: Hands) -> None:
        """Let the name server answer so."""
        await hands.harm_host(HostHarm(lookup=self.kind))


@fault("dns_late", family="actor")
class DnsLate(HostFault):
    """The name server answers `s` seconds late for the link's hosts, until it is healed.

    The system's resolver asks twice and waits 2 s for each answer.
    """

    s: Positive

    async def act(self, hands: Hands) -> None:
        """Let the name server wait."""
        await hands.harm_host(HostHarm(lookup="late", late_s=self.s))


@fault("bad_certificate", family="actor")
class BadCertificate(HostFault):
    """New connections to the link's hosts get a bad certificate: `expired`, of a `wrong_name`, or of an `unknown_ca`.

    It lasts until it is healed. An agent that accepts it violates `certificate_checked`.
    """

    kind: BadCertificateKind = "expired"

    async def act(self, hands: Hands) -> None:
        """Show it in each handshake."""
        await hands.harm_host(HostHarm(certificate=self.kind))
