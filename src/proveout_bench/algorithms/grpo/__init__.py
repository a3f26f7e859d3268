"""Group relative policy optimization (Shao et al., "DeepSeekMath", 2024)."""
