"""Wire formats: one file per provider, the same verbs in each."""
