"""Tests of the Python package. test_ranks_*.py are run by every rank of a gyre-run; the others are a process of
their own that starts what it needs. bindings/python/CMakeLists.txt says how each is run."""
