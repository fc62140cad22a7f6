"""Write the golden documents of the operator stand-in anew, when a change is meant."""

import json

import yaml
from test_ray_documents import GOLDEN, MADE

if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, document in MADE.items():
        plain = json.loads(json.dumps(document))  # no anchors
        (GOLDEN / f"{name}.yaml").write_text(yaml.safe_dump(plain, sort_keys=True, width=100))
        print(GOLDEN / f"{name}.yaml")
