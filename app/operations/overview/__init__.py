"""What there is and what goes on: the store at a glance, a run at work, Home, the demo."""
