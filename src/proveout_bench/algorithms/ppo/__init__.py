"""Proximal policy optimization (Schulman et al., 2017) with a learned critic."""
