//! Files beneath a root, and sending them.

use std::io::Write;

use onrush_engine::{Errno, FileKind, Kind, Root, Stream};

use crate::ground::{bytes, on_every_driver, receive_all};

#[test]
fn file_is_sent_after_head() {
    on_every_driver(|core, listener, address| async move {
        let directory = tempfile::tempdir().unwrap();
        let content = bytes(3_000_000);
        std::fs::File::create(directory.path().join("file"))
            .unwrap()
            .write_all(&content)
            .unwrap();
        let file = Root::open(directory.path())
            .unwrap()
            .open_beneath(b"file")
            .unwrap();
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        core.spawn(async move {
            let mut head = server.core().buffer().unwrap();
            assert!(head.put(b"head"));
            server.queue(head);
            let mut sent = 0;
            while sent < 2_500_000 {
                let left = 2_500_000 - sent;
                let more = server.send_file(&file, 1000 + sent, left).await.unwrap();
                assert!((1..=left).contains(&more));
                sent += more;
            }
            server.queue(&b"tail"[..]);
            server.shutdown().await.unwrap();
        });
        let expected = [b"head", &content[1000..2_501_000], b"tail"].concat();
        assert!(receive_all(&client).await.unwrap() == expected);
    });
}

#[test]
fn short_file_is_an_error() {
    on_every_driver(|core, listener, address| async move {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), b"short").unwrap();
        let file = Root::open(directory.path())
            .unwrap()
            .open_beneath(b"file")
            .unwrap();
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        let mut sent = 0;
        let error = loop {
            match server.send_file(&file, sent, 100 - sent).await {
                Ok(more) => sent += more,
                Err(error) => break error,
            }
        };
        assert_eq!(sent, 5);
        assert_eq!(error.kind, Kind::FileTooShort);
        drop(server);
        receive_all(&client).await.ok();
    });
}

#[test]
fn paths_cannot_escape_root() {
    let directory = tempfile::tempdir().unwrap();
    let root_path = directory.path().join("root");
    std::fs::create_dir_all(root_path.join("inner")).unwrap();
    std::fs::write(directory.path().join("secret"), b"secret").unwrap();
    std::fs::write(root_path.join("public"), b"public").unwrap();
    std::os::unix::fs::symlink("../secret", root_path.join("out")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root_path.join("absolute")).unwrap();
    std::os::unix::fs::symlink("../public", root_path.join("inner/within")).unwrap();
    let root = Root::open(&root_path).unwrap();
    for path in [
        "../secret",
        "inner/../../secret",
        "out",
        "absolute",
        "/etc/passwd",
    ] {
        let error = root.open_beneath(path.as_bytes()).unwrap_err();
        assert_eq!(error.kind, Kind::Os(Errno::XDEV), "{path}");
    }
    assert_eq!(
        root.open_beneath(b"inner/within")
            .unwrap()
            .metadata()
            .length,
        6
    );
    assert_eq!(
        root.open_beneath(b"nothing").unwrap_err().kind,
        Kind::Os(Errno::NOENT)
    );
}

#[test]
fn listing_skips_unopenable_files() {
    let directory = tempfile::tempdir().unwrap();
    let root_path = directory.path().join("root");
    std::fs::create_dir_all(root_path.join("inner/deeper")).unwrap();
    std::fs::write(directory.path().join("secret"), b"secret").unwrap();
    std::fs::write(root_path.join("public"), b"public").unwrap();
    std::fs::write(root_path.join("inner/file"), b"1").unwrap();
    for (to, name) in [
        ("../../secret", "out"),
        ("nothing", "dangling"),
        ("../public", "within"),
        (".", "again"),
    ] {
        std::os::unix::fs::symlink(to, root_path.join("inner").join(name)).unwrap();
    }
    std::os::unix::net::UnixListener::bind(root_path.join("inner/socket")).unwrap();
    let root = Root::open(&root_path).unwrap();
    for path in ["inner", "inner/"] {
        let listed = root.list_beneath(path.as_bytes(), 10, |_| true).unwrap();
        let mut found: Vec<_> = listed
            .entries
            .iter()
            .map(|(name, metadata)| (str::from_utf8(name).unwrap(), metadata.kind))
            .collect();
        found.sort_unstable_by_key(|(name, _)| *name);
        let expected = [
            ("again", FileKind::Directory),
            ("deeper", FileKind::Directory),
            ("file", FileKind::Regular),
            ("within", FileKind::Regular),
        ];
        assert_eq!(found, expected, "of {path}");
        assert!(!listed.is_cut);
    }
    let is_public = |name: &[u8]| name == b"public";
    let listed = root.list_beneath(b"", 1, is_public).unwrap();
    assert_eq!(listed.entries[0].0, b"public");
    assert_eq!((listed.entries.len(), listed.is_cut), (1, false));
    assert!(root.list_beneath(b"", 1, |_| true).unwrap().is_cut);
    assert!(root.list_beneath(b"..", 1, |_| true).is_err());
}
