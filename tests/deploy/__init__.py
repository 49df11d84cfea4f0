"""What is shipped in deploy/, tried as far as it can be without a cluster."""
