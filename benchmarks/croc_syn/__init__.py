"""CROC_syn: contrast pairs written by language models, with five generated images of each prompt."""
