"""What a page shows, as plain data: the kinds of part, and channels that give them versions."""
