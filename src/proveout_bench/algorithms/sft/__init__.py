"""Supervised fine-tuning on demonstrations."""
