"""Models and data on this disk: what is there, whether it is whole, and how to make or fetch it."""
