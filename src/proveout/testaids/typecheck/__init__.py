"""Static typing of files with the checker and configuration that their own checkout has."""
