"""What the ledger takes and gives: plain values, made without a database library.

Nothing here holds content of a message, but for `RemovedMessage`.
"""
