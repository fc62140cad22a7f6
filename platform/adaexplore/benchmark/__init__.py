"""The benchmark itself. Pure: it computes and never waits, reads no file and knows no clock."""
