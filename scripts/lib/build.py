"""Where the node's binary is, and building it.

KORUM_BIN names a ready binary; CARGO_TARGET_DIR is honoured.
"""

import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def cargo():
    """Path of cargo, also where rustup put it but PATH does not say so."""
    found = shutil.which("cargo") or os.path.expanduser("~/.cargo/bin/cargo")
    if not os.access(found, os.X_OK):
        sys.exit("cargo is not installed; get Rust from https://rustup.rs, then try again")
    return found


def target_directory():
    """Cargo's target directory for this workspace."""
    reply = subprocess.run(
        [cargo(), "metadata", "--format-version=1", "--no-deps"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    return json.loads(reply.stdout)["target_directory"]


def node_binary(release=True):
    """Path of korum-node, built now if it is not up to date."""
    given = os.environ.get("KORUM_BIN")
    if given:
        if not os.access(given, os.X_OK):
            sys.exit(f"KORUM_BIN={given}: no such program")
        return os.path.abspath(given)
    command = [cargo(), "build", "--quiet", "-p", "korum-node"] + (["--release"] if release else [])
    print("building korum-node" + (" (release)" if release else ""), "...", file=sys.stderr, flush=True)
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        sys.exit("the build failed; see above")
    return os.path.join(target_directory(), "release" if release else "debug", "korum-node")
