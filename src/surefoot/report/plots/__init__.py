"""Figures, a subject in each file, drawn from the plain arrays of a result alone."""
