"""As much of the `mcp` package as our server over stdio needs for a client that calls tools, without pydantic's models.

The official package takes a second to import. Tests whose point is what becomes of processes start a server for each
message of an agent; `tests/parity/test_tool_host.py` and `tests/docs/test_tools_page.py` use the official one.
"""
