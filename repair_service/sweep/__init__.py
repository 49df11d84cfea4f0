"""Selection, batches and totals: feeds heads to the repair room and its patches to the store."""
