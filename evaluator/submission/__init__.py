"""Taking submissions: manifest, archive and the checks both go through."""
