"""`wedgehog-pipe -- COMMAND`: stands in place of COMMAND so that the harness can harm its stdin and stdout.

Without a harness around it, it *becomes* COMMAND. With one, every byte of both pipes crosses a link of the harness, and
end of input, exit status and signals keep their meaning:

```
 agent ═▶ stdin ══ Stream "in"  ══▶ link ══▶ COMMAND's stdin        one process, both ends of every link:
 agent ◀═ stdout ◀═ link ◀══ Stream "out" ══ COMMAND's stdout       it knows what has not crossed yet
 agent ◀────────────────── stderr ────────── COMMAND                (untouched)
                    └─ Control ─▶ harness
```

It is started wherever the agent would have started COMMAND, so it imports the standard library only, and little of it.
"""

ADDRESS_VARIABLE = "WEDGEHOG_PIPE"
"""`host:port:secret` of the harness's pipe server."""
ADDRESS_FILE = ".wedgehog-pipe"
"""The same in the agent's HOME, then the run's mark, because an MCP client passes HOME on and little else."""
RUN_VARIABLE = "WEDGEHOG_RUN"
"""What every process of a run carries, so that it can be found and ended."""
