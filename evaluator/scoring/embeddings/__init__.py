"""Embeddings kept on disk, so that another run on the same images encodes nothing."""
