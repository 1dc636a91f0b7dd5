"""Parts of torch's own test tools that libraries use in theirs."""
