"""Training algorithms, one package each."""
