"""Synthesis and validation by language models, judges, studies and releases."""
