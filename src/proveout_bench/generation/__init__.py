"""Engines that sample responses from a copy of the policy's weights."""
