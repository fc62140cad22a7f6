"""`python -m adaexplore`: the same as the `adaexplore` command."""

from adaexplore.verbs import main

if __name__ == "__main__":
    main()
