//! Flame graphs from folded stacks: a standalone SVG with name and share of each function as tooltips.
//!
//! The width of a box is the share of samples in its function; callees are above it. Kernel functions have another
//! colour and the suffix `_[k]`.

use std::collections::BTreeMap;
use std::fmt::Write;

use onrush_chart::escape;

use crate::collect::stacks::KERNEL;
use crate::limits::{FLAME_BOXES_MAX, FLAME_NAME_MAX, FLAME_NODES_MAX, STACK_FRAMES_MAX};

const WIDTH: f64 = 1_200.0;
const ROW: f64 = 17.0;
const BOX_WIDTH_MIN: f64 = 0.6;
const LETTER: f64 = 6.6;

#[derive(Default)]
struct Node<'a> {
    name: &'a str,
    samples: u64,
    depth: usize,
    children: BTreeMap<&'a str, usize>,
}

/// Draws folded stacks ([`crate::collect::stacks`]); malformed lines are skipped. At most [`FLAME_BOXES_MAX`] boxes are
/// drawn, the outermost functions first.
pub(super) fn flame_graph(folded: &str) -> String {
    let nodes = tree(folded);
    let all = nodes[0].samples;
    let boxes = boxes(&nodes);
    let rows = boxes
        .iter()
        .map(|(node, ..)| nodes[*node].depth + 1)
        .max()
        .unwrap_or(1);
    let height = rows as f64 * ROW + 1.0;
    let mut svg = format!(
        "<svg class=\"flame\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"ui-monospace, monospace\" font-size=\"11\"><title>CPU time by function, {all} samples</title>\n"
    );
    for (index, x, width) in boxes {
        let node = &nodes[index];
        let name = shortened(node.name, FLAME_NAME_MAX);
        let share = node.samples as f64 / all.max(1) as f64 * 100.0;
        let fill = fill(node);
        let y = height - ROW * (node.depth + 1) as f64;
        let _ = write!(
            svg,
            "<g><title>{} · {share:.1} % · {} samples</title><rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" \
             rx=\"1\" fill=\"{fill}\"/>",
            escape(&name),
            node.samples,
            ROW - 1.0
        );
        let letters = ((width - 4.0) / LETTER) as usize;
        if letters >= 3 {
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" fill=\"#1d1d1f\">{}</text>",
                x + 3.0,
                y + 12.0,
                escape(&shortened(&name, letters))
            );
        }
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// Light enough for dark text, on light and dark pages.
fn fill(node: &Node<'_>) -> &'static str {
    if node.depth < 2 {
        "#d5d5da"
    } else if node.name.ends_with(KERNEL) {
        "#f2b48c"
    } else {
        "#a9c9ee"
    }
}

/// Truncates a name to this many characters, with `…` as the last one.
fn shortened(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    let kept: String = name.chars().take(letters.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Merges all stacks from their outermost function on; the first node is the root.
fn tree(folded: &str) -> Vec<Node<'_>> {
    let mut nodes = vec![Node {
        name: "all",
        ..Node::default()
    }];
    for line in folded.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else {
            continue;
        };
        let Ok(count) = count.parse::<u64>() else {
            continue;
        };
        let mut at = 0;
        nodes[0].samples = nodes[0].samples.saturating_add(count);
        for frame in stack.split(';').take(STACK_FRAMES_MAX + 1) {
            let known = nodes[at].children.get(frame).copied();
            let next = nodes.len();
            if known.is_none() && next >= FLAME_NODES_MAX {
                break;
            }
            if known.is_none() {
                let depth = nodes[at].depth + 1;
                nodes[at].children.insert(frame, next);
                nodes.push(Node {
                    name: frame,
                    depth,
                    ..Node::default()
                });
            }
            at = known.unwrap_or(next);
            nodes[at].samples = nodes[at].samples.saturating_add(count);
        }
    }
    nodes
}

fn boxes(nodes: &[Node<'_>]) -> Vec<(usize, f64, f64)> {
    let scale = WIDTH / nodes[0].samples.max(1) as f64;
    let mut boxes = vec![(0, 0.0, WIDTH)];
    let mut next = 0;
    while let Some((node, x, _)) = boxes.get(next).copied() {
        next += 1;
        let mut x = x;
        for child in nodes[node].children.values() {
            let width = nodes[*child].samples as f64 * scale;
            if width >= BOX_WIDTH_MIN && boxes.len() < FLAME_BOXES_MAX {
                boxes.push((*child, x, width));
            }
            x += width;
        }
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flame_graph_boxes_have_proportional_width() {
        let svg =
            flame_graph("onrush;main;read_[k] 30\nonrush;main;Vec<u8>::push 10\nno line\nx y\n");
        let has = |text: &str| assert!(svg.contains(text), "{text} in {svg}");
        has("40 samples</title>");
        has("<title>read_[k] · 75.0 % · 30 samples</title>");
        has("<title>Vec&lt;u8&gt;::push · 25.0 % · 10 samples</title>");
        // Children in alphabetical order: the second begins where the first ends.
        has("<rect x=\"0.0\" y=\"1\" width=\"300.0\"");
        has("<rect x=\"300.0\" y=\"1\" width=\"900.0\"");
        assert_eq!(svg.matches("<g>").count(), 5);
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
    }

    #[test]
    fn empty_profile_is_empty_graph() {
        let svg = flame_graph("");
        assert!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
    }

    #[test]
    fn flame_graph_size_is_bounded() {
        let name = "long".repeat(1_000);
        let folded: String = (0..20_000)
            .map(|number| {
                format!(
                    "{name};{};{name}{number} {}\n",
                    number % 700,
                    1 + number % 3
                )
            })
            .collect();
        let svg = flame_graph(&folded);
        assert!(svg.matches("<rect").count() <= FLAME_BOXES_MAX);
        assert!(svg.len() < 4 << 20, "{} bytes", svg.len());
    }
}
