//! Checks that the tables in `docs/predict.md` are the program's output.

use std::path::{Path, PathBuf};

use onrush_bench::predict::wire::{LinkRate, PacketsPerRequest, Size};
use onrush_bench::predict::{cross_validation, measured, rows, series, text};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares the text between the markers of a name with the output. If it differs, the corrected page is written to the
/// build directory.
#[track_caller]
fn check_page(name: &str, printed: &str) {
    let path = repository().join("docs/predict.md");
    let page = std::fs::read_to_string(&path).expect("the page is in the repository");
    let (begin, end) = (
        format!("<!-- {name}:begin -->"),
        format!("<!-- {name}:end -->"),
    );
    let (before, rest) = page.split_once(&begin).expect("the mark is there");
    let (stands, after) = rest.split_once(&end).expect("the mark is there");
    let expected = format!("\n```text\n{printed}```\n");
    if stands != expected {
        let right = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("predict-{name}.md"));
        let whole = format!("{before}{begin}{expected}{end}{after}");
        std::fs::write(&right, whole).expect("the directory of the build is ours");
        panic!(
            "the table `{name}` is another one now: the page with it is {}",
            right.display()
        );
    }
}

#[test]
fn documented_errors_match_model() {
    check_page(
        "check",
        &text::published(&cross_validation::leave_one_out(&rows::published())),
    );
}

#[test]
fn documented_run_predictions_match_model() {
    let run = repository().join("runs/2026-11-23-regression");
    let mut rows = measured::read(&run).expect("the run is in the repository");
    rows.retain(|row| row.work.starts_with("forward, "));
    check_page("run", &text::measured(&series::leave_one_out(&rows)));
}

#[test]
fn documented_capacity_predictions_match_model() {
    let run = repository().join("runs/2026-11-24-capacity");
    let rows = measured::read(&run).expect("the run is in the repository");
    check_page("capacity", &text::measured(&series::leave_one_out(&rows)));
}

#[test]
fn documented_link_rates_match_calculation() {
    let sizes = ["64", "1500", "9000"].map(|size| Size::parse(size).expect("a size"));
    let packets = PacketsPerRequest::parse("2").expect("a number");
    let link = LinkRate::parse("10G").expect("a rate");
    check_page("wire", &text::wire(link, &sizes, packets));
}
