//! Writes the bindings from the C headers, and finds libtenon: in the folder TENON_LIB_DIR, else by pkg-config, else in
//! the build of this source tree.
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn by_pkg_config() -> Option<PathBuf> {
    let found = Command::new("pkg-config").args(["--variable=libdir", "tenon"]).output().ok()?;
    let folder = String::from_utf8(found.stdout).ok()?;
    let folder = Path::new(folder.trim());
    (found.status.success() && folder.is_dir()).then(|| folder.to_path_buf())
}

fn in_source_tree() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build");
    folder.join("libtenon.so").exists().then_some(folder)
}

fn write_bindings() {
    println!("cargo:rerun-if-changed=generate.py");
    println!("cargo:rerun-if-changed=../../include/tenon");
    let into = env::var_os("OUT_DIR").expect("OUT_DIR, which cargo sets");
    let done = Command::new("python3").args(["-B", "generate.py", "--into"]).arg(into).status();
    let done = done.expect("expected python3, which writes the bindings from the C headers");
    assert!(done.success(), "generate.py failed");
}

fn main() {
    write_bindings();
    println!("cargo:rerun-if-env-changed=TENON_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let named = env::var_os("TENON_LIB_DIR").map(PathBuf::from);
    if let Some(folder) = named.or_else(by_pkg_config).or_else(in_source_tree) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display()); // of this package's tests and examples
    }
    println!("cargo:rustc-link-lib=dylib=tenon");
}
