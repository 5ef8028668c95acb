"""One figure a file, drawn from the plain arrays of a result alone."""
