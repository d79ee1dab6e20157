"""The store: tables, queries and the job queue. Imports nothing of ours.

Functions here take a session and never commit; the caller does. See `docs/architecture.md`.

Internal: programs import `inf_studio` alone.
"""
