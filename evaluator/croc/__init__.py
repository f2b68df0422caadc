"""CROC data of one's own: prompt pairs by a language model from a taxonomy, and their images."""
