"""TensorBoard event files: framing, checksums, a minimal wire parser and a vectorised path."""
