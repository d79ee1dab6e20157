"""Published collections as pairs and passages: one adapter per source, all pure readers."""
