"""The paper view: the figures and tables of the paper, ours next to what it prints."""
