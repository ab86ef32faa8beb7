"""`python -m hotlap` is `hotlap`."""

from hotlap.cli.main import main

if __name__ == "__main__":
    main()
