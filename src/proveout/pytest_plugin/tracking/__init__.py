"""The ``tracker`` fixture and the results files that it fills."""
