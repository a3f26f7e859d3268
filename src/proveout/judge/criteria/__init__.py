"""One module for each pass criterion."""
