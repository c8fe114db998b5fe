"""`python -m minitx` is the command `minitx`: it hands over to minitx.analysis."""

import sys

from .analysis.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
