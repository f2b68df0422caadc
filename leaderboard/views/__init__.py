"""Read model: what pages, the API and the terminal show, as plain objects."""
