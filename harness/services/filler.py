"""Text that is as long as it must be."""

FILLER = "All work and no play makes a long page. "


def padded(text: str, size: int) -> str:
    """`text`, repeated up to `size` bytes where that is more (ASCII words are assumed for the padding)."""
    missing = size - len(text.encode())
    return text if missing <= 0 else text + (FILLER * (missing // len(FILLER) + 1))[:missing]
