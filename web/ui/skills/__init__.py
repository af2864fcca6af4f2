"""The pages and forms of skills."""
