"""Private https hosts for one agent: a CA, a DNS stub and a TLS proxy."""
