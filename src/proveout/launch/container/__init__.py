"""Containers by the docker or podman command line: what is mounted, what is handed in, how the end is told."""
