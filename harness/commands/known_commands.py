"""A word that is no command names the command that does what it means."""

from typing import Any

from typer.core import TyperGroup

MEANT = {
    "list": "wedgehog scenarios, or wedgehog agents",
    "show": "wedgehog scenarios, or wedgehog explain NAME",
    "timers": "wedgehog agents timers",
    "install": "wedgehog agents install",
    "resume": "wedgehog run --resume RUN",
    "gate": "wedgehog run --baseline FILE",
    "report": "wedgehog check",
    "judge": "wedgehog check",
    "test": "wedgehog run",
}


class KnownCommands(TyperGroup):
    """The commands of `wedgehog`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; for a word of another one say which."""
        if args and args[0] in MEANT and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}. Did you mean: {MEANT[args[0]]}?")
        return super().resolve_command(ctx, args)
