"""The backend that asks a container engine: Docker, Podman, either with gVisor."""
