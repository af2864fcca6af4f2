"""Sessions: identity, snapshot, the contract of stores and leases, the event log."""
