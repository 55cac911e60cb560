//! Who may listen on an address.

use onrush_engine::{Address, Claim, Core, Io, Listener};

#[test]
fn a_taken_address_is_an_error_even_with_port_sharing() {
    let core = Core::new(0, Io::Epoll).unwrap();
    let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
    let _listener = Listener::new(&core, &claim).unwrap();
    let error = Claim::new(claim.address()).unwrap_err();
    assert!(error.is_address_in_use(), "{error}");
}

#[test]
fn a_free_port_is_given_to_one_claim_only() {
    let free = Address::Tcp("127.0.0.1:0".parse().unwrap());
    let claims: Vec<Claim> = (0..400).map(|_| Claim::new(&free).unwrap()).collect();
    let mut addresses: Vec<String> = claims
        .iter()
        .map(|claim| claim.address().to_string())
        .collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), claims.len());
}

#[test]
fn an_abandoned_unix_socket_is_replaced_and_a_live_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let claim = Claim::new(&Address::Unix(path.clone())).unwrap();
    assert!(
        Claim::new(&Address::Unix(path.clone()))
            .unwrap_err()
            .is_address_in_use()
    );
    drop(claim);
    assert!(!path.exists());
}

#[test]
fn a_file_that_is_no_socket_is_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, b"somebody's").unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for taken in [&path, &link] {
        let error = Claim::new(&Address::Unix(taken.clone())).unwrap_err();
        assert!(error.is_address_in_use(), "{error}");
        assert_eq!(std::fs::read(taken).unwrap(), b"somebody's");
    }
}
