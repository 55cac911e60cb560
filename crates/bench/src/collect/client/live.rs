//! Progress of a running client: the last of its rows, as h1load and `onrush load` print them.

/// The last second with the client's own numbers: "189k requests/s, ttlb 52.75u". `None` if its last
/// complete line is not such a row.
///
/// `head` is the start of its output, which contains the column names, `tail` its end; an incomplete last line is
/// ignored.
pub fn last_second(head: &str, tail: &str) -> Option<String> {
    let names = head
        .lines()
        .map(|line| line.trim_start_matches(['#', '_', ' ']))
        .find(|line| line.starts_with("time "))?;
    let names: Vec<&str> = names.split_whitespace().collect();
    let (whole, _) = tail.rsplit_once('\n')?;
    let row: Vec<&str> = whole.lines().last()?.split_whitespace().collect();
    let is_row = row.len() == names.len() && row[0].bytes().all(|byte| byte.is_ascii_digit());
    if !is_row {
        return None;
    }
    let column = |wished: &str| {
        let at = names.iter().position(|name| *name == wished)?;
        row.get(at)
    };
    let time = ["ttlb", "ttfb"]
        .iter()
        .find_map(|name| column(name).map(|time| format!(", {name} {time}")));
    let rate = column("rps")?;
    Some(format!("{rate} requests/s{}", time.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "http://127.0.0.1:80/ at 127.0.0.1:80\n#     time conns tot_conn  tot_req      tot_bytes    err  cps  rps  Bps  bps   ttfb   ttlb\n";
    const ROW: &str = "         2    10       10   380237       52092469      0 0.00 191k 26M1 209M 52.31u 52.40u\n";

    #[test]
    fn last_complete_row_is_returned() {
        let tail = format!("{ROW}         3    10       10   5297");
        assert_eq!(
            last_second(HEAD, &tail).as_deref(),
            Some("191k requests/s, ttlb 52.40u")
        );
        let short =
            "#     time conns tot_conn  tot_req      tot_bytes    err  cps  rps  bps   ttfb\n";
        let row =
            "         1    10       10   380237       52092469      0 0.00 7500 209M 52.31u\n";
        assert_eq!(
            last_second(short, row).as_deref(),
            Some("7500 requests/s, ttfb 52.31u")
        );
    }

    #[test]
    fn unrecognized_output_has_no_row() {
        for (head, tail) in [
            (HEAD, HEAD),
            (HEAD, ""),
            (HEAD, "         1    10"),
            ("Running 2s test @ http://127.0.0.1/\n", ROW),
            (HEAD, "requests     529,656 in 3.00 s: 177 k/s\n"),
        ] {
            assert_eq!(last_second(head, tail), None, "{tail}");
        }
    }
}
