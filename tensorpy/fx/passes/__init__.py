"""What walks over graphs and says something of them."""
