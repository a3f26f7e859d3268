"""What scores the responses: rules, or a reward model."""
