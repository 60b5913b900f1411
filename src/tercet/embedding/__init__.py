"""phi: the network, its training and its torch-free forward pass."""
