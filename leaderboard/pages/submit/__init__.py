"""Taking submissions: the forms, the files they bring and what is answered."""
