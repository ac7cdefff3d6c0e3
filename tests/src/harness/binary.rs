//! Where the node's binary is.
//!
//! `KORUM_BIN` names one; otherwise it is built once per test process with the profile and target directory that the
//! test itself was built with (cargo does nothing when it is up to date).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

static BINARY: OnceLock<PathBuf> = OnceLock::new();

/// Path of `korum-node`.
///
/// # Panics
/// When it cannot be built.
pub fn node() -> &'static Path {
    BINARY.get_or_init(|| std::env::var_os("KORUM_BIN").map_or_else(build, PathBuf::from))
}

fn build() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    // target/<profile>/deps/<test>
    let profile = test.ancestors().nth(2).expect("tests are in target/<profile>/deps").to_path_buf();
    let target = profile.parent().expect("a profile is in the target directory");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "-p", "korum-node", "--bin", "korum-node", "--target-dir"]).arg(target);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "korum-node does not build");
    profile.join("korum-node")
}
