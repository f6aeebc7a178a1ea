"""The files of the user, and the tools that change them."""
