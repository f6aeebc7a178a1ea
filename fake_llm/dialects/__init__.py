"""Wire formats, a folder for each provider: `wire.py` writes its replies, `validate.py` reads and refuses requests."""
