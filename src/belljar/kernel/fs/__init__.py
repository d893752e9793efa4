"""The file servers, one module each; everything a guest can touch is one of them."""
