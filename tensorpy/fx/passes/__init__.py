"""What walks over graphs: says something of them, divides them, changes them."""
