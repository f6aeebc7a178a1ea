"""An agent sends nothing to a server whose certificate is bad."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.record.events.run import BadCertificateShown
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("certificate_checked")
def certificate_checked(history: History) -> Iterator[Verdict]:
    """No certificate that is expired, for another name or from an unknown authority is accepted.

    An agent that accepts it sends its key and every message to any server that answers in the provider's place.

    Fix: Leave the verification of certificates on (no `verify=False`, no `NODE_TLS_REJECT_UNAUTHORIZED=0`), and show
    the error to the user. Add your own authority to the trusted ones instead.
    """
    for shown in history.of(BadCertificateShown):
        flaw = shown.flaw.replace("_", " ")
        if shown.accepted:
            yield fail(f"the agent accepted a bad certificate of {shown.host}: {flaw}", (shown,))
        else:
            yield passed(because=f"the bad certificate of {shown.host} was refused")
