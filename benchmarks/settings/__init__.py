"""What an operator can set: by variables of the environment, or in one settings file."""
