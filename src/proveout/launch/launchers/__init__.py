"""One module for each way to wrap a command; the table of them is in ``proveout.launch``."""
