"""Small products on a busy machine: BLAS threads that wait for each other would cost more than they bring."""
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
