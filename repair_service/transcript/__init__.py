"""Pure: a message list in bytes, what is wrong with it, and its mended bytes."""
