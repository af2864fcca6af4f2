"""The files of chats as a browser gets them: listed, shown, downloaded, sent in."""
