"""Worlds to play in."""
