"""One module for each outside service; none knows another."""
