"""Who may do what: accounts, rights, acts, quotas, bans, versions."""
