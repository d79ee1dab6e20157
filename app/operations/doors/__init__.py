"""Doors for programs: tokens, and the events that they follow."""
