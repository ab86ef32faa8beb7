"""Several processes that train one run: who they are, what they exchange, how a lost one is noticed."""
