"""Agreement, diversity, coverage, and what curation and trainer need of it.

Internal: programs import `inf_studio` alone.
"""
