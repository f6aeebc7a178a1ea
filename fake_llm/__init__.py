"""The fake LLM provider: scripted replies in real wire formats, with every byte's place known beforehand."""
