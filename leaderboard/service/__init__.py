"""What the site and the workers answer to programs: health, metrics, webhooks, what is live."""
