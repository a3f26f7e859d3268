"""Platform "cpu": lets the real stacks run without a GPU. Loaded only inside their processes."""
