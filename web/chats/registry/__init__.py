"""`Chats`: every chat of this server, by whose it is, and what pages and the API ask of it."""
