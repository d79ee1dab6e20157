"""The command line `inf`: one module per command, `report` for what they print."""
