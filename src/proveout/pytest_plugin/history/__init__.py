"""What the dated results files tell over time: trends and regressions."""
