"""The engine: a scenario goes in, one recorded history and its verdicts come out."""
