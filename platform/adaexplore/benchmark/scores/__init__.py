"""What a played episode is worth: metrics and statistics."""
