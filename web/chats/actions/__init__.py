"""What a person does to things of a chat, where pages have to tell of it."""
