"""Training of networks: records of self-play games, and what makes networks of them."""
