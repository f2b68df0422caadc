"""What Assay is made of and how it is released: locks, known defects, lists of parts."""
