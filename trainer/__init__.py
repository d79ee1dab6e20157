"""Data, model, objectives, training and evaluation of InF-Embed.

Internal: programs import `inf_studio` alone.
"""
