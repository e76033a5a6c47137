//! The committed code of `quorate-api` is what the schema says. With `QUORATE_PROTO=write` it is
//! written anew, which is what `cargo xtask proto` does.

use prost::Message as _;
use std::fs;
use std::path::{Path, PathBuf};

const FILES: [&str; 5] = ["common", "kv", "tree", "error", "admin"];

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/api").join(path)
}

/// The compiled schema with its comments, and the code for it.
fn generate() -> (Vec<u8>, Vec<u8>) {
    let files = FILES.map(|name| format!("quorate/v1/{name}.proto"));
    let schema = protox::compile(files, [at("proto")]).unwrap_or_else(|error| panic!("{error:?}"));
    let out = tempfile::tempdir().expect("a temporary directory");
    tonic_prost_build::configure()
        .build_transport(false)
        .bytes(".")
        .out_dir(out.path())
        .compile_fds(schema.clone())
        .expect("the code can be generated");
    let code = fs::read(out.path().join("quorate.v1.rs")).expect("one package, one file");
    // Comments are for readers of the code, not for those who ask a running host.
    let mut bare = schema;
    bare.file.iter_mut().for_each(|file| file.source_code_info = None);
    (bare.encode_to_vec(), code)
}

#[test]
fn the_generated_code_is_current() {
    let (schema, code) = generate();
    let generated = [("quorate.v1.bin", schema), ("quorate.v1.rs", code)];
    let is_writing = std::env::var_os("QUORATE_PROTO").is_some_and(|word| word == "write");
    for (name, expected) in generated {
        let path = at("src/generated").join(name);
        if is_writing {
            fs::write(&path, expected).expect("the folder is there");
        } else {
            let found = fs::read(&path).expect("it is committed");
            assert!(found == expected, "{name} is not current: run `cargo xtask proto`");
        }
    }
}

#[test]
fn every_field_and_every_call_is_documented() {
    for name in FILES {
        let path = at("proto/quorate/v1").join(format!("{name}.proto"));
        let text = fs::read_to_string(path).expect("the schema is there");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            let head = ["rpc ", "message ", "enum ", "service ", "oneof "];
            let is_head = head.iter().any(|word| line.starts_with(word));
            let is_field = line.ends_with(';') && line.contains(" = ") && !line.contains('"');
            if is_head || is_field {
                let before = lines[index - 1];
                assert!(before.starts_with("//"), "{name}.proto: nothing is said of `{line}`");
            }
        }
    }
}
