"""Agreement, diversity, coverage, and what curation and trainer need of it."""
