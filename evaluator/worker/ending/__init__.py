"""From scores to a published result or a stated end, kept on disk until the store has it."""
