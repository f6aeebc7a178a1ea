"""Padding for texts of a given size."""

FILLER = "All work and no play makes a long page. "


def padded(text: str, size: int) -> str:
    """Return `text` with ASCII filler up to `size` bytes; a longer text is unchanged."""
    missing = size - len(text.encode())
    return text if missing <= 0 else text + (FILLER * (missing // len(FILLER) + 1))[:missing]
