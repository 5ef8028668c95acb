"""Plain results to one HTML page. Nothing here imports torch: it reads what an audit wrote."""
