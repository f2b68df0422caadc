"""Commands for those who build Assay; the site and the workers need none of them."""
