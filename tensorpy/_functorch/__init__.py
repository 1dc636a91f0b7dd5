"""The modules under which PyTorch keeps what tensorpy.func has; programs import from them."""
