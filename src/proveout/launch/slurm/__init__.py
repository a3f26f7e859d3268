"""Slurm: jobs and job arrays that run the supervisor inside the allocation."""
