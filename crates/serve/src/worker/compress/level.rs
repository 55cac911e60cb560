//! Compression levels and their costs. Figures are from `examples/compress_speed.rs` on one CPU: 170 kB of JSON
//! records, and an HTML page of 98 kB.

use onrush_http::encoding::Coding;

/// Level for responses compressed on the fly. Clients can cause this CPU time with every request, so it must be low.
///
/// | | JSON | HTML | why not the next |
/// |---|---|---|---|
/// | gzip 4 | 191 MB/s, 18.1 % | 217 MB/s, 16.2 % | 6, zlib's default: 117 MB/s for 17.7 % |
/// | Brotli 4 | 123 MB/s, 16.5 % | 111 MB/s, 15.3 % | 5: 59 MB/s for 15.9 % |
/// | zstd 3 | 574 MB/s, 18.3 % | 641 MB/s, 16.8 % | 6: 132 MB/s for 16.1 % |
pub fn streaming(coding: Coding) -> u32 {
    match coding {
        Coding::Gzip => 4,
        Coding::Brotli => 4,
        Coding::Zstd => 3,
    }
}

/// Level for content compressed once and sent often: fixed responses and small files. A file of 8 KiB takes at most 1
/// ms, on the core of the first request. Brotli levels from 9 need tables of 32 MiB and more.
pub fn cached(coding: Coding) -> u32 {
    match coding {
        Coding::Gzip => 9,
        Coding::Brotli => 6,
        Coding::Zstd => 12,
    }
}

/// Maximum memory of an encoder at the [`streaming`] level, in bytes, for any input: measured on 32 of each, and rounded
/// up. `tests/encoder_memory.rs` measures it again.
pub fn memory_max(coding: Coding) -> usize {
    match coding {
        Coding::Gzip => 384 * 1024,
        Coding::Brotli => 2048 * 1024,
        Coding::Zstd => 1408 * 1024,
    }
}
