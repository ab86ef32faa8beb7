"""Forward and backward passes of the small networks that drive and value, without autograd."""
