"""The versioned API for programs: what the pages show, with raw values."""
