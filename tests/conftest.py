"""Before anything is imported: scikit-learn then runs its array API checks too."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
