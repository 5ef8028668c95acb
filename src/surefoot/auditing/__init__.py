"""Runs the measurements on a model and writes what they found."""
