"""One check, or one tight family of checks, a module."""
