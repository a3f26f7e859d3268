"""Scripts that other interpreters run. They import the standard library only and keep to Python 3.8."""
