"""Front door for ``python -m platform.launch``; otherwise the standard library's ``platform``.

The standard library owns this name, so importing ``platform`` from a checkout must give exactly its
module. We load that module in our place and lend it this folder as a search path, which is all that
``python -m platform.launch`` needs. No other code belongs here.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_spec = PathFinder.find_spec("platform", [os.path.dirname(os.__file__)])
_stdlib = module_from_spec(_spec)
_stdlib.__path__ = [os.path.dirname(__file__)]
sys.modules["platform"] = _stdlib
_spec.loader.exec_module(_stdlib)
