"""Governance: accounts, rights, operator actions, quotas, bans, versions."""
