"""What several test modules need: recorded data, random games, random networks, kernels to call leaves through."""
