"""The words of proveout as plain data and pure rules. Imports nothing else of proveout."""
