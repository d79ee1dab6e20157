"""REST at `/api/v1`: routes made from the operations, their document, events as streams."""
