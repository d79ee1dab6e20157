"""The objectives of InF-Embed: pure functions of scores, one file per family."""
