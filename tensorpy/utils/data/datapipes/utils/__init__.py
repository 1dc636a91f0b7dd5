"""What pipes share: checks of their functions, streams that close themselves, decoders and snapshots."""
