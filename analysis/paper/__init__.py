"""What the paper prints: its tables, and rows of ours next to them."""
