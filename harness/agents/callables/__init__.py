"""The kind of agent that is a Python function: the process or the fork in which it runs, and its Python."""
