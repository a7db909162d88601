"""``python -m tunefree.cli``."""

from tunefree.cli.app import main

if __name__ == "__main__":
    main()
