"""Data, model, objectives, training and evaluation of InF-Embed."""
