"""Writer of the reference documents: commands, errata, error codes, measures, records, settings, states."""
