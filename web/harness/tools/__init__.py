"""Tools: what they are, the registry, schemas from signatures, permissions."""
