"""The public ledger."""
