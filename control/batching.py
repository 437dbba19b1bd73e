"""temp"""

BATCHING = {"scan": None, "while_loop": None, "switch": None}
