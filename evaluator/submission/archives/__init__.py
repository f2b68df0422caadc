"""Taking a stranger's files in: folders, zips and tars, piece by piece and within bounds."""
