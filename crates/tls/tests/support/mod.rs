//! Checks shared by tests and fuzz targets: with any bytes both ends terminate, and receive only what was sent.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::{Address, Claim, Core, Error, Input, Listener, Simulation, Stream};
use onrush_tls::{
    Acceptor, ClientSetup, Clients, Connector, Identity, Misdirected, Profile, ServerSetup,
    Transport, Verify,
};

/// Simulated cores do not wait in real time.
const PATIENCE: Duration = Duration::from_secs(60);

thread_local! {
    static SERVER: Arc<Acceptor> = Arc::new(acceptor());
    static CLIENT: Arc<Connector> = Arc::new(connector());
}

fn acceptor() -> Acceptor {
    let setup = ServerSetup {
        certificates: vec![Identity::SelfSigned],
        profile: Profile::Intermediate,
        clients: Clients::Ignored,
        misdirected: Misdirected::Refuse,
        named_clients: Vec::new(),
        protocols: vec!["http/1.1"],
    };
    Acceptor::new(setup).expect("no file can be wrong").0
}

fn connector() -> Connector {
    let setup = ClientSetup {
        verify: Verify::Nothing,
        ..ClientSetup::default()
    };
    Connector::new(setup).expect("no file can be wrong").0
}

/// The caller keeps the claim: without it the kernel may assign its port again.
fn listen(core: &Core) -> (Listener, Claim) {
    let claim = Claim::new(&Address::Tcp(([127, 0, 0, 1], 0).into())).expect("a free port");
    let listener = Listener::new(core, &claim).expect("it is ours");
    (listener, claim)
}

/// Checks that a server refuses a client that sends `input` and closes the connection.
pub(crate) fn garbage(input: &[u8]) {
    let core = Core::simulated(Simulation::with_seed(input.len() as u64));
    let (listener, claim) = listen(&core);
    let address = claim.address().clone();
    let (client, bytes) = (core.clone(), input.to_vec());
    core.spawn(async move {
        let stream = Stream::connect(&client, &address, None)
            .await
            .expect("somebody listens");
        // The server may refuse before all of it is sent.
        if send(&stream, &bytes).await.is_ok() {
            let _ = stream.shutdown().await;
        }
        stream.set_deadline(Some(client.now_exact() + PATIENCE));
        let mut received = Input::default();
        while let Ok(1..) = stream.recv(&mut received).await {
            received.consume(received.bytes().len());
        }
    });
    let server = core.clone();
    core.spawn(async move {
        let stream = listener.accept().await.expect("somebody connects");
        let acceptor = SERVER.with(Arc::clone);
        let deadline = server.now_exact() + PATIENCE;
        let accepted =
            Transport::accept(stream, onrush_engine::Input::default(), &acceptor, deadline).await;
        assert!(accepted.is_err(), "nobody can guess a handshake");
    });
    assert_eq!(core.run(), 0, "both ends came to an end");
}

/// Checks a connection through a relay that changes bytes of the client. `changes` has three bytes per change: the
/// position, 0 to 65,535, and a mask to XOR with. The server must receive a prefix of the sent data.
pub(crate) fn tampering(changes: &[u8]) {
    let core = Core::simulated(Simulation::with_seed(changes.len() as u64));
    let (server_listener, server_claim) = listen(&core);
    let (relay_listener, relay_claim) = listen(&core);
    let relay_address = relay_claim.address().clone();
    let sent: Vec<u8> = (0..40_000).map(|index| (index * 31 % 251) as u8).collect();
    let received: Rc<Cell<Vec<u8>>> = Rc::default();
    let expected = sent.clone();
    let client = core.clone();
    core.spawn(async move {
        let deadline = client.now_exact() + PATIENCE;
        let stream = Stream::connect(&client, &relay_address, None)
            .await
            .expect("it listens");
        let connector = CLIENT.with(Arc::clone);
        let Ok(transport) = Transport::connect(stream, &connector, "localhost", deadline).await
        else {
            return;
        };
        transport.set_deadline(Some(deadline));
        for piece in sent.chunks(10_000) {
            transport.queue(Rc::<[u8]>::from(piece));
        }
        if transport.flush().await.is_ok() && transport.shutdown().await.is_ok() {
            let mut input = Input::default();
            while let Ok(1..) = transport.recv(&mut input).await {
                input.consume(input.bytes().len());
            }
        }
    });
    relay(
        &core,
        relay_listener,
        server_claim.address().clone(),
        changes.to_vec(),
    );
    let (server, seen) = (core.clone(), Rc::clone(&received));
    core.spawn(async move {
        let deadline = server.now_exact() + PATIENCE;
        let stream = server_listener.accept().await.expect("the relay connects");
        let acceptor = SERVER.with(Arc::clone);
        if let Ok(transport) =
            Transport::accept(stream, onrush_engine::Input::default(), &acceptor, deadline).await
        {
            transport.set_deadline(Some(deadline));
            let mut input = Input::default();
            let mut all = Vec::new();
            while let Ok(1..) = transport.recv(&mut input).await {
                all.extend_from_slice(input.bytes());
                input.consume(input.bytes().len());
            }
            seen.set(all);
        }
    });
    assert_eq!(core.run(), 0, "both ends came to an end");
    let received = received.take();
    assert!(
        expected.starts_with(&received),
        "{} bytes are others",
        received.len()
    );
    if changes.len() < 3 {
        assert_eq!(received.len(), expected.len(), "nothing was changed");
    }
}

/// Forwards the client's bytes with changes, and the server's bytes without.
fn relay(core: &Core, listener: Listener, server: Address, changes: Vec<u8>) {
    let task = core.clone();
    core.spawn(async move {
        let client = Rc::new(listener.accept().await.expect("the client connects"));
        let server = Stream::connect(&task, &server, None)
            .await
            .expect("it listens");
        let server = Rc::new(server);
        for stream in [&client, &server] {
            stream.set_deadline(Some(task.now_exact() + PATIENCE));
        }
        task.spawn(pass(Rc::clone(&server), Rc::clone(&client), Vec::new()));
        pass(client, server, changes).await;
    });
}

async fn pass(from: Rc<Stream>, to: Rc<Stream>, changes: Vec<u8>) {
    let mut input = Input::default();
    let mut passed = 0;
    while let Ok(1..) = from.recv(&mut input).await {
        let mut piece = input.bytes().to_vec();
        input.consume(piece.len());
        for change in changes.chunks_exact(3) {
            let place = usize::from(u16::from_be_bytes([change[0], change[1]]));
            if let Some(byte) = place.checked_sub(passed).and_then(|at| piece.get_mut(at)) {
                *byte ^= change[2];
            }
        }
        passed += piece.len();
        if send(&to, &piece).await.is_err() {
            break;
        }
    }
    // The other side may be gone; ignore the error.
    let _ = to.shutdown().await;
}

async fn send(stream: &Stream, bytes: &[u8]) -> Result<(), Error> {
    stream.queue(Rc::<[u8]>::from(bytes));
    stream.flush().await
}
