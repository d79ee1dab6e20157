"""Rules that write instructions and hard negatives without a model: the offline provider."""
