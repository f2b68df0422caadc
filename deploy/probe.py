"""Asks a server of this machine how it is: `python probe.py PORT`; exits with 0 where it is well.

Standard library only, and no import of Assay: containers run it every half a minute.
"""

from __future__ import annotations

import http.client
import sys

PATIENCE_S = 8.0
"""Longer than the server's own patience with a silent store, shorter than the probe's time."""


def main(port: int) -> int:
    """0 where `/health` answers that it is up, 1 where it is down or does not answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        said = answer.read(400).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        sys.stderr.write(f"no answer at port {port}: {error}\n")
        return 1
    finally:
        connection.close()
    sys.stdout.write(f"{answer.status} {said}\n")
    return 0 if answer.status == http.client.OK else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
