"""What is hidden and what is seen: fields, rules, drift, cases, and the search that finds them."""
