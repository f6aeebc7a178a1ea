"""OpenAI's Realtime API over a WebSocket."""
