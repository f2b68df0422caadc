"""Images of text-to-image models, as they are sent: every source, one check, one stored form."""
