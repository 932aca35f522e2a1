"""Moorage, a Kubernetes scheduler: it scores every node for every pod and can explain each decision."""

import os

__version__ = "0.1.0"

# The core multiplies no matrices, so threads of the linear algebra under numpy would only take memory and, at
# their start, CPU from others. Read when numpy is first imported, hence here; who sets a number keeps it.
for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_variable, "1")
