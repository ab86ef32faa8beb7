"""`python -m hotlap`: the same as the command `hotlap`."""

from hotlap.cli.main import main

if __name__ == "__main__":
    main()
