"""What people look at: the report, comparisons, published values, the page of one text."""
