//! Files beneath a root, and sending them.

use std::io::Write;

use onrush_engine::{Errno, Kind, Root, Stream};

use crate::ground::{bytes, on_every_driver, receive_all};

#[test]
fn a_file_is_sent_behind_its_head() {
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
fn a_file_shorter_than_promised_is_an_error() {
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
fn a_path_cannot_leave_its_root() {
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
