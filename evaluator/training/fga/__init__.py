"""FGA-BLIP2: targets of tokens, losses, the network in training, and its scorer."""
