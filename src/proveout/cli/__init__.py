"""The command line: thin modules that parse, call and print."""
