"""python -m docs [--out FOLDER] [--jobs N]"""

import sys

from .build import main

sys.exit(main())
