"""The bundled scorers of the demo in the form a stranger submits, and the training of one."""
