"""What is measured in a step, and where it is written."""
