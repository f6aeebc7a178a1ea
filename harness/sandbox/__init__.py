"""Agent processes and what surrounds them: started and marked, and all of them ended with the run."""
