"""Any classifier behind one face: pixels in, logits and features out."""
