"""The ledger's statements, and the records that their rows become."""
