"""Trust checks: the same questions asked otherwise, before a metric may rank."""
