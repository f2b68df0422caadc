"""The backend that makes namespaces with bubblewrap, and the layers around it."""
