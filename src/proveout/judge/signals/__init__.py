"""What the metrics of a training run say about learning: one module for each kind of sign."""
