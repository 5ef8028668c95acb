"""Training: the loop, its optimiser and schedule, the recipe that reproduces a run, and the folder it leaves."""
