"""What the product can do, one module per noun: pages, commands and routes are doors to it.

An operation is `do(actor, request) -> result`: it checks the right, opens the session under the
actor's scope, does the work or launches the job, writes the audit entry, commits.
"""
