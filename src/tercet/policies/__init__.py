"""Policies, one protocol."""
