"""The demo that kills its server in the middle of an answer, and shows that the answer goes on."""
