"""Batched image arithmetic: pure functions of pixels, used by data, views and corruptions."""
