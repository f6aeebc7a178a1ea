"""A fake provider on its own: sessions, request log, breakpoints, balances and the admin API."""
