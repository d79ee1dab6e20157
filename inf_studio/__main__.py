"""`inf`, and `python -m inf_studio`: the command line."""

from app.cli.start import main

if __name__ == "__main__":
    main()
