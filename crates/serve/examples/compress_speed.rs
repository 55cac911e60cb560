//! Prints, for each coding and level, how fast a JSON and an HTML document are compressed and to what part of their
//! size; streamed as a response is, in pieces of a buffer.
//! `cargo run --release -p onrush-serve --example compress_speed [FILE ...]`

use std::hint::black_box;
use std::time::Instant;

use onrush_http::encoding::Coding;
use onrush_serve::compress::{Encoder, Then};

/// Size of an input piece: a buffer of the engine.
const PIECE: usize = 16 * 1024;

/// How long each level is measured, at least.
const SECONDS: f64 = 0.5;

fn main() -> std::io::Result<()> {
    let mut samples = vec![
        ("JSON 2k".to_owned(), json(20)),
        ("JSON 200k".to_owned(), json(2000)),
        ("HTML 50k".to_owned(), html(60)),
    ];
    for path in std::env::args().skip(1) {
        let content = std::fs::read(&path)?;
        samples.push((path, content));
    }
    for (name, sample) in &samples {
        println!("{name}: {} bytes", sample.len());
        for (coding, levels) in [
            (Coding::Gzip, &[1, 2, 3, 4, 5, 6, 9][..]),
            (Coding::Brotli, &[0, 1, 2, 3, 4, 5, 6, 9, 11]),
            (Coding::Zstd, &[1, 2, 3, 4, 6, 9, 12, 19]),
        ] {
            for &level in levels {
                report(sample, coding, level);
            }
        }
    }
    Ok(())
}

fn report(sample: &[u8], coding: Coding, level: u32) {
    let mut encoder = Encoder::new(coding, level);
    let mut room = vec![0; PIECE];
    let (mut rounds, mut encoded) = (0u32, 0);
    let start = Instant::now();
    while rounds == 0 || start.elapsed().as_secs_f64() < SECONDS {
        encoder.reset();
        encoded = encode(&mut encoder, black_box(sample), &mut room);
        rounds += 1;
    }
    let seconds = start.elapsed().as_secs_f64() / f64::from(rounds);
    println!(
        "  {coding:?} {level:2}: {:7.1} MB/s {:9.1} us {:5.1} %",
        sample.len() as f64 / seconds / 1e6,
        seconds * 1e6,
        100.0 * encoded as f64 / sample.len() as f64
    );
}

/// Bytes that `sample` takes encoded.
fn encode(encoder: &mut Encoder, sample: &[u8], room: &mut [u8]) -> usize {
    let mut pieces = sample.chunks(PIECE).peekable();
    let mut encoded = 0;
    while let Some(mut piece) = pieces.next() {
        let then = match pieces.peek() {
            Some(_) => Then::More,
            None => Then::Finish,
        };
        loop {
            let pushed = encoder.push(piece, then, room);
            encoded += pushed.written;
            piece = &piece[pushed.consumed..];
            if pushed.is_done {
                break;
            }
        }
    }
    encoded
}

/// A list of so many records as an API sends it; numbers that look random keep it from being too easy.
fn json(records: u32) -> Vec<u8> {
    let names = [
        "Ada Lovelace",
        "Alan Turing",
        "Grace Hopper",
        "Edsger Dijkstra",
        "Barbara Liskov",
    ];
    let mut text = String::from("[");
    let mut random = 1u32;
    for id in 0..records {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let name = names[random as usize >> 16 & 3];
        text += &format!(
            "{{\"id\":{id},\"name\":\"{name}\",\"balance\":{}.{:02},\"active\":{},\"token\":\"{random:08x}\"}},",
            random >> 20,
            random % 100,
            random >> 31 == 0
        );
    }
    text.pop();
    text.push(']');
    text.into_bytes()
}

/// A page of so many articles.
fn html(articles: u32) -> Vec<u8> {
    let words = "the request of a client is answered by one server when load is low and by many as it grows \
        because nobody waits for what another has to finish first while every core keeps its own connections";
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut text =
        String::from("<!doctype html><html><head><title>Articles</title></head><body>\n");
    let mut random = 1u32;
    for id in 0..articles {
        text += &format!(
            "<article class=\"entry\" id=\"a{id}\"><h2><a href=\"/articles/{id}\">Article {id}</a></h2><p>"
        );
        for _ in 0..120 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text += words[(random >> 16) as usize % words.len()];
            text.push(' ');
        }
        text += "</p></article>\n";
    }
    text += "</body></html>\n";
    text.into_bytes()
}
