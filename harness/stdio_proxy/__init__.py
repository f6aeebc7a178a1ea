"""`wedgehog-pipe -- COMMAND`: runs COMMAND so that the harness can inject faults into its stdin and stdout.

Without a harness, the process becomes COMMAND. With one, every byte of both pipes crosses a link of the harness; end of
input, exit status and signals work as before:

```
 agent ═▶ stdin ══ ProxyStream "in"  ══▶ link ══▶ COMMAND's stdin   one process has both ends of every link,
 agent ◀═ stdout ◀═ link ◀══ ProxyStream "out" ══ COMMAND's stdout  so it can count the bytes that are on their way
 agent ◀────────────────── stderr ────────── COMMAND                (not proxied)
              └─ HarnessConnection ─▶ harness
```

It starts whenever the agent starts COMMAND, so it imports only a few modules of the standard library.
"""

ADDRESS_VARIABLE = "WEDGEHOG_PIPE"
"""`host:port:secret` of the harness's pipe server."""
ADDRESS_FILE = ".wedgehog-pipe"
"""In the agent's HOME: the same address, then the run's mark. An MCP client passes on HOME and few other variables."""
RUN_VARIABLE = "WEDGEHOG_RUN"
"""Holds the mark by which every process of a run is found and ended."""
