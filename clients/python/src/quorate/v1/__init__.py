"""What the schema `quorate.v1` defines, written by clients/python/generate.py."""
