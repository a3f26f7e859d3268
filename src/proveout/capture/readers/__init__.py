"""One module per metric format; the registry names them."""
