"""The page of one metric: everything that is known of it."""
