//! Values of a chart for pointer and keyboard (`data-hover`, read by `script.js`).

use std::collections::BTreeMap;

/// Positions closer than this are merged, in units of the drawing: a pointer is not more precise.
const TOGETHER: f64 = 1.0;

#[derive(Default)]
pub(crate) struct Hover<'a>(BTreeMap<u32, Entry<'a>>);

struct Entry<'a> {
    place: f64,
    x: f64,
    rows: Vec<(&'a str, &'a str, f64)>,
}

impl<'a> Hover<'a> {
    /// Adds a row (name, class, value) at position `place`, which corresponds to `x`. Of several values with the same
    /// name and position, the largest is kept.
    pub(crate) fn add(&mut self, place: f64, x: f64, row: (&'a str, &'a str, f64)) {
        let unit = (place / TOGETHER).round().max(0.0) as u32;
        let entry = self.0.entry(unit).or_insert_with(|| Entry {
            place,
            x,
            rows: Vec::new(),
        });
        match entry.rows.iter_mut().find(|known| known.0 == row.0) {
            Some(known) if known.2 < row.2 => *known = row,
            Some(_) => {}
            None => entry.rows.push(row),
        }
    }

    /// Serializes as `[[place, "99 %", [["name", "class", "value"], …]], …]` in ascending order of position.
    pub(crate) fn json(self, x_text: fn(f64) -> String, y_text: fn(f64) -> String) -> String {
        let entries: Vec<_> = self
            .0
            .into_values()
            .map(|entry| {
                let rows = entry.rows.into_iter();
                let rows: Vec<_> = rows
                    .map(|(name, class, value)| (name, class, y_text(value)))
                    .collect();
                ((entry.place * 10.0).round() / 10.0, x_text(entry.x), rows)
            })
            .collect();
        serde_json::to_string(&entries).unwrap_or_default()
    }
}

/// The `data-hover` attribute. In single quotes, because each double quote of the JSON would be escaped to six bytes.
pub(crate) fn attribute(json: &str) -> String {
    let json = json.replace('&', "&amp;").replace('<', "&lt;");
    format!("data-hover='{}'", json.replace('\'', "&#39;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_value_per_pixel_is_kept() {
        let mut hover = Hover::default();
        hover.add(60.4, 1.0, ("a", "o1", 3.0));
        hover.add(60.2, 1.1, ("a", "o1", 5.0));
        hover.add(60.3, 1.2, ("b", "o2", 4.0));
        hover.add(20.0, 0.5, ("a", "o1", 1.0));
        let text = |value: f64| value.to_string();
        assert_eq!(
            hover.json(text, text),
            r#"[[20.0,"0.5",[["a","o1","1"]]],[60.4,"1",[["a","o1","5"],["b","o2","4"]]]]"#
        );
    }

    #[test]
    fn hover_attribute_is_escaped() {
        assert_eq!(
            attribute(r#"["it's <b> & co"]"#),
            r#"data-hover='["it&#39;s &lt;b> &amp; co"]'"#
        );
    }
}
