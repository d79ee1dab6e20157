"""Synthesis and validation by language models, judges, studies and releases.

Internal: programs import `inf_studio` alone.
"""
