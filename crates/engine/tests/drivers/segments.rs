//! Segmentation offload: datagrams of a flow that pass the network stack as one message.

use std::num::NonZeroU16;
use std::rc::Rc;

use onrush_engine::{Core, Io, Message, ReceiveBatch, Segmentation, SendBatch};

use crate::datagrams::{on_every_network, pair, receive, send_all};
use crate::ground::{bytes, run};

#[test]
fn segmented_message_arrives_as_datagrams() {
    on_every_network(|core, address| async move {
        for segmentation in [Segmentation::Kernel, Segmentation::Engine] {
            for coalesces in [false, true] {
                let (near, far) = pair(&core, address);
                if !core.is_simulated() {
                    near.set_segmentation(segmentation);
                    assert!(!coalesces || far.enable_gro(), "Linux 5.0");
                }
                let before = near.segmentation();
                // More segments than the kernel makes of one message; a shorter last segment; a single datagram.
                for (bytes_each, length, last) in
                    [(100, 15_000, 100), (1200, 5000, 200), (1200, 1200, 1200)]
                {
                    let payload: Rc<[u8]> = bytes(length).into();
                    let mut batch = SendBatch::default();
                    batch
                        .push(Message {
                            segment: NonZeroU16::new(bytes_each),
                            ..Message::new(Rc::clone(&payload))
                        })
                        .unwrap();
                    let mut expected: Vec<Vec<u8>> = payload
                        .chunks(bytes_each.into())
                        .map(<[u8]>::to_vec)
                        .collect();
                    assert_eq!(expected.last().map(Vec::len), Some(last));
                    assert_eq!(send_all(&near, &mut batch).await, expected.len());
                    expected.sort_unstable();
                    let mut received = ReceiveBatch::new(4, 65_535);
                    let all = receive(&far, &mut received, expected.len()).await;
                    assert!(all == expected, "{segmentation:?}, coalesces: {coalesces}");
                }
                assert_eq!(near.segmentation(), before, "the loopback refuses nothing");
            }
        }
    });
}

#[test]
fn gro_coalesces_flow() {
    for io in [Io::Epoll, Io::IoUring] {
        let Ok(core) = Core::new(0, io) else { continue };
        let (near, far) = pair(&core, "127.0.0.1:0".parse().unwrap());
        assert!(far.enable_gro(), "Linux 5.0");
        run(&core, async move {
            let mut batch = SendBatch::default();
            batch
                .push(Message {
                    segment: NonZeroU16::new(1000),
                    ..Message::new(&[7; 10_500][..])
                })
                .unwrap();
            assert_eq!(near.send(&mut batch).await, Ok(11));
            let mut received = ReceiveBatch::new(8, 65_535);
            assert_eq!(far.recv(&mut received).await, Ok(1), "one message");
            let lengths: Vec<usize> = received.iter().map(|one| one.bytes.len()).collect();
            assert_eq!(lengths, [&[1000; 10][..], &[500]].concat());
            // A message that does not fit ends with a truncated datagram.
            batch
                .push(Message {
                    segment: NonZeroU16::new(1000),
                    ..Message::new(&[7; 10_500][..])
                })
                .unwrap();
            near.send(&mut batch).await.unwrap();
            let mut received = ReceiveBatch::new(8, 2500);
            assert_eq!(far.recv(&mut received).await, Ok(1), "one message");
            let truncated: Vec<bool> = received.iter().map(|one| one.is_truncated).collect();
            assert_eq!(truncated, [false, false, true]);
        });
    }
}
