"""A fake provider on its own: sessions, request log, breakpoints and the admin API."""
