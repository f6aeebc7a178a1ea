"""The kind of agent whose user sits in front of a page: its browser, the window, what is seen on the page."""
