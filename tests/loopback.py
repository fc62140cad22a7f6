"""Ports of loopback for servers that have to be told where to listen.

Between the look at a port and the server that takes it, seconds may pass. So a port is drawn from below
those that the system gives to outgoing connections and to whoever asks for any (32768 and up on Linux),
and stays claimed on the whole machine for as long as this process lives: no other test gets it.
"""

import random

from adaexplore.backends.vllm import ports

FIRST, LAST = 10_000, 14_000
"""Where the search begins: away from the ports that the stack and model servers have by default."""
_CLAIMS = []


def free_ports(count):
    """Ports that nobody listens on, and that nobody else is given."""
    chance = random.SystemRandom()
    claims = [ports.claim(chance.randrange(FIRST, LAST)) for _ in range(count)]
    _CLAIMS.extend(claims)
    return [claim.port for claim in claims]
