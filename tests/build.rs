//! Lets what looks `getrandom` up by name find the simulation's (`sim/chance.rs`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bin=korum-sim=-Wl,--export-dynamic-symbol=getrandom");
}
