"""What passes have in common: matches of a pattern, nodes that become a module."""
