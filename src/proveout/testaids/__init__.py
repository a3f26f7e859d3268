"""The steps around unit tests that a checkout documents: configurations, hermetic runs, assets, typing."""
