"""``python -m tunefree``."""

from tunefree.cli.app import main

if __name__ == "__main__":
    main()
