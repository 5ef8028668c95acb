"""Grids of runs: train and audit several recipes under one budget, and lay the results side by side."""
