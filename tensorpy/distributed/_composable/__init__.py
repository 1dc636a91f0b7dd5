"""The first home of `fully_shard`, which older programs import it from."""
