"""Programs that show what the product can do. Each can be started by itself and needs no key."""
