//! Tables in Markdown.

/// Prints rows under their heads, without padding.
pub(crate) fn print(heads: &[&str], rows: &[Vec<String>]) {
    let heads: Vec<String> = heads.iter().map(|&head| head.to_owned()).collect();
    let line = |cells: &[String]| println!("| {} |", cells.join(" | "));
    line(&heads);
    line(&vec!["---".to_owned(); heads.len()]);
    for row in rows {
        line(row);
    }
    println!();
}

/// Returns the median.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
