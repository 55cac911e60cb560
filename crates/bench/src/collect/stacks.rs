//! Folds the output of `perf script` into collapsed stacks: one line per stack, outermost function first, with the
//! number of samples (`onrush;main;serve;tcp_sendmsg_[k] 12`), the input format of FlameGraph.

use std::collections::BTreeMap;

use crate::limits::{STACK_FRAMES_MAX, STACKS_MAX};

/// Suffix of kernel functions, as FlameGraph writes it.
pub const KERNEL: &str = "_[k]";
/// Name for stacks beyond [`STACKS_MAX`].
const OTHERS: &str = "(other stacks)";

/// Collapsed stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folded {
    /// One line per stack, sorted.
    pub text: String,
    /// Number of samples.
    pub samples: u64,
}

/// Parses the output of `perf script -F comm,ip,sym,dso`: per sample the thread's name, one line per function from the
/// innermost on, and an empty line.
pub fn fold(script: &str) -> Folded {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut samples = 0;
    let mut thread = None;
    let mut frames: Vec<String> = Vec::new();
    // The last sample may lack its empty line.
    for line in script.lines().chain([""]) {
        if line.trim().is_empty() {
            if let Some(thread) = thread.take() {
                samples += 1;
                count(&mut counts, thread, &frames);
            }
            frames.clear();
        } else if line.starts_with(char::is_whitespace) {
            if frames.len() < STACK_FRAMES_MAX {
                frames.extend(frame(line).filter(|frame| frames.last() != Some(frame)));
            }
        } else {
            thread = Some(line.trim());
        }
    }
    let lines = counts.iter();
    Folded {
        text: lines
            .map(|(stack, count)| format!("{stack} {count}\n"))
            .collect(),
        samples,
    }
}

fn count(counts: &mut BTreeMap<String, u64>, thread: &str, frames: &[String]) {
    let thread = thread.replace(';', ":");
    let mut stack = thread.clone();
    for frame in frames.iter().rev() {
        stack.push(';');
        stack.push_str(frame);
    }
    if counts.len() >= STACKS_MAX && !counts.contains_key(&stack) {
        stack = format!("{thread};{OTHERS}");
    }
    *counts.entry(stack).or_default() += 1;
}

/// Parses `ffffffff816d5614 vfs_read ([kernel.kallsyms])`. Consecutive unknown frames, as in programs without frame
/// pointers, become one.
fn frame(line: &str) -> Option<String> {
    let (_, rest) = line.trim().split_once(' ')?;
    let (name, file) = match rest.rsplit_once(" (") {
        Some((name, file)) => (name, file.trim_end_matches(')')),
        None => (rest, ""),
    };
    let name = without_hash(name.trim()).replace(';', ":");
    let is_kernel = file.starts_with('[') && !["[unknown]", "[vdso]", "[vsyscall]"].contains(&file)
        || file.ends_with(".ko");
    Some(if is_kernel {
        format!("{name}{KERNEL}")
    } else {
        name
    })
}

/// Removes `::h` and 16 digits at the end of a Rust name, which differ in each build.
fn without_hash(name: &str) -> &str {
    let Some((before, hash)) = name.rsplit_once("::h") else {
        return name;
    };
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { before } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "sh \n\tffffffff816d5614 vfs_read ([kernel.kallsyms])\n\
        \tffffffff81000130 entry_SYSCALL_64_after_hwframe ([kernel.kallsyms])\n\
        \t           f82ad read (/usr/lib/x86_64-linux-gnu/libc.so.6)\n\
        \t               0 [unknown] ([unknown])\n\t               1 [unknown] ([unknown])\n\n\
        my thread \n\
        \t    55d0c1 <onrush::Core as Run>::run::h0123456789abcdef (/usr/bin/onrush)\n\
        \t    55d0c2 ena_poll ([ena])\n\t 7ffd clock_gettime ([vdso])\n\n\
        sh \n\tffffffff816d5614 vfs_read ([kernel.kallsyms])\n\
        \tffffffff81000130 entry_SYSCALL_64_after_hwframe ([kernel.kallsyms])\n\
        \t           f82ad read (/usr/lib/x86_64-linux-gnu/libc.so.6)\n\
        \t               0 [unknown] ([unknown])\n";

    #[test]
    fn stacks_are_folded() {
        let folded = fold(SCRIPT);
        assert_eq!(folded.samples, 3);
        assert_eq!(
            folded.text,
            "my thread;clock_gettime;ena_poll_[k];<onrush::Core as Run>::run 1\n\
             sh;[unknown];read;entry_SYSCALL_64_after_hwframe_[k];vfs_read_[k] 2\n"
        );
    }

    #[test]
    fn incomplete_script_adds_no_sample() {
        assert_eq!(fold(""), Folded::default());
        let cut = fold("sh \n\tffffffff816d5614 vfs_r");
        assert_eq!((cut.samples, cut.text.as_str()), (1, "sh;vfs_r 1\n"));
        assert_eq!(fold("\tno thread (x)\n\n").samples, 0);
    }

    #[test]
    fn stack_depth_and_count_are_limited() {
        let deep: String = (0..1_000)
            .map(|number| format!("\t1 f{number} (x)\n"))
            .collect();
        let folded = fold(&format!("sh \n{deep}\n"));
        assert_eq!(folded.text.matches(';').count(), STACK_FRAMES_MAX);
        let many: String = (0..STACKS_MAX + 10)
            .map(|number| format!("sh \n\t1 f{number} (x)\n\n"))
            .collect();
        let folded = fold(&many);
        assert_eq!(folded.text.lines().count(), STACKS_MAX + 1);
        assert!(folded.text.contains("sh;(other stacks) 10\n"));
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_text_folds_to_counted_lines(text in "(?s).{0,400}") {
            let folded = fold(&text);
            let counts = folded.text.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
            proptest::prop_assert_eq!(counts.sum::<u64>(), folded.samples);
        }
    }
}
