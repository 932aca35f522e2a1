"""`python -m moorage` is the command `moorage`."""

from moorage.cli import main

if __name__ == "__main__":
    main()
