"""Who asks, and how many event streams are open for those who may."""
