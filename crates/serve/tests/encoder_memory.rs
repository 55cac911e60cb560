//! Memory of encoders, as measured by the kernel. A program of its own, because other tests would be measured, too.

use onrush_http::encoding::Coding;
use onrush_serve::compress::{Encoder, Then, level};

const ENCODERS: usize = 32;

#[test]
fn encoder_memory_is_within_limit() {
    let content = content();
    for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
        let before = resident_bytes();
        let mut room = vec![0; 64 * 1024];
        let encoders: Vec<Encoder> = (0..ENCODERS)
            .map(|_| {
                let mut encoder = Encoder::new(coding, level::streaming(coding));
                for piece in content.chunks(16 * 1024) {
                    feed(&mut encoder, piece, &mut room);
                }
                encoder
            })
            .collect();
        let each = resident_bytes().saturating_sub(before) / encoders.len();
        let most = level::memory_max(coding);
        println!("{coding:?}: {each} of {most} bytes");
        assert!(each <= most, "{coding:?}: {each} bytes, not {most}");
        assert!(
            each >= most / 3,
            "{coding:?}: {each} bytes, far fewer than {most}"
        );
    }
}

fn feed(encoder: &mut Encoder, mut piece: &[u8], room: &mut [u8]) {
    loop {
        let pushed = encoder.push(piece, Then::More, room);
        piece = &piece[pushed.consumed..];
        if pushed.is_done {
            return;
        }
    }
}

/// A megabyte that is partly compressible, to fill tables and buffers.
fn content() -> Vec<u8> {
    let mut random = 1u64;
    let mut content = Vec::new();
    while content.len() < 1 << 20 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let record = format!("{{\"id\":{},\"key\":\"{random:x}\"}},", content.len());
        content.extend_from_slice(record.as_bytes());
    }
    content
}

fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let resident = pages.split_whitespace().nth(1);
    let resident = resident.expect("the second of seven numbers");
    resident.parse::<usize>().expect("a number") * 4096
}
