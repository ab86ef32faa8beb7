"""The page: its server, its data, and the static files it is made of."""
