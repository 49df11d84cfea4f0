"""The command `repair-service`: one file a verb, each a thin shell over the other rooms."""
