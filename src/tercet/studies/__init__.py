"""Measurements behind our own claims, each remade by one command (`tercet study`)."""
