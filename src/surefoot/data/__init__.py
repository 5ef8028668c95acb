"""Where images come from: one `load_data`, splits that never overlap, batches of pixels in [0, 1]."""
