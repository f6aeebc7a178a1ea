"""OpenAI's chat completions and embeddings."""
